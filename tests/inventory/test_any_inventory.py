"""Random inventories and patterns: what each host's variables are, and which hosts a pattern means, as ansible-core has it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodectl.diagnostics.model import Collector, Mistakes
from nodectl.inventory.load import add_playbook_folder, load_inventory
from nodectl.inventory.model import Inventory
from nodectl.inventory.patterns import select
from nodectl.lang.document import bare

HOSTS = ["n1", "n2", "web-1", "db.rack2"]
GROUPS = ["a", "b", "c", "d", "e"]
NAMES = ["v", "w"]
# Small texts that name the place they were written at would be clearer, but a shrunk example tells it as well.
VALUES = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 99), max_size=2)
QUICK = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


@st.composite
def inventories(draw: st.DrawFn) -> dict[str, Any]:
    """Groups whose children come later in the alphabet, so that none closes a circle; hosts in any of them."""
    groups: dict[str, Any] = {}
    for place, name in enumerate(GROUPS):
        children = draw(st.sets(st.sampled_from(GROUPS[place + 1 :]), max_size=2)) if GROUPS[place + 1 :] else set()
        hosts = draw(st.dictionaries(st.sampled_from(HOSTS), VALUES, max_size=2))
        values = draw(VALUES)
        if draw(st.integers(0, 4)) == 0:
            values["ansible_group_priority"] = draw(st.integers(1, 3))
        groups[name] = {"hosts": hosts, "children": dict.fromkeys(sorted(children)), "vars": values}
    return {"all": {"vars": draw(VALUES), "hosts": dict.fromkeys(HOSTS)}, **groups}


@st.composite
def folders(draw: st.DrawFn) -> dict[str, Any]:
    """group_vars and host_vars of one folder."""
    files = {f"group_vars/{name}.yml": draw(VALUES) for name in draw(st.sets(st.sampled_from(["all", *GROUPS]), max_size=3))}
    return files | {f"host_vars/{name}.yml": draw(VALUES) for name in draw(st.sets(st.sampled_from(HOSTS), max_size=2))}


def write(folder: Path, files: dict[str, Any]) -> None:
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(value))


@pytest.fixture(scope="module")
def merged() -> Callable[[Path], dict[str, dict[str, Any]]]:
    """What ansible-core says about every host of inv/hosts.yaml, for a playbook in the folder above."""
    from ansible.inventory.manager import InventoryManager
    from ansible.parsing.dataloader import DataLoader
    from ansible.plugins.loader import init_plugin_loader
    from ansible.vars.manager import VariableManager

    init_plugin_loader([])

    def ask(folder: Path) -> dict[str, dict[str, Any]]:
        loader = DataLoader()
        loader.set_basedir(str(folder))
        inventory = InventoryManager(loader=loader, sources=[str(folder / "inv" / "hosts.yaml")])
        variables = VariableManager(loader=loader, inventory=inventory)
        return {host.name: {name: variables.get_vars(host=host, include_hostvars=False).get(name) for name in NAMES} for host in inventory.get_hosts()}

    return ask


@given(inventories(), folders(), folders())
@QUICK
def test_which_value_holds(
    merged: Callable[[Path], dict[str, dict[str, Any]]], inventory: dict[str, Any], beside: dict[str, Any], playbook: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "inv", {"hosts.yaml": inventory, **beside})
        write(folder, playbook)
        found = Collector()
        ours = load_inventory([str(folder / "inv" / "hosts.yaml")], found)
        add_playbook_folder(ours, folder, found)
        assert not found.errors
        theirs = merged(folder)
        assert {host: {name: bare(ours.variables(host)).get(name) for name in NAMES} for host in ours.names()} == theirs


# -- patterns

TEXT = "all: {children: {gpu: {hosts: {'g[1:4]': }}, rack1: {hosts: {g1: , g2: , s1: }}, store: {hosts: {'s[1:2]': , g4: }}, none: }}\n"
ATOMS = ["gpu", "rack1", "store", "none", "all", "*", "g1", "s2", "g*", "s?", "~g[12]", "~.*1$", "gpu[0]", "gpu[-1]", "gpu[1:2]", "ra*"]


@st.composite
def patterns(draw: st.DrawFn) -> str:
    """The first part chooses; an index or a range cannot follow a colon in ansible-core's own reading, so those use commas."""
    parts = draw(st.lists(st.tuples(st.sampled_from(["", "&", "!"]), st.sampled_from(ATOMS)), min_size=1, max_size=4))
    text = [mark + atom for mark, atom in parts]
    return (":" if not any("[" in atom for atom in text) and draw(st.booleans()) else ",").join(text)


@pytest.fixture(scope="module")
def pattern_inventory(tmp_path_factory: pytest.TempPathFactory) -> tuple[Inventory, Any]:
    from ansible.inventory.manager import InventoryManager
    from ansible.parsing.dataloader import DataLoader
    from ansible.plugins.loader import init_plugin_loader

    init_plugin_loader([])
    path = tmp_path_factory.mktemp("patterns") / "hosts.yaml"
    path.write_text(TEXT)
    return load_inventory([str(path)], Collector()), InventoryManager(loader=DataLoader(), sources=[str(path)])


def chosen_by(inventory: Inventory, pattern: str) -> list[str] | None:
    """None where nodectl is stricter: a part of the pattern names nothing."""
    try:
        return select(inventory, pattern)
    except Mistakes:
        return None


@given(patterns())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_which_hosts_a_pattern_means(pattern_inventory: tuple[Inventory, Any], pattern: str) -> None:
    ours, theirs = pattern_inventory
    chosen = chosen_by(ours, pattern)
    if chosen is None:
        return
    assert set(chosen) == {host.name for host in theirs.get_hosts(pattern)}
    assert chosen == [name for name in ours.names() if name in chosen]
