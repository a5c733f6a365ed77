"""The parts that keep order: handler table, masker, variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.diagnostics.model import Collector
from nodectl.engine.cursor import Position
from nodectl.engine.handlers import HandlerTable
from nodectl.engine.masking import Masker
from nodectl.engine.options import Options
from nodectl.engine.owed import Owed
from nodectl.engine.state import HostState
from nodectl.engine.variables import PlayVariables, Variables
from nodectl.inventory.load import load_inventory
from nodectl.lang.playbook import Play
from nodectl.lang.role import Role
from nodectl.lang.secrets import reveal
from nodectl.lang.task import Task
from nodectl.lang.template import Templar
from nodectl.wire.origin import Origin
from nodectl.wire.secret import MASK, Secret
from tests.engine.playing import write_tree

HERE = Origin("t.yml", 1, 1)
ROLE = Role("web", Path("/roles/web"))


def handler(name: str, *, role: Role | None = None, listen: tuple[str, ...] = ()) -> Task:
    return Task("debug", {}, HERE, name=name, role=role, listen=listen)


TABLE = HandlerTable([
    handler("restart"), handler("reload", role=ROLE), handler("restart", role=ROLE), handler("", listen=("config",)), handler("notice", listen=("config", "restart")),
    handler("serve {{ port }}"),
])  # fmt: skip

FOUND = [
    # name -> keys, in the order of definition; the last of several with one name
    ("restart", ["web : restart", "notice"]),
    ("reload", ["web : reload"]),
    ("web : restart", ["web : restart"]),
    ("config", ["config #3", "notice"]),
    ("serve 80", ["serve {{ port }}"]),
    ("nothing", []),
    ("", []),
]


@pytest.mark.parametrize(("name", "keys"), FOUND)
def test_handlers_are_found_by_name_and_topic(name: str, keys: list[str]) -> None:
    assert TABLE.resolve(name, lambda text: str(text).replace("{{ port }}", "80")) == keys


def test_handlers_that_come_later_stand_at_the_end_and_once() -> None:
    first, second = handler("a"), handler("b")
    table = HandlerTable([first])
    table.add([second])
    table.add([second])
    assert table.tasks == (first, second)
    assert (table.key_of(first), table.key_of(second), table.key_of(handler("a"))) == ("a", "b", "")


def test_what_is_owed_is_kept_for_the_plays_that_can_do_it(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "pending"
    owed = Owed(folder, pytest.fail)
    owed.owe("10.0.0.1:22", "h1", ["a", "b"])
    owed.owe("10.0.0.1:22", "h1", ["b", "c"])
    again, names = Owed(folder, pytest.fail), ["h1", "h2"]
    assert again.of("10.0.0.2:22", "h2", names, HandlerTable([handler("a")])) == []
    assert again.of("10.0.0.1:22", "h1", names, HandlerTable([handler("b"), handler("a")])) == ["a", "b"]
    for key in ("a", "b"):
        again.done("10.0.0.1:22", "h1", key)
    last = Owed(folder, pytest.fail)
    assert last.of("10.0.0.1:22", "h1", names, HandlerTable([handler("a"), handler("c")])) == ["c"]
    last.done("10.0.0.1:22", "h1", "c")
    assert list(folder.iterdir()) == []


def test_two_runs_at_once_do_not_undo_each_other(tmp_path: Path) -> None:
    one, two = Owed(tmp_path, pytest.fail), Owed(tmp_path, pytest.fail)
    one.owe("n:22", "h1", ["a"])
    two.owe("n:22", "h1", ["b"])
    one.done("n:22", "h1", "a")
    assert Owed(tmp_path, pytest.fail).of("n:22", "h1", ["h1"], HandlerTable([handler("a"), handler("b")])) == ["b"]


def test_names_of_nodes_are_safe_names_of_files(tmp_path: Path) -> None:
    node = "../../etc/x\nfe80::1%eth0:22"
    Owed(tmp_path / "p", pytest.fail).owe(node, "h1", ["a"])
    assert [path.parent for path in (tmp_path / "p").iterdir()] == [tmp_path / "p"]
    assert Owed(tmp_path / "p", pytest.fail).of(node, "h1", ["h1"], HandlerTable([handler("a")])) == ["a"]


# -- masking

LONG, SHORT = "a-long-secret", "pw"
MASKED: list[tuple[Any, Any]] = [
    (LONG, MASK), (f"key={LONG};", f"key={MASK};"), ({LONG: [LONG, 1]}, {MASK: [MASK, 1]}), (SHORT, MASK), ("upward pwd", "upward pwd"),
    (Secret("other"), MASK), (("a", None, True, 1.5), ["a", None, True, 1.5]), ({"deep": {"x": f"{LONG}{LONG}"}}, {"deep": {"x": MASK * 2}}),
    (Path("/a"), "/a"), (object, repr(object)), (frozenset(["one"]), ["one"]),
]  # fmt: skip


@pytest.mark.parametrize(("value", "shown"), MASKED)
def test_mask(value: Any, shown: Any) -> None:
    masker = Masker()
    masker.remember({"a": [Secret(LONG)], "b": SHORT, "c": None, "d": True})
    assert masker.mask(value) == shown


def test_only_typed_secrets_are_found_in_variables() -> None:
    masker = Masker()
    masker.remember_secrets({"plain": "visible-text", "list": [Secret("hidden-text")]})
    assert masker.mask("visible-text hidden-text") == f"visible-text {MASK}"


def test_reveal_goes_everywhere() -> None:
    assert reveal({"a": [Secret("x"), {"b": Secret("y")}], "c": 1}) == {"a": ["x", {"b": "y"}], "c": 1}


# -- variables

INVENTORY = "all:\n  vars: {a: inventory, url: 'http://{{ name }}', name: '{{ inventory_hostname }}'}\n  hosts:\n    n1.rack1: {}\n    n2: {a: host}\n"
ORIGIN = Origin("play.yml", 1, 1)


def make(folder: Path, **extra: Any) -> tuple[Variables, dict[str, HostState]]:
    write_tree(folder, {"hosts.yaml": INVENTORY})
    inventory = load_inventory([str(folder / "hosts.yaml")], Collector())
    states = {name: HostState(name) for name in inventory.names()}
    return Variables(inventory, Options(extra_vars=extra), states, Templar(), Path("/books")), states


def play_with(**variables: Any) -> PlayVariables:
    return PlayVariables(Play("p", "all", ORIGIN, ORIGIN, (), (), Path("/books"), vars=variables), ["n1.rack1", "n2"], ["n1.rack1", "n2"], [])


LAYERS = ["inventory", "injected fact", "play", "file", "role var", "block", "task", "included", "set_fact", "role param", "include param", "extra", "loop"]


@pytest.mark.parametrize("top", range(len(LAYERS)), ids=LAYERS)
def test_each_layer_beats_those_before_it(tmp_path: Path, top: int) -> None:
    """The documented order, one layer after the other put on top."""
    given = set(LAYERS[: top + 1])

    def only(layer: str) -> dict[str, str]:
        return {"a": layer} if layer in given else {}

    variables, states = make(tmp_path, **only("extra"))
    role = Role("r", Path("/r"), defaults={"a": "role default"}, vars=only("role var"), params=only("role param"))
    task = Task("debug", {}, HERE, role=role, scope=({"a": "outer"}, only("block")) if "block" in given else (), vars=only("task"))
    states["n1.rack1"].vars.update(only("set_fact"))
    states["n1.rack1"].included.update(only("included"))
    states["n1.rack1"].injected.update(only("injected fact"))
    scope = play_with(**only("play"))
    scope.files["n1.rack1"] = only("file")
    layers = variables.of_task(scope, "n1.rack1", Position((0,), task, only("include param")))
    layers.maps[0].update(only("loop"))
    assert layers["a"] == LAYERS[top]


def test_magic_variables_cannot_be_overridden(tmp_path: Path) -> None:
    variables, _ = make(tmp_path, inventory_hostname="liar")
    layers = variables.of_task(play_with(), "n1.rack1", Position((0,), Task("debug", {}, HERE, role=ROLE)))
    assert (layers["inventory_hostname"], layers["inventory_hostname_short"], layers["role_path"]) == ("n1.rack1", "n1", "/roles/web")


def test_hostvars_render_in_the_place_of_their_host(tmp_path: Path) -> None:
    variables, states = make(tmp_path)
    states["n2"].learn({"ansible_cores": 4})
    hostvars = variables.of_host("n1.rack1")["hostvars"]
    assert (hostvars["n2"]["url"], hostvars["n2"]["a"], hostvars["n2"]["ansible_facts"]["cores"]) == ("http://n2", "host", 4)
    assert list(hostvars) == ["n1.rack1", "n2"]
    assert len(hostvars) == 2
    with pytest.raises(KeyError):
        hostvars["n3"]


def test_rendered_leaves_what_cannot_be_rendered_and_the_runs_own_names_out(tmp_path: Path) -> None:
    variables, states = make(tmp_path, broken="{{ nothing }}")
    states["n2"].vars["x"] = 1
    found = variables.rendered("n2")
    assert (found["url"], found["broken"], found["x"]) == ("http://n2", "{{ nothing }}", 1)
    assert "hostvars" not in found


FACTS = [
    ({"ansible_distribution": "Debian"}, {"distribution": "Debian"}, {"ansible_distribution": "Debian"}),
    ({"fabric": 4}, {"fabric": 4}, {"fabric": 4}),
    ({"ansible_local": {"a": 1}}, {"ansible_local": {"a": 1}}, {"ansible_local": {"a": 1}}),
    ({"module_setup": True}, {"module_setup": True}, {"module_setup": True}),
]


@pytest.mark.parametrize(("learnt", "facts", "injected"), FACTS)
def test_facts_are_seen_under_both_names(learnt: dict[str, Any], facts: dict[str, Any], injected: dict[str, Any]) -> None:
    state = HostState("h")
    state.learn(learnt)
    assert (state.facts, state.injected) == (facts, injected)
    state.forget_facts()
    assert (state.facts, state.injected) == ({}, {})
