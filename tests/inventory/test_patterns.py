"""Host patterns, compared with ansible-core's where both mean the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.diagnostics.model import Collector, Mistakes
from nodectl.inventory.load import load_inventory
from nodectl.inventory.model import Inventory
from nodectl.inventory.patterns import check_hosts, select, split
from nodectl.lang.playbook import Play, Playbook
from nodectl.wire.origin import Origin

TEXT = """
all:
  children:
    gpu: {hosts: {"gpu-[01:06]": }, children: {rack1: {hosts: {"gpu-[01:02]": }}}}
    storage: {hosts: {s1: , s2: , gpu-01: }}
    dash-ed: {hosts: {x1: }}
    none:
"""
SHARED = [
    "all", "*", "gpu", "gpu:storage", "gpu,storage", "gpu:!rack1", "gpu:&storage", "gpu:&storage:!gpu-01", "!gpu", "gpu-0[!1-4]", "gpu-0?", "gpu-*",
    "~gpu-0[3-5]", "~(s|x).*", "gpu[0]", "gpu[-1]", "gpu[1:2]", "gpu[3:]", "s1", "s1,s2", "dash-ed", "none", "rack*", "storage:gpu-03", "&gpu", "all:!~s.*", "x1:s*",
]  # fmt: skip


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inventory") / "hosts.yaml"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def inventory(hosts: Path) -> Inventory:
    return load_inventory([str(hosts)], Collector())


@pytest.fixture(scope="module")
def oracle(hosts: Path) -> Any:
    from ansible.inventory.manager import InventoryManager
    from ansible.parsing.dataloader import DataLoader
    from ansible.plugins.loader import init_plugin_loader

    init_plugin_loader([])
    return InventoryManager(loader=DataLoader(), sources=[str(hosts)])


@pytest.mark.parametrize("pattern", SHARED)
def test_patterns_choose_the_hosts_that_ansible_chooses(inventory: Inventory, oracle: Any, pattern: str) -> None:
    assert set(select(inventory, pattern)) == {host.name for host in oracle.get_hosts(pattern)}


@pytest.mark.parametrize(
    ("pattern", "limit", "names"),
    [
        ("gpu-[01:03]", None, ["gpu-01", "gpu-02", "gpu-03"]),
        ("gpu-0[1-3]", None, ["gpu-01", "gpu-02", "gpu-03"]),
        ("all", "gpu-[05:06]", ["gpu-05", "gpu-06"]),
        ("gpu", "storage", ["gpu-01"]),
        ("storage", "x1", []),
        ("none", None, []),
        ("localhost", None, ["localhost"]),
        ("localhost,s1", None, ["s1", "localhost"]),
        ("s2,s1", None, ["s1", "s2"]),
    ],
)
def test_ranges_limits_and_order(inventory: Inventory, pattern: str, limit: str | None, names: list[str]) -> None:
    """D31: a range means what it means in the inventory. Order is always the inventory's."""
    assert select(inventory, pattern, limit) == names


@pytest.mark.parametrize(
    ("pattern", "limit", "said"),
    [
        ("gpus", None, "did you mean 'gpu'"),
        ("storge", None, "did you mean 'storage'"),
        ("gpu:!rack11", None, "did you mean 'rack1'"),
        ("gpu,nothing_at_all", None, "groups of this inventory: gpu"),
        ("gpu", "gpu-11", "'gpu-01'"),
        ("q*", None, "no group or host 'q*'"),
        ("gpu-[05:09]", None, "no host 'gpu-07'"),
        ("gpu-[9:1]", None, "is empty"),
        ("~gpu[", None, "not a regular expression"),
        ("gpu-0[12]", None, "no group or host 'gpu-0[12]'"),
        ("gpu[9]", None, "no group or host 'gpu[9]'"),
        ("", None, "empty host pattern"),
    ],
)
def test_what_names_nothing_is_a_mistake(inventory: Inventory, pattern: str, limit: str | None, said: str) -> None:
    """D32: Ansible warns, does nothing and exits 0; a misspelt exclusion would even run where it must not."""
    with pytest.raises(Mistakes) as caught:
        select(inventory, pattern, limit)
    text = " ".join(f"{one.message} {one.help}" for one in caught.value.diagnostics)
    assert said in text


def test_several_parts_that_name_nothing_are_all_told(inventory: Inventory) -> None:
    with pytest.raises(Mistakes) as caught:
        select(inventory, "gpus,storge:!rack11")
    assert len(caught.value.diagnostics) == 2


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [("a:b", ["a", "b"]), ("a,b:c", ["a", "b:c"]), ("n[1:3]:!b", ["n[1:3]", "!b"]), ("::1", ["::1"]), ("fe80::1", ["fe80::1"]), (" a , b ,", ["a", "b"])],
)
def test_split(pattern: str, parts: list[str]) -> None:
    assert split(pattern) == parts


def test_plays_are_checked_at_their_hosts_line(inventory: Inventory) -> None:
    def play(hosts: str, line: int) -> Play:
        at = Origin("site.yml", line, 10, len(hosts))
        return Play("p", hosts, at, at, (), (), Path())

    found = Collector()
    check_hosts(Playbook(Path("site.yml"), (play("gpus", 1), play("gpu", 5), play("{{ later }}", 9), play("", 11), play("storge", 13))), inventory, found)
    assert [(one.code, str(one.origin)) for one in found] == [("E304", "site.yml:1:10"), ("E304", "site.yml:13:10")]
