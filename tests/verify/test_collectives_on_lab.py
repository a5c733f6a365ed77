"""Sweeps over real hosts, and a host whose ranks get too little of a core."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodectl.cli.main import run
from nodectl.verify.group.operations import OPS, PLACES
from tests.conftest import Lab

pytestmark = [pytest.mark.lab, pytest.mark.alone]


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (folder / "events.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["kind"] == kind]


def test_one_command_sweeps_all_collectives_in_one_start(lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab.lift_all()
    folder = tmp_path / "run"
    argv = ["collective", "all", str(lab.hosts_yaml), "-b", "1K", "-e", "1M", "-f", "32", "-n", "3", "-d", "float", "--run-dir", str(folder)]
    assert run(argv) == 0, capsys.readouterr().out
    out = capsys.readouterr().out
    sweeps = {sweep["op"]: sweep for sweep in events(folder, "sweep")}
    assert set(sweeps) == set(OPS)
    for op, sweep in sweeps.items():
        assert sweep["hosts"] == list(lab.names)
        assert {row["in_place"] for row in sweep["rows"]} == set(PLACES[op])
        assert len(sweep["rows"]) == 3 * len(PLACES[op])
        assert all(row["wrong"] == 0 and len(row["ranks"]) == len(lab.names) and row["busbw"] > 1e3 for row in sweep["rows"])
        assert f"# {op} over {len(lab.names)} ranks on {len(lab.names)} nodes, gloo" in out
    # what the hosts' own interfaces counted is what had to be sent, and its headers
    traffic = [check for check in events(folder, "check") if check["name"] == "network.traffic"]
    assert len(traffic) == len(lab.names)
    assert all(0.9 < check["value"] < 3 for check in traffic)


SUITE = """
[[step]]
kind = "route"
deadline = 20
[[step]]
kind = "torch"
deadline = 120
[[step]]
kind = "all_reduce"
deadline = 120
sizes = ["1 MiB"]
gpu_sizes = ["1 GiB"]
iterations = 3
warmup = 1
timeout = 60
"""


def test_the_rank_that_is_held_back_is_named_and_its_cause(lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab.lift_all()
    slow = lab.names[1]
    (tmp_path / "suite.toml").write_text(SUITE)
    # A fifth of a core: torch starts three times on it, and each takes it 16 s. The others have a core or more, because this test runs alone.
    lab.fault(slow, "cpu-starved", "20")
    try:
        assert run(["verify", str(lab.hosts_yaml), "--suite", str(tmp_path / "suite.toml"), "--run-dir", str(tmp_path / "run")]) == 3, capsys.readouterr().out
    finally:
        lab.lift_all()
    found = {check["host"]: check for check in events(tmp_path / "run", "check") if check["name"] == "network.slow_rank"}
    assert {host: check["verdict"] for host, check in found.items()} == {host: "fail" if host == slow else "pass" for host in lab.names}
    assert "of that time: other programs run on this node, or its processes are held back" in found[slow]["reason"]
