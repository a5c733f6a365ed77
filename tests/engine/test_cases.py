"""Every case file: what each host did, in order; how the run ended; which values variables have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.playing import Case, cases

KNOWN_KEYS = {"about", "playbook", "inventory", "files", "options", "down", "dies", "expect", "oracle", "stats", "deviation"}


DEVIATIONS = (Path(__file__).parents[2] / "docs/deviations.md").read_text("utf-8")


@pytest.mark.parametrize("case", [case for case in cases() if not case.data.get("oracle", True)], ids=lambda case: case.name)
def test_what_is_not_compared_is_a_documented_difference(case: Case) -> None:
    assert case.data["deviation"] in DEVIATIONS


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_case(case: Case, tmp_path: Path) -> None:
    assert set(case.data) <= KNOWN_KEYS
    played = case.play(tmp_path)
    expect = dict(case.data["expect"])
    assert played.result.exit_code == expect.pop("exit")
    status = expect.pop("status", {})
    assert {host: played.result.status[host] for host in status} == status
    variables = expect.pop("vars", {})
    known = played.result.variables("h1")
    assert {name: known.get(name) for name in variables} == variables
    assert {host: played.of(host) for host in expect} == expect
