"""Inventories from all sources; what is wrong in them; who wins."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from nodectl.diagnostics.model import Collector
from nodectl.diagnostics.order import in_order
from nodectl.diagnostics.render_human import render_human
from nodectl.inventory.load import add_playbook_folder, load_inventory
from nodectl.inventory.model import Inventory
from nodectl.inventory.ranges import BadRange, expand, split_port

MISTAKES = Path(__file__).parent / "mistakes"


def load(*sources: str | Path) -> tuple[Inventory, Collector]:
    found = Collector()
    return load_inventory([str(source) for source in sources], found), found


def good(tmp_path: Path, text: str, name: str = "hosts.yaml") -> Inventory:
    (tmp_path / name).write_text(text)
    inventory, found = load(tmp_path / name)
    assert not found.errors, [one.message for one in found]
    return inventory


@pytest.mark.parametrize("case", sorted(path.name for path in MISTAKES.iterdir() if path.suffix in (".yaml", ".ini")))
def test_all_mistakes_are_told_with_their_places(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`NODECTL_WRITE_CASES=1 pytest tests/inventory` writes the expected texts anew; read the difference before it is committed."""
    monkeypatch.chdir(MISTAKES)
    found = load(case)[1]
    text = "\n\n".join(render_human(one, colour=False) for one in in_order(found)) + "\n"
    expected = MISTAKES / f"{case}.txt"
    if os.environ.get("NODECTL_WRITE_CASES"):
        expected.write_text(text)
    assert text == expected.read_text()
    assert found.errors


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("n1", ["n1"]),
        ("gpu-[08:11].r1", ["gpu-08.r1", "gpu-09.r1", "gpu-10.r1", "gpu-11.r1"]),
        ("n[9:11]", ["n9", "n10", "n11"]),
        ("n[a:c]", ["na", "nb", "nc"]),
        ("n[0:10:5]", ["n0", "n5", "n10"]),
        ("r[1:2]n[a:b]", ["r1na", "r1nb", "r2na", "r2nb"]),
        ("n[:2]", ["n0", "n1", "n2"]),
        ("n[000:002]", ["n000", "n001", "n002"]),
    ],
)
def test_ranges(pattern: str, names: list[str]) -> None:
    assert expand(pattern) == names


@pytest.mark.parametrize("pattern", ["n[1]", "n[3:1]", "n[c:a]", "n[1:b]", "n[1:3", "n1:3]", "n[1:3:0]", "n[1:3:x]", "n[0:9999999]", "n[0:999]m[0:999]", "n[01:100]", "n[]"])
def test_ranges_that_cannot_be(pattern: str) -> None:
    with pytest.raises(BadRange):
        expand(pattern)


@pytest.mark.parametrize(
    ("text", "parts"),
    [("n1:2222", ("n1", 2222)), ("n1", ("n1", None)), ("n[1:2]:22", ("n[1:2]", 22)), ("n[1:22]", ("n[1:22]", None)), ("fe80::1", ("fe80::1", None)), ("[fe80::1]", ("[fe80::1]", None))],
)
def test_ports(text: str, parts: tuple[str, int | None]) -> None:
    assert split_port(text) == parts


def test_who_wins(tmp_path: Path) -> None:
    """all < parent < child by depth, then by name; the host wins."""
    inventory = good(
        tmp_path,
        """
all:
  vars: {v: all, a: all}
  children:
    top:
      vars: {v: top, t: top}
      children:
        b: {hosts: {n1: , n2: {v: own}}, vars: {v: b, s: b}}
        a: {hosts: {n1: }, vars: {v: a, s: a}}
""",
    )
    assert inventory.variables("n1") == {"v": "b", "a": "all", "t": "top", "s": "b"}
    assert inventory.variables("n2")["v"] == "own"
    assert inventory.groups_of("n1") == ["a", "b", "top"]
    assert inventory.group_members("top") == inventory.names() == ["n1", "n2"]


def test_vars_beside_the_playbook_win_over_those_beside_the_inventory(tmp_path: Path) -> None:
    for place, value in (("inv", "inventory"), ("play", "playbook")):
        folder = tmp_path / place / "group_vars"
        folder.mkdir(parents=True)
        (folder / "all.yml").write_text(f"a: {value}\n")
        (folder / "gpu.yml").write_text(f"g: {value}\n")
    (tmp_path / "inv/hosts.yaml").write_text("gpu: {hosts: {n1: }, vars: {g: group, a: group}}\n")
    inventory, found = load(tmp_path / "inv/hosts.yaml")
    assert inventory.variables("n1") == {"a": "inventory", "g": "inventory"}
    add_playbook_folder(inventory, tmp_path / "play", found)
    assert inventory.variables("n1") == {"a": "playbook", "g": "playbook"}
    assert not list(found)


def test_group_vars_are_checked_where_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/gpu.yml").write_text("a: 1\nnetwork_tier: fast\nb: ['{{ x', {c: '{% y %}'}]\nfile_mounts: {/d: nowhere}\n")
    (tmp_path / "hosts.yaml").write_text("gpu: {hosts: {n1: }}\n")
    _, found = load(tmp_path / "hosts.yaml")
    places = [(one.code, str(one.origin).removeprefix(f"{tmp_path}/group_vars/")) for one in found]
    assert places == [("E306", "gpu.yml:2:15"), ("E213", "gpu.yml:3:5"), ("E213", "gpu.yml:3:17"), ("E306", "gpu.yml:4:15")]


def test_what_a_range_of_hosts_shares_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text("all: {hosts: {'n[1:500]': {disk_tier: fast, a: '{{ b'}}}\n")
    assert [one.code for one in load(tmp_path / "hosts.yaml")[1]] == ["E306", "E213"]


def test_templates_stay_as_they_are(tmp_path: Path) -> None:
    inventory = good(tmp_path, "all: {hosts: {n1: {a: '{{ b }}', c: [{d: '{{ e }}'}]}}}")
    assert inventory.variables("n1") == {"a": "{{ b }}", "c": [{"d": "{{ e }}"}]}


def test_localhost_needs_no_entry() -> None:
    inventory, found = load("n1,")
    assert inventory.variables("localhost") == {"ansible_connection": "local"}
    with pytest.raises(KeyError):
        inventory.variables("n2")
    assert not list(found)


def test_names_on_the_command_line() -> None:
    inventory, found = load("n1, n2:2222,n[3:4],")
    assert inventory.names() == ["n1", "n2", "n3", "n4"]
    assert inventory.variables("n2") == {"ansible_port": 2222}
    assert inventory.group_members("ungrouped") == inventory.names()
    assert not list(found)


def test_a_list_of_names_longer_than_a_file_name_may_be() -> None:
    inventory, found = load(",".join(f"node-{number:04}.rack.example" for number in range(500)))
    assert len(inventory.names()) == 500
    assert not list(found)


def test_a_host_that_a_later_source_puts_into_a_group_is_ungrouped_no_more(tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text("gpu: {hosts: {n1: }}\n")
    inventory, _ = load("n1,n2,", tmp_path / "g.yaml")
    assert inventory.group_members("ungrouped") == ["n2"]
    assert inventory.groups_of("n1") == ["gpu"]


@pytest.mark.parametrize(
    ("name", "text", "host"),
    [
        ("hosts", "---\nall: {hosts: {n1: }}\n", "n1"),
        ("inventory", "all:\n  hosts:\n    n1:\n", "n1"),
        ("hosts.ini", "[gpu]\nn1\n", "n1"),
        ("hosts.json", '{"all": {"hosts": {"n1": {}}}}', "n1"),
        ("hosts", "n1 ansible_host=1.2.3.4\n", "n1"),
    ],
)
def test_the_kind_of_a_file_is_seen_from_its_text(tmp_path: Path, name: str, text: str, host: str) -> None:
    assert good(tmp_path, text, name).names() == [host]


@pytest.mark.parametrize("forms", ["gpu:", "gpu: {hosts: }", "gpu: {hosts: {}, children: , vars: }"])
def test_empty_groups_are_groups(tmp_path: Path, forms: str) -> None:
    assert good(tmp_path, forms).group_members("gpu") == []


def test_what_is_no_inventory(tmp_path: Path) -> None:
    program = tmp_path / "inventory.sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "hosts.toml").write_text("[all]\n")
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/all.yml").write_text("- 1\n")
    _, found = load(program, tmp_path / "hosts.toml", tmp_path / "absent.yaml")
    assert [one.code for one in found] == ["E316", "E301", "E109", "E301"]
    assert "none is run here" in next(iter(found)).message


def test_a_big_inventory_loads_quickly(tmp_path: Path) -> None:
    lines = ["all:", "  children:", "    gpu:", "      hosts:"]
    lines += [f"        n{number}: {{ansible_host: 10.0.{number // 250}.{number % 250}, rack: r{number // 32}}}" for number in range(3000)]
    inventory = good(tmp_path, "\n".join(lines) + "\n")
    assert len(inventory.names()) == 3000
    assert inventory.variables("n2999")["rack"] == "r93"
