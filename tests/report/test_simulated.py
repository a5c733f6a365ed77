"""A figure from a stand-in for hardware is marked wherever it is told."""

from __future__ import annotations

from nodectl.report.fold import fold
from nodectl.report.json import report
from nodectl.wire.event import Event
from tests.report.test_human import closing, run_of_two


def test_a_figure_from_a_stand_in_is_never_told_as_a_plain_pass() -> None:
    events = run_of_two()
    events.insert(4, Event("check", 2.0, "n1", {"name": "network.pairs", "verdict": "pass", "reason": "fast enough", "simulated": True}))
    said_at_the_end = closing(events)
    assert "1/1, 1 simulated" in said_at_the_end
    assert "simulated:  network.pairs: measured on stand-ins for hardware" in said_at_the_end
    assert "simulated" not in closing(run_of_two())
    assert report(fold(events))["hosts"]["n1"]["simulated"] == ["network.pairs"]
