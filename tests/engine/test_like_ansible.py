"""Parts of the engine beside the parts of ansible-core that do the same, with random input: tags, batches, handlers by name.

Seeds are fixed, so that a run says the same every time.
"""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nodectl.engine.handlers import HandlerTable
from nodectl.engine.serial import batches
from nodectl.engine.tags import selected
from nodectl.lang.role import Role
from nodectl.lang.task import Task
from nodectl.wire.origin import Origin

WORDS = ["a", "b", "c", "always", "never", "tagged", "untagged", "all"]


def some(source: random.Random, words: list[str], most: int) -> list[str]:
    return source.sample(words, source.randint(0, most))


def test_tags_select_what_they_select_in_ansible() -> None:
    from ansible.parsing.dataloader import DataLoader
    from ansible.playbook.block import Block
    from ansible.playbook.play import Play
    from ansible.playbook.task import Task as Theirs

    source = random.Random(1)
    ran = 0
    for _ in range(600):
        own, only, skip = some(source, WORDS[:5], 3), some(source, WORDS, 2), some(source, WORDS, 2)
        task = Theirs.load({"debug": {}, "tags": own}, loader=DataLoader(), block=Block(play=Play()))
        theirs = task.evaluate_tags(set(only) or {"all"}, set(skip), {})
        ran += theirs
        assert (own, only, skip, selected(own, only, skip)) == (own, only, skip, theirs)
    assert 100 < ran < 500


SIZES: list[Any] = [1, 2, 3, 5, 100, "1", "10%", "30%", "50%", "100%", "1%", 0]


def test_batches_are_those_of_ansible() -> None:
    from ansible.executor.playbook_executor import PlaybookExecutor

    source = random.Random(2)
    for _ in range(300):
        hosts = [f"h{number}" for number in range(source.randint(1, 12))]
        serial = [source.choice(SIZES) for _ in range(source.randint(0, 3))]
        executor = SimpleNamespace(_inventory=SimpleNamespace(get_hosts=lambda _pattern, order, hosts=hosts: list(hosts)))
        play = SimpleNamespace(hosts="all", order="inventory", serial=serial)
        theirs = PlaybookExecutor._get_serialized_batches(executor, play)
        assert (serial, batches(hosts, serial)) == (serial, theirs)


# -- handlers: which of several a name or a topic means

NAMES = ["restart", "reload", "topic"]


class Handler:
    """A handler as both sides see it. ``listen`` are its topics."""

    def __init__(self, source: random.Random, role: str) -> None:
        self.name = source.choice([*NAMES, ""])
        self.role = role
        self.listen = tuple(some(source, NAMES, 2)) or (() if self.name else ("topic",))


def ours(lists: list[list[Handler]], wanted: str) -> list[Handler]:
    known: dict[int, Handler] = {}
    table = HandlerTable([])
    for handlers in lists:
        role = Role(handlers[0].role, Path("/roles") / handlers[0].role) if handlers[0].role else None
        tasks = [Task("debug", {}, Origin("t.yml", 1, 1), name=one.name, role=role, listen=one.listen) for one in handlers]
        table.add(tasks)
        known.update({id(task): one for task, one in zip(tasks, handlers, strict=True)})
    keys = table.resolve(wanted, str)
    return [known[id(task)] for task in table.tasks if table.key_of(task) in keys]


def theirs(lists: list[list[Handler]], wanted: str) -> list[Handler]:
    """StrategyBase.search_handlers_by_notification of ansible-core 2.19, over handlers that are plain data."""
    from ansible.plugins.strategy import StrategyBase

    def theirs_of(one: Handler) -> Any:
        full = f"{one.role} : {one.name}" if one.role else one.name
        # As its loader does it, topics of a role are also known with the role in front.
        topics = [*one.listen, *(f"{one.role} : {topic}" for topic in one.listen if one.role)]
        return SimpleNamespace(name=one.name, cached_name=True, listen=topics, one=one, get_name=lambda include_role_fqcn: full)

    blocks = [SimpleNamespace(block=[theirs_of(one) for one in handlers]) for handlers in lists]
    play = SimpleNamespace(handlers=blocks)
    strategy = SimpleNamespace(_variable_manager=None, _loader=None)
    found = [handler.one for handler in StrategyBase.search_handlers_by_notification(strategy, wanted, SimpleNamespace(_play=play))]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("seed", range(4))
def test_a_notification_means_the_handlers_that_it_means_in_ansible(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(100):
        lists = [[Handler(source, role) for _ in range(source.randint(1, 3))] for role in [*source.sample(["web", "db"], source.randint(0, 2)), ""]]
        wanted = source.choice([*NAMES, "web : restart", "db : topic", "web : topic"])
        mine = ours(lists, wanted)
        assert {id(one) for one in mine} == {id(one) for one in theirs(lists, wanted)}, [(one.role, one.name, one.listen) for part in lists for one in part]
