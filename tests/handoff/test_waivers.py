"""Nodes that are handed off although a check of theirs is no pass: only by a waiver that says who and why, and never without its name beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodectl.handoff.write import write_handoff
from nodectl.wire.event import Event
from tests.handoff.pool_events import check, node, start, verdict, waived

WAIVER = {"check": "clock.offset", "who": "ops", "why": "ticket 7", "until": "2026-12-31"}


def test_it_is_handed_off_and_every_list_names_the_waiver(tmp_path: Path) -> None:
    events = [*start("n1", "n2"), node("n1"), check("n1"), waived("n1"), verdict("n1", "skipped"), node("n2"), verdict("n2")]
    result = write_handoff(events, tmp_path)
    assert (result.hosts, result.waived) == (("n1", "n2"), ("n1",))
    assert json.loads((tmp_path / "handoff.json").read_text())["waived"] == {"n1": [WAIVER]}
    nodes = json.loads((tmp_path / "nodes.json").read_text())
    assert [(one["verdict"], one["waivers"]) for one in nodes] == [("skipped", [WAIVER]), ("pass", [])]
    assert "- n1: clock.offset, waived by ops until 2026-12-31: ticket 7\n" in (tmp_path / "README.md").read_text()
    assert "nodectl/verdict: skipped" in (tmp_path / "kubernetes/nodes.yaml").read_text()
    assert "NodeName=n1 " in (tmp_path / "slurm/nodes.conf").read_text()
    assert json.loads((tmp_path / "excluded.json").read_text()) == {}


# what the events say beside a verdict of "skipped"; all of them keep the node out
NOT_WAIVED: list[tuple[str, list[Event]]] = [
    ("no check was skipped", [check("n1")]), ("no waiver", [check("n1", verdict="skipped")]), ("a waiver of another shape", [waived("n1"), check("n1", verdict="skipped", waiver="ops")]),
    ("nobody", [waived("n1", who="")]), ("no reason", [waived("n1", why="")]), ("one of two without", [waived("n1"), check("n1", verdict="skipped", waiver={"who": "ops"})]),
]


@pytest.mark.parametrize("events", [events for _, events in NOT_WAIVED], ids=[name for name, _ in NOT_WAIVED])
def test_skipped_without_a_full_waiver_is_not_handed_off(events: list[Event], tmp_path: Path) -> None:
    result = write_handoff([*start("n1"), node("n1"), *events, verdict("n1", "skipped", "x")], tmp_path)
    assert result.hosts == ()
    found = json.loads((tmp_path / "excluded.json").read_text())["n1"]
    assert found["kind"] == "unknown"
    assert "names who waived it and why" in found["reasons"][0]


@pytest.mark.parametrize("value", ["fail", "unknown"])
def test_a_waiver_excuses_no_other_check(value: str, tmp_path: Path) -> None:
    assert write_handoff([*start("n1"), node("n1"), waived("n1"), verdict("n1", value, "x")], tmp_path).hosts == ()


@pytest.mark.parametrize("changes", [{"until": None}, {"until": 7}, {"who": ["a", "b"]}, {"why": "line\nbreak \x1b[2J"}, {"check": "@RUN@"}])
def test_odd_waivers_stay_in_their_line(changes: dict[str, Any], tmp_path: Path) -> None:
    """The list stands in a person's page: what is in it is text."""
    write_handoff([*start("n1"), node("n1"), waived("n1", **changes), verdict("n1", "skipped")], tmp_path)
    lines = (tmp_path / "README.md").read_text().splitlines()
    assert len([line for line in lines if line.startswith("- n1: clock.offset, waived by ")]) == 1
    assert all(line.isprintable() for line in lines)
