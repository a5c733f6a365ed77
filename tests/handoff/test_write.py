"""The handoff as a pure function of a run's events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodectl.handoff.write import write_handoff
from nodectl.wire.event import Event
from tests.handoff.pool_events import check, node, start, verdict


def lost(host: str, kind: str = "host.lost") -> Event:
    return Event(kind, 3.0, host, {"reason": "no byte for 20 s", "why": "lost", "hint": "", "task": "verify: pairs"})


def failed(host: str) -> Event:
    return Event("task.end", 1.0, host, {"task": "Make the disks", "status": "failed", "result": {"msg": "ext4 on it"}})


# events of n1 beside a good n2; whether n1 is handed off; the kind and a word of the reason where it is not
FATES: list[tuple[list[Event], bool, str, str]] = [
    ([node("n1"), verdict("n1")], True, "", ""),
    ([node("n1"), verdict("n1", "fail", "network.pairs: 12 MB/s")], False, "failed", "12 MB/s"),
    ([node("n1"), verdict("n1", "unknown", "clock: timed out")], False, "unknown", "timed out"),
    ([verdict("n1")], False, "unknown", "never described"),
    ([node("n1"), verdict("n1"), lost("n1")], False, "lost", "no byte"),
    ([lost("n1"), verdict("n1", "unknown", "all_reduce: lost")], False, "lost", "no byte"),
    ([lost("n1", "host.unreachable")], False, "unreachable", "no byte"),
    ([lost("n1", "host.stopped")], False, "stopped", "no byte"),
    ([failed("n1")], False, "task_failed", "ext4 on it"),
    ([], False, "not_verified", "not verified"),
    ([node("n1"), verdict("n1"), verdict("n1", "fail", "later: worse")], False, "failed", "later"),
    ([node("n1"), verdict("n1", "fail", "first"), verdict("n1")], True, "", ""),
]


@pytest.mark.parametrize(("events", "handed", "kind", "word"), FATES)
def test_fates(events: list[Event], handed: bool, kind: str, word: str, tmp_path: Path) -> None:
    result = write_handoff([*start("n1", "n2"), *events, node("n2"), verdict("n2")], tmp_path / "handoff")
    assert result.hosts == (("n1", "n2") if handed else ("n2",))
    assert result.world_size == (16 if handed else 8)
    left_out = json.loads((tmp_path / "handoff/excluded.json").read_text())
    assert set(left_out) == (set() if handed else {"n1"})
    if not handed:
        assert left_out["n1"]["kind"] == kind
        assert word in " ".join(left_out["n1"]["reasons"])
    assert ("10.0.0.1 " in (tmp_path / "handoff/hostfile").read_text()) is handed


def test_hostfile_and_env(tmp_path: Path) -> None:
    write_handoff([*start("n1", "n2"), node("n1"), verdict("n1"), node("n2", nproc=4), verdict("n2")], tmp_path)
    assert (tmp_path / "hostfile").read_text() == "10.0.0.1 slots=8\n10.0.0.2 slots=4\n"
    assert (tmp_path / "env/n2.env").read_text() == "GLOO_SOCKET_IFNAME=eth0\nNCCL_SOCKET_IFNAME==eth0\n"
    nodes = json.loads((tmp_path / "nodes.json").read_text())
    assert [(one["host"], one["nproc"], one["backend"]) for one in nodes] == [("n1", 8, "nccl"), ("n2", 4, "nccl")]


def test_no_passing_node_leaves_nothing_to_launch_with(tmp_path: Path) -> None:
    write_handoff([*start("n1"), node("n1"), verdict("n1")], tmp_path)
    assert (tmp_path / "torchrun.sh").exists()
    result = write_handoff([*start("n1"), node("n1"), verdict("n1", "fail", "bad")], tmp_path)
    assert (result.hosts, result.world_size) == ((), 0)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == [
        "README.md", "evidence.json", "excluded.json", "handoff.json", "kubernetes/apply.sh", "kubernetes/nodes.yaml",
        "slurm/apply.sh", "slurm/gres.conf", "slurm/nodes.conf",
    ]


def test_evidence_holds_floor_and_source_but_no_raw_output(tmp_path: Path) -> None:
    write_handoff([*start("n1"), check("n1"), check("n1", name="disk.x", simulated=True), node("n1"), verdict("n1")], tmp_path)
    found = json.loads((tmp_path / "evidence.json").read_text())
    assert found["simulated"] is True
    assert found["handed_off"] == ["n1"]
    assert found["checks"]["n1"][0] == {
        "name": "network.pairs", "verdict": "pass", "value": 1e9, "unit": "B/s", "floor": 3e7, "reason": "r", "source": "s", "simulated": False,
        "step": None, "waiver": None,
    }


def test_no_password_reaches_a_file(tmp_path: Path) -> None:
    events = [*start("n1"), node("n1", password="hunter2", ansible_become_password="hunter2"), verdict("n1")]
    write_handoff(events, tmp_path)
    assert all("hunter2" not in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_a_local_node_needs_no_ssh(tmp_path: Path) -> None:
    write_handoff([*start("n1"), node("n1", connection="local"), verdict("n1")], tmp_path)
    assert "Host" not in (tmp_path / "ssh_config").read_text()
    assert "local_nodes=(1)" in (tmp_path / "torchrun.sh").read_text()
