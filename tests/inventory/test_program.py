"""Inventories that a program prints, as files of a folder too, and what is said about programs that print something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodectl.diagnostics.model import Collector
from nodectl.engine import outside
from nodectl.engine.outside import output
from nodectl.inventory.load import load_inventory
from nodectl.inventory.model import Inventory


def program(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(0o755)
    return path


def prints(path: Path, text: str) -> Path:
    return program(path, f"cat <<'EOF'\n{text}\nEOF")


def load(*sources: Path) -> tuple[Inventory, Collector]:
    found = Collector()
    return load_inventory([str(source) for source in sources], found, run=output), found


def test_meta_spares_the_calls_per_host(tmp_path: Path) -> None:
    text = '{"gpu": {"hosts": ["n1", "n2"], "vars": {"a": 1}, "children": ["big"]}, "big": ["n3"], "_meta": {"hostvars": {"n1": {"b": [1]}, "unknown": {}}}}'
    inventory, found = load(prints(tmp_path / "cloud", text))
    assert not found.errors
    assert inventory.group_members("gpu") == ["n1", "n2", "n3"]
    assert inventory.variables("n1") == {"a": 1, "b": [1]}
    assert inventory.variables("n3") == {"a": 1}


def test_without_meta_each_host_is_asked_about(tmp_path: Path) -> None:
    cloud = program(tmp_path / "cloud.sh", 'if [ "$1" = --host ]; then echo "{\\"me\\": \\"$2\\"}"; else echo \'{"g": ["n1", "n2"]}\'; fi')
    inventory, found = load(cloud)
    assert not found.errors
    assert [inventory.variables(host) for host in inventory.names()] == [{"me": "n1"}, {"me": "n2"}]


def test_a_program_among_the_files_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "inv"
    (folder / "group_vars").mkdir(parents=True)
    prints(folder / "10-cloud", '{"gpu": ["n1"], "_meta": {"hostvars": {}}}')
    (folder / "20-own.yml").write_text("gpu: {hosts: {n2: }}\n")
    (folder / "group_vars/gpu.yml").write_text("x: 5\n")
    inventory, found = load(folder)
    assert not found.errors
    assert {host: inventory.variables(host) for host in inventory.names()} == {"n1": {"x": 5}, "n2": {"x": 5}}


def test_an_executable_yaml_file_is_read_and_not_run(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text("all: {hosts: {n1: }}\n")
    hosts.chmod(0o755)
    inventory, found = load(hosts)
    assert not found.errors
    assert inventory.names() == ["n1"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["echo no token >&2; exit 3"], "ended with 3: no token"), (["echo '[1]'"], "prints no JSON object"), (["echo '\"x\"'"], "prints no JSON object"),
        (["echo '{\"g\": 1}'"], "is no mapping"), (["echo '{\"g\": {\"hosts\": 1}}'"], "is no list"), (["printf '\\377'"], "not UTF-8"),
        (["echo '{\"g\": {\"hosts\": [\"a b\"]}}'"], "is not a host name"), (["echo '{\"g\": {\"children\": [\"g\"]}}'"], "cannot be inside"),
        (["echo '{'"], "not valid YAML"), (["exec sleep 9"], "did not end within"),
    ],
)  # fmt: skip
def test_what_is_no_inventory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], said: str) -> None:
    monkeypatch.setattr(outside, "LIMIT", 0.5)
    _, found = load(program(tmp_path / "cloud", *lines))
    assert any(said in one.message for one in found.errors), [one.message for one in found]


def test_nothing_printed_is_no_host(tmp_path: Path) -> None:
    inventory, found = load(program(tmp_path / "cloud", "true"))
    assert (inventory.names(), list(found)) == ([], [])


def test_a_program_of_the_wrong_kind_is_told(tmp_path: Path) -> None:
    path = tmp_path / "cloud"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)
    _, found = load(path)
    assert "cannot be run" in next(iter(found)).message
