"""Waivers: what is refused at load, what they turn into "skipped", and what no waiver covers."""

from __future__ import annotations

import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodectl.diagnostics.model import Collector
from nodectl.inventory.load import load_inventory
from nodectl.transport.channel import Unreachable
from nodectl.verify.judging.judge import Expectation, judge
from nodectl.verify.judging.measurement import Measurement, Verdict, Waiver
from nodectl.verify.judging.reading import absent
from nodectl.verify.ledger import Terms
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import load_suite
from nodectl.verify.waivers import meet, unused, waivers_of
from nodectl.wire.outcome import Outcome
from tests.verify.fleet import FakeFleet, FakeNode, Seen, limits, node_of

TODAY = datetime.date(2026, 11, 30)
GOOD = "check: disk.scratch.*, who: ada, why: RMA 4711 is on its way, until: 2026-12-24"


def read(tmp_path: Path, text: str) -> tuple[list[Waiver], Collector]:
    path = tmp_path / "hosts.yaml"
    path.write_text(text)
    found = Collector()
    inventory = load_inventory([str(path)], found)
    return waivers_of({host: inventory.variables(host) for host in inventory.names()}, TODAY, found), found


def of_host(entry: str) -> str:
    return f"all:\n  hosts:\n    n1:\n      verify_waivers:\n        - {entry}\n"


def test_a_waiver_knows_its_hosts_and_its_place(tmp_path: Path) -> None:
    waivers, found = read(tmp_path, f"gpu:\n  hosts: {{n1: , n2: }}\n  vars:\n    verify_waivers:\n      - {{{GOOD}}}\n")
    assert not found.errors
    (one,) = waivers
    assert one == Waiver("disk.scratch.*", "ada", "RMA 4711 is on its way", "2026-12-24", ("n1", "n2"), f"{tmp_path}/hosts.yaml:5:9")


def test_a_hosts_own_list_replaces_its_groups(tmp_path: Path) -> None:
    """As Ansible merges variables: nobody is excused by a list that he does not see."""
    text = f"gpu:\n  vars: {{verify_waivers: [{{{GOOD}}}]}}\n  hosts:\n    n1:\n    n2: {{verify_waivers: []}}\n"
    waivers, _ = read(tmp_path, text)
    assert [one.hosts for one in waivers] == [("n1",)]


@pytest.mark.parametrize("until", ["2026-11-30", "'2026-11-30'", "2027-01-01"])
def test_the_last_day_counts(tmp_path: Path, until: str) -> None:
    waivers, found = read(tmp_path, of_host(f"{{check: clock.offset, who: ada, why: x, until: {until}}}"))
    assert len(waivers) == 1
    assert not found.errors


REFUSED = [
    ("{check: clock.offset, who: ada, why: x, until: 2026-11-29}", "this waiver ended on 2026-11-29", 58),
    ("{who: ada, why: x, until: 2026-12-24}", "a waiver lacks check", 11),
    ("{check: clock.offset, why: x, until: 2026-12-24}", "a waiver lacks who", 11),
    ("{check: clock.offset, who: ada, until: 2026-12-24}", "a waiver lacks why", 11),
    ("{check: clock.offset, who: ada, why: x}", "a waiver lacks until", 11),
    ("{check: clock.offset, who: '', why: , until: 2026-12-24}", "a waiver lacks who, why", 11),
    ("{check: clock.offset, who: ada, why: x, until: tomorrow}", "until of a waiver is 'tomorrow'", 58),
    ("{check: clock.offset, who: ada, why: x, until: 2026-02-30}", "until of a waiver is", 58),
    ("{check: clock.offset, who: ada, why: x, until: 20}", "until of a waiver is 20", 58),
    ("{check: clock.offset, who: ada, why: x, until: true}", "until of a waiver is True", 58),
    ("{check: clock.ofset, who: ada, why: x, until: 2026-12-24}", "no check is called 'clock.ofset'", 19),
    ("{check: nothing.at.all, who: ada, why: x, until: 2026-12-24}", "no check is called 'nothing.at.all'", 19),
    ("{check: '*', who: ada, why: x, until: 2026-12-24}", "would excuse everything", 19),
    ("{check: '**.*', who: ada, why: x, until: 2026-12-24}", "would excuse everything", 19),
    ("{check: clock.offset, who: ada, why: x, until: 2026-12-24, by: me}", "unknown key 'by'", 70),
    ("{check: clock.offset, who: '{{ x }}', why: x, until: 2026-12-24}", "who of a waiver is '{{ x }}'", 38),
    ("{check: clock.offset, who: [a], why: x, until: 2026-12-24}", "who of a waiver is ['a']", 38),
    ('{check: clock.offset, who: ada, why: "x\\ny", until: 2026-12-24}', "why of a waiver is", 48),
    ("clock.offset", "a waiver is 'clock.offset'", 11),
]


@pytest.mark.parametrize(("entry", "words", "column"), REFUSED, ids=[words for _, words, _ in REFUSED])
def test_refused_at_its_place(tmp_path: Path, entry: str, words: str, column: int) -> None:
    _, found = read(tmp_path, of_host(entry))
    (error,) = [one for one in found.errors if one.code == "E313"]
    assert words in error.message
    assert error.origin is not None
    assert (error.origin.line, error.origin.column) == (5, column)


def test_all_mistakes_at_once_and_a_groups_only_once(tmp_path: Path) -> None:
    bad = "{check: clock.ofset, who: ada, why: x, until: 2026-12-24}, {check: torch.import, who: ada, until: 2020-01-01}, 7"
    _, found = read(tmp_path, f"gpu:\n  hosts: {{n1: , n2: , n3: }}\n  vars:\n    verify_waivers: [{bad}]\n")
    assert len(found.errors) == 4


def test_no_list_is_a_mistake_too(tmp_path: Path) -> None:
    _, found = read(tmp_path, "all:\n  hosts:\n    n1: {verify_waivers: {check: clock.offset}}\n")
    (error,) = found.errors
    assert "expected a list" in error.label


@pytest.mark.parametrize(("one", "other", "meets"), [
    ("disk.*", "disk.scratch.*", True), ("mount:/d*", "mount:*", True), ("*:/data", "mount:*", True), ("x", "y", False), ("a?c", "abc", True),
    ("net[wx]ork.*", "network.pairs", True), ("network.pairs", "network.all*", False), ("", "", True), ("*", "", True), ("a", "", False),
    ("phase.*:/data", "phase.*:*", True), ("*a", "b*", True), ("*a*b", "*b*a", False), ("*a*b", "a*b", True), ("a*", "b*", False), ("[", "[", True),
])
def test_patterns_that_meet(one: str, other: str, meets: bool) -> None:
    assert meet(one, other) is meets
    assert meet(other, one) is meets


@given(st.text("ab*?", max_size=8), st.text("ab*?", max_size=8), st.text("ab", max_size=6))
def test_what_fits_both_makes_them_meet(one: str, other: str, text: str) -> None:
    if fnmatchcase(text, one) and fnmatchcase(text, other):
        assert meet(one, other)


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=6))
def test_a_text_meets_what_it_fits(pattern: str, text: str) -> None:
    assert meet(pattern, text) is fnmatchcase(text, pattern)


def test_long_patterns_end() -> None:
    assert not meet("*a" * 200, "*b" * 200 + "c")


# -- judging

WAIVER = Waiver("disk.*", "ada", "RMA", "2026-12-24", ("n1",), "hosts.yaml:5:9")


def judged(value: Any, today: str, host: str = "n1", gone: bool = False, waiver: Waiver = WAIVER) -> Any:
    measurement = Measurement("disk.x", value, "B/s", (host,), "fio", gone=gone)
    return judge([measurement], [], [Expectation("disk.x", "at_least", 10.0, "B/s", "because")], [waiver], today)[0]


@pytest.mark.parametrize(("value", "today", "host", "gone", "verdict"), [
    (1.0, "2026-12-24", "n1", False, "skipped"),
    (None, "2026-12-24", "n1", False, "skipped"),
    (20.0, "2026-12-24", "n1", False, "pass"),
    (1.0, "2026-12-25", "n1", False, "fail"),
    (1.0, "", "n1", False, "fail"),
    (1.0, "2026-12-24", "n2", False, "fail"),
    (None, "2026-12-24", "n1", True, "unknown"),
])
def test_what_a_waiver_covers(value: Any, today: str, host: str, gone: bool, verdict: Verdict) -> None:
    check = judged(value, today, host, gone)
    assert check.verdict == verdict
    assert (check.waiver == WAIVER) is (verdict == "skipped")


def test_the_reason_says_who_and_what_it_would_have_been() -> None:
    reason = judged(1.0, "2026-12-01").reason
    assert reason.startswith("waived by ada until 2026-12-24: RMA; it would be fail: measured 1 B/s")


def test_another_checks_waiver_does_not_help() -> None:
    assert judged(1.0, "2026-12-01", waiver=Waiver("clock.*", "ada", "x", "2026-12-24", ("n1",))).verdict == "fail"


# -- in a run

def run(*nodes: FakeNode, waivers: list[Waiver], suite: str = "quick", today: str = "2026-12-01") -> tuple[dict[str, Verdict], Seen, FakeFleet]:
    fleet, seen = FakeFleet(*nodes), Seen()
    return verify([node_of(node) for node in nodes], load_suite(suite), fleet, seen, Terms(waivers=waivers, today=today)), seen, fleet


def test_a_waived_node_takes_part_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    low = FakeNode("n2", answers={"probe_limits": limits(65536)})
    waiver = Waiver("limits.memlock", "ada", "no RDMA here", "2026-12-24", ("n2",), "hosts.yaml:7:9")
    verdicts, seen, fleet = run(FakeNode("n1"), low, FakeNode("n3"), waivers=[waiver])
    assert verdicts == {"n1": "pass", "n2": "skipped", "n3": "pass"}, seen.reasons("n2")
    assert fleet.groups[-1] == ("n1", "n2", "n3")
    check = seen.check("n2", "limits.memlock").data
    assert check["verdict"] == "skipped"
    assert check["step"] == "login"
    assert check["waiver"] == {"check": "limits.memlock", "who": "ada", "why": "no RDMA here", "until": "2026-12-24", "hosts": ("n2",), "origin": "hosts.yaml:7:9"}
    assert "waived by ada" in seen.reasons("n2")
    assert not [event for event in seen.of("warning") if "excused nothing" in event.data["text"]]


def test_without_its_day_the_waiver_does_nothing() -> None:
    waiver = Waiver("limits.memlock", "ada", "no RDMA here", "2026-12-24", ("n2",))
    verdicts, _, _ = run(FakeNode("n1"), FakeNode("n2", answers={"probe_limits": limits(65536)}), waivers=[waiver], today="2026-12-25")
    assert verdicts["n2"] == "fail"


EVERYTHING = [Waiver(f"{name}*", "ada", "x", "2026-12-24", ("n2",)) for name in "abcdefghijklmnopqrstuvwxyz"]


@pytest.mark.parametrize("bad", [
    FakeNode("n2", gone_at=("probe_route", 0)), FakeNode("n2", gone_at=("workload", 1)), FakeNode("n2", unreachable="no route to host"),
    FakeNode("n2", hangs_at="probe_clock"), FakeNode("n2", variables={"network_floor": "fast"}), FakeNode("n2", fresh=Unreachable("timeout", "no answer")),
], ids=["lost", "lost in the group", "unreachable", "frozen", "settings", "no fresh login"])
def test_no_waiver_covers_a_node_that_is_not_there(bad: FakeNode) -> None:
    verdicts, seen, _ = run(FakeNode("n1"), bad, FakeNode("n3"), waivers=EVERYTHING)
    assert verdicts["n2"] == "unknown", seen.reasons("n2")
    assert (verdicts["n1"], verdicts["n3"]) == ("pass", "pass")


def test_a_waiver_that_excused_nothing_is_named() -> None:
    needless = Waiver("clock.offset", "ada", "x", "2026-12-24", ("n1",), "hosts.yaml:9:9")
    other_suite = Waiver("disk.scratch.*", "ada", "x", "2026-12-24", ("n1",))
    other_node = Waiver("clock.offset", "ada", "x", "2026-12-24", ("n7",))
    verdicts, seen, _ = run(FakeNode("n1"), waivers=[needless, other_suite, other_node])
    assert verdicts == {"n1": "pass"}
    texts = [event.data["text"] for event in seen.of("warning")]
    assert texts == ["the waiver of clock.offset (hosts.yaml:9:9, ada) excused nothing: its checks passed, or were not made on n1"]


def test_unused_counts_by_what_was_skipped() -> None:
    assert unused([WAIVER], [judged(1.0, "2026-12-01")]) == []
    assert len(unused([WAIVER], [judged(20.0, "2026-12-01")])) == 1


def test_absent_is_beyond_waivers() -> None:
    reading = absent("disk.x", "n1", "lost", "lost: no byte for 20 s")
    (check,) = judge(reading.measurements, [], [], [WAIVER], "2026-12-01")
    assert (check.verdict, check.reason) == ("unknown", "lost: no byte for 20 s")


def test_a_failed_probe_may_be_waived() -> None:
    broken = FakeNode("n1", answers={"probe_clock": Outcome(failed=True, msg="no clock")})
    waiver = Waiver("clock.offset", "ada", "x", "2026-12-24", ("n1",))
    verdicts, seen, _ = run(broken, waivers=[waiver])
    assert verdicts == {"n1": "skipped"}, seen.reasons("n1")
