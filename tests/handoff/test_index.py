"""The index names every file, says what each is for, and the commands that it gives are those that the files take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodectl.handoff.formats import FORMATS
from nodectl.handoff.pool import pool_of
from nodectl.handoff.write import Handoff, write_handoff
from nodectl.wire.event import Event
from tests.handoff.pool_events import check, machine, node, start, verdict

EVENTS = [*start("n1", "N2", "n3"), node("n1"), verdict("n1"), Event("node", 1.0, "N2", node("n2").data), verdict("N2"), node("n3"), verdict("n3", "fail", "slow\nvery")]
# Files that belong to no format.
ALWAYS = {"README.md", "evidence.json", "excluded.json", "handoff.json"}


@pytest.fixture
def handoff(tmp_path: Path) -> Handoff:
    return write_handoff(EVENTS, tmp_path / "h")


def there(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_what_is_there_is_what_the_index_says(handoff: Handoff) -> None:
    index = json.loads((handoff.path / "handoff.json").read_text())
    assert {name for one in index["formats"].values() for name in one["files"]} == there(handoff.path) - ALWAYS
    assert set(handoff.artefacts) == there(handoff.path)
    assert (index["handed_off"], index["world_size"], index["run_id"]) == (["n1", "N2"], 16, "20260801T000000Z-ab12")
    assert index["excluded"] == {"n3": "failed: slow\nvery"}
    assert all(one["for"] and one["use"] for one in index["formats"].values())


def test_a_host_that_a_format_cannot_express_is_named_there_and_nowhere_else_missing(handoff: Handoff) -> None:
    index = json.loads((handoff.path / "handoff.json").read_text())["formats"]
    assert {name for name, one in index.items() if "N2" in one["refused"]} == {"kubernetes", "skypilot"} == {name for name, hosts in handoff.refused.items() if "N2" in hosts}
    assert "- not in it: N2, because " in (handoff.path / "README.md").read_text()
    assert "NodeName=N2 " in (handoff.path / "slurm/nodes.conf").read_text()
    assert handoff.hosts == ("n1", "N2")


def test_the_page_for_people(handoff: Handoff) -> None:
    text = (handoff.path / "README.md").read_text()
    assert "2 nodes proven, 1 excluded, world size 16. Judged 1970-01-01T00:00:02Z: a node is what it was then.\n" in text
    assert "- n3: failed: slow very\n" in text
    assert all(f"## {name}: {one.purpose}\n" in text and f"    {one.use[0]}\n" in text for name, one in FORMATS.items())
    assert "`env/`" in text
    assert "env/n1.env" not in text


@pytest.mark.parametrize("simulated", [True, False])
def test_stand_ins_for_hardware_are_said(simulated: bool, tmp_path: Path) -> None:
    write_handoff([*EVENTS, check("n1", simulated=simulated)], tmp_path)
    assert json.loads((tmp_path / "handoff.json").read_text())["simulated"] is simulated
    assert ("the speed is not" in (tmp_path / "README.md").read_text()) is simulated


@pytest.mark.parametrize(("at", "said"), [
    ([5.0, 1796034106.2], "2026-11-30T10:21:46Z"), ([1796034106.2, 5.0], "2026-11-30T10:21:46Z"), ([], ""), ([float("nan")], ""), ([float("inf")], ""), ([1e300], ""), ([-1e300], ""),
])
def test_how_old_the_proof_is(at: list[float], said: str) -> None:
    """By the journal's own clock, so that the same events make the same bytes."""
    assert pool_of([Event("verdict", one, "n1", {"verdict": "pass", "reasons": []}) for one in at]).judged == said


def test_every_script_that_the_index_names_is_there_and_runs(handoff: Handoff) -> None:
    scripts = {word.lstrip("./") for one in FORMATS.values() for line in one.use for word in line.split() if word.endswith(".sh")}
    assert scripts == {"torchrun.sh", "slurm/apply.sh", "kubernetes/apply.sh"}
    assert all((handoff.path / name).stat().st_mode & 0o111 for name in scripts)


@pytest.mark.parametrize("name", FORMATS)
def test_one_format_alone(name: str, tmp_path: Path) -> None:
    """And nothing of another handoff that lay in the folder."""
    write_handoff([*start("n9"), node("n9"), verdict("n9")], tmp_path)
    (tmp_path / "mine.txt").write_text("stays")
    (tmp_path / "slurm/mine.conf").write_text("stays")
    result = write_handoff(EVENTS, tmp_path, [name])
    assert list(json.loads((tmp_path / "handoff.json").read_text())["formats"]) == [name]
    assert there(tmp_path) == set(result.artefacts) | {"mine.txt", "slurm/mine.conf"}
    assert set(result.artefacts) > ALWAYS
    assert all("n9" not in (tmp_path / file).read_text() for file in result.artefacts)


def test_the_same_events_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_handoff(EVENTS, tmp_path / name)
    assert {file: (tmp_path / "a" / file).read_bytes() for file in there(tmp_path / "a")} == {file: (tmp_path / "b" / file).read_bytes() for file in there(tmp_path / "b")}


@pytest.mark.parametrize("fate", ["fail", "unknown", "skipped", ""])
def test_no_format_ever_names_a_node_as_usable_that_is_not_proven(fate: str, tmp_path: Path) -> None:
    """By the words with which each format lets a node take part."""
    odd = "n1-odd-one"
    events = [*start(odd, "n2"), Event("node", 1.0, odd, node("n1", address="192.0.2.77", fabric_address="10.0.0.77", machine=machine("odd-machine")).data)]
    write_handoff([*events, *([verdict(odd, fate, "x")] if fate else []), node("n2"), verdict("n2")], tmp_path)
    used = {name: (tmp_path / name).read_text() for name in there(tmp_path) - {"evidence.json"}}
    assert all(word not in text for text in used.values() for word in ("10.0.0.77", "odd-machine"))
    lines = [(name, line) for name, text in used.items() for line in text.splitlines() if odd in line or "192.0.2.77" in line]
    assert {name for name, _ in lines} == {"README.md", "excluded.json", "handoff.json", "slurm/nodes.conf", "slurm/apply.sh", "kubernetes/nodes.yaml", "kubernetes/apply.sh"}
    assert all("State=DRAIN" in line for name, line in lines if name == "slurm/nodes.conf")
    assert all(line.startswith("drain ") for name, line in lines if name == "slurm/apply.sh")
    assert "untaint" not in "".join(line for name, line in lines if name == "kubernetes/apply.sh")
