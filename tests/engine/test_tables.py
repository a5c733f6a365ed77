"""The small pure parts, as tables: tags, serial, loops."""

from __future__ import annotations

from typing import Any

import pytest

from nodectl.engine.loops import BadLoop, items_of
from nodectl.engine.serial import batches
from nodectl.engine.tags import selected
from nodectl.lang.lookups import Lookups
from nodectl.lang.template import Templar

TAGS = [
    # tags of the task, --tags, --skip-tags, runs?
    ("", "", "", True), ("a", "", "", True), ("a", "a", "", True), ("a", "b", "", False), ("a b", "b c", "", True),
    ("", "a", "", False), ("always", "a", "", True), ("never", "", "", False), ("never a", "a", "", True), ("never a", "all", "", False),
    ("never", "never", "", True), ("always never", "", "", True),
    ("a", "tagged", "", True), ("", "tagged", "", False), ("never a", "tagged", "", False), ("", "untagged", "", True), ("a", "untagged", "", False),
    ("a", "all", "", True), ("a", "", "a", False), ("always", "", "always", False), ("always", "x", "always", False), ("a", "a", "a", False),
    ("", "", "untagged", False), ("a", "", "untagged", True), ("a", "", "tagged", False), ("", "", "tagged", True), ("", "", "all", False),
    ("always", "", "all", True), ("always a", "", "a", False),
]  # fmt: skip


@pytest.mark.parametrize(("tags", "only", "skip", "runs"), TAGS)
def test_tags(tags: str, only: str, skip: str, runs: bool) -> None:
    assert selected(tags.split(), only.split(), skip.split()) is runs


HOSTS = list("abcdefgh")
SERIAL = [
    ([], ["abcdefgh"]), ([3], ["abc", "def", "gh"]), (["25%"], ["ab", "cd", "ef", "gh"]), ([1, 2, 4], ["a", "bc", "defg", "h"]),
    ([0], ["abcdefgh"]), (["1%"], list("abcdefgh")), (["3"], ["abc", "def", "gh"]), ([100], ["abcdefgh"]), ([1, "50%"], ["a", "bcde", "fgh"]),
]  # fmt: skip


@pytest.mark.parametrize(("serial", "expected"), SERIAL)
def test_serial(serial: list[Any], expected: list[str]) -> None:
    assert ["".join(batch) for batch in batches(HOSTS, serial)] == expected


def test_serial_of_no_hosts_has_no_batches() -> None:
    assert batches([], [3]) == []


@pytest.mark.parametrize("serial", [[-1], ["many"], [None]])
def test_serial_refuses(serial: list[Any]) -> None:
    with pytest.raises(ValueError):
        batches(HOSTS, serial)


LOOPS = [
    ("loop", [1, [2]], [1, [2]]), ("loop", (1, 2), [1, 2]), ("items", [1, [2, 3], [[4]]], [1, 2, 3, [4]]), ("items", "x", ["x"]),
    ("dict", {"a": 1}, [{"key": "a", "value": 1}]), ("nested", [[1, 2], ["a"]], [[1, "a"], [2, "a"]]), ("sequence", "start=1 end=3", ["1", "2", "3"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "items"), LOOPS)
def test_loop(kind: str, value: Any, items: list[Any]) -> None:
    assert items_of(kind, value, Templar(Lookups()), {}) == items


BAD = [
    ("loop", "abc", "wants a list"), ("loop", {"a": 1}, "dict2items"), ("loop", 3, "wants a list"), ("dict", [1], "mapping"),
    ("sequence", "many", "cannot read"), ("nothing", [], "with_nothing"), ("file", "nope", "not found"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "said"), BAD)
def test_loop_refuses(kind: str, value: Any, said: str) -> None:
    with pytest.raises(BadLoop, match=said):
        items_of(kind, value, Templar(Lookups()), {})
