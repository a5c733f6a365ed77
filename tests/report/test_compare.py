"""Two runs side by side: what got slower, for whom, and what is only noise."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodectl.report.compare import NOISE, Change, compare
from nodectl.report.compare_text import LINES_MOST, comparison_html, comparison_json, comparison_lines, moved
from nodectl.report.fold import Summary, fold
from nodectl.report.page import page
from nodectl.wire.event import Event
from tests.report.browser import Tab
from tests.report.fleet import fleet
from tests.report.test_page_browser import HOSTILE, hostile_run


def check(host: str, name: str, value: Any, unit: str = "B/s", verdict: str = "pass", **more: Any) -> Event:
    return Event("check", 2.0, host, {"name": name, "value": value, "unit": unit, "verdict": verdict, "reason": "r", "simulated": False, **more})


def run(name: str, *events: Event, verdicts: dict[str, str] | None = None) -> Summary:
    hosts = list(dict.fromkeys(event.host for event in events if event.host))
    said = [Event("verdict", 3.0, host, {"verdict": (verdicts or {}).get(host, "pass"), "reasons": []}) for host in hosts]
    return fold([Event("run.start", 1.0, "", {"command": "verify", "run_id": name}), *events, *said, Event("run.end", 4.0, "", {"exit_code": 0})])


def kinds(before: Event, after: Event, noise: float = NOISE) -> list[str]:
    return [change.kind for change in compare(run("a", before), run("b", after), noise).changes]


# earlier, later, unit, what is said
FIGURES: list[tuple[Any, Any, str, list[str]]] = [
    (100.0, 100.0, "B/s", []),
    (100.0, 91.0, "B/s", []),
    (100.0, 89.0, "B/s", ["slower"]),
    (100.0, 109.0, "B/s", []),
    (100.0, 112.0, "B/s", ["faster"]),
    (100.0, 50.0, "1/s", ["slower"]),
    (1.0, 2.0, "s", ["slower"]),
    (2.0, 1.0, "s", ["faster"]),
    (1.0, 1.05, "s", []),
    (8, 7, "count", ["changed"]),
    (8, 8, "count", []),
    ("570.86", "580.1", "text", ["changed"]),
    (True, True, "bool", []),
    (True, False, "bool", ["changed"]),
    (40.0, 55.0, "ppm", []),  # no better and no worse: its verdict says whether it matters
    (0.0, 100.0, "B/s", []),
    (None, 100.0, "B/s", ["changed"]),
    (100.0, None, "B/s", ["changed"]),
]


@pytest.mark.parametrize(("before", "after", "unit", "said"), FIGURES)
def test_figures(before: Any, after: Any, unit: str, said: list[str]) -> None:
    assert kinds(check("n1", "x", before, unit), check("n1", "x", after, unit)) == said


def test_a_clock_is_not_slower() -> None:
    assert kinds(check("n1", "clock.offset", 0.001, "s"), check("n1", "clock.offset", 0.3, "s")) == []


def test_another_unit_is_no_figure_to_compare() -> None:
    assert kinds(check("n1", "x", 1.0, "s"), check("n1", "x", 100.0, "B/s")) == ["changed"]


@pytest.mark.parametrize(("noise", "said"), [(0.0, ["slower"]), (0.01, ["slower"]), (0.05, []), (0.5, [])])
def test_the_noise_is_the_users_to_say(noise: float, said: list[str]) -> None:
    assert kinds(check("n1", "x", 100.0), check("n1", "x", 98.0), noise) == said


VERDICTS = ["pass", "skipped", "unknown", "fail"]


@pytest.mark.parametrize("before", VERDICTS)
@pytest.mark.parametrize("after", VERDICTS)
def test_a_changed_verdict_comes_before_figures(before: str, after: str) -> None:
    waiver = {"who": "ops", "why": "w", "until": ""}
    found = compare(
        run("a", check("n1", "x", 100.0, verdict=before, waiver=waiver), check("n1", "y", 100.0)),
        run("b", check("n1", "x", 99.0, verdict=after, waiver=waiver), check("n1", "y", 10.0)),
    )
    verdicts = [change for change in found.changes if change.kind == "verdict"]
    assert bool(verdicts) == (before != after)
    if verdicts:
        worse = VERDICTS.index(after) > VERDICTS.index(before)
        assert verdicts[0].worse is worse
        assert found.changes.index(verdicts[0]) == (0 if worse else 1)


def test_worst_first() -> None:
    before = run("a", check("n1", "x", 100.0), check("n2", "x", 100.0), check("n3", "x", 100.0), check("n4", "x", 100.0))
    after = run("b", check("n1", "x", 80.0), check("n2", "x", 20.0), check("n3", "x", 300.0), check("n4", "x", 150.0))
    assert [(change.kind, change.host) for change in compare(before, after).changes] == [("slower", "n2"), ("slower", "n1"), ("faster", "n3"), ("faster", "n4")]


def test_who_came_and_who_went() -> None:
    before = run("a", check("n1", "x", 1.0), check("n1", "old", 1.0), check("n2", "x", 1.0))
    after = run("b", check("n1", "x", 1.0), check("n1", "new", 1.0), check("n3", "x", 1.0))
    found = compare(before, after)
    assert (found.nodes_gone, found.nodes_come) == (["n2"], ["n3"])
    assert (found.checks_gone, found.checks_come) == ([("n1", "old")], [("n1", "new")])
    assert found.same == 1


def test_nodes_whose_verdict_changed_the_worsened_first() -> None:
    events = [check(host, "x", 1.0) for host in ("n1", "n2", "n3")]
    before = run("a", *events, verdicts={"n1": "fail"})
    after = run("b", *events, verdicts={"n2": "unknown", "n3": "fail"})
    assert compare(before, after).verdicts == [("n3", "pass", "fail"), ("n2", "pass", "unknown"), ("n1", "fail", "pass")]


def test_a_node_that_is_gone_is_worse_than_one_that_fails() -> None:
    lost = run("b", check("n1", "x", 1.0))
    lost.hosts["n1"] = replace(lost.hosts["n1"], status="lost")
    assert compare(run("a", check("n1", "x", 1.0), verdicts={"n1": "fail"}), lost).verdicts == [("n1", "fail", "lost")]


def test_of_a_check_made_twice_the_worst_counts() -> None:
    twice = run("b", check("n1", "x", 100.0), check("n1", "x", 5.0, verdict="fail"))
    [change] = compare(run("a", check("n1", "x", 100.0)), twice).changes
    assert (change.kind, change.after) == ("verdict", 5.0)


def between(run_id: str, value: Any, **more: Any) -> Summary:
    pair = {"hosts": ["n1", "n2"], "rail": "", "tool": "all_reduce", "bytes": 8, "unit": "B/s", "round": 1, "error": "", "value": value, **more}
    return fold([Event("run.start", 1.0, "", {"command": "verify", "run_id": run_id}), Event("pair", 1.0, "", pair)])


@pytest.mark.parametrize(("before", "after", "said"), [
    (between("a", 100.0), between("b", 40.0), ["60 % slower"]),
    (between("a", 100.0), between("b", 40.0, hosts=["n2", "n1"]), ["60 % slower"]),
    (between("a", 1e-6, unit="s"), between("b", 4e-6, unit="s"), ["75 % slower"]),
    (between("a", 100.0), between("b", 97.0), []),
    (between("a", 100.0), between("b", None), []),
    (between("a", 100.0), between("b", 1.0, unit="s"), []),
    (between("a", 100.0), between("b", 1.0, tool="ib_write_bw"), []),
    (between("a", 100.0), between("b", 1.0, hosts=["n1", "n3"]), []),
    (between("a", 100.0), between("b", 1.0, hosts="n1"), []),
])
def test_pairs(before: Summary, after: Summary, said: list[str]) -> None:
    changes = compare(before, after).changes
    assert [moved(change) for change in changes] == said
    assert [change.host for change in changes] == ["n1 <-> n2"] * len(said)


def test_of_a_pair_measured_again_the_best_counts() -> None:
    before, after = between("a", 100.0), between("b", 20.0)
    after.pairs.append({**after.pairs[0], "value": 99.0})
    after.pairs.append({**after.pairs[0], "value": 30.0})
    assert compare(before, after).changes == []


def swept(run_id: str, *busbw: Any, **more: Any) -> Summary:
    rows = [{"bytes": 2**place, "busbw": value, "in_place": False} for place, value in enumerate(busbw)]
    return fold([Event("run.start", 1.0, "", {"run_id": run_id}), Event("sweep", 1.0, "", {"hosts": ["n1", "n2"], "op": "all_reduce", "dtype": "float32", "redop": "sum", "rows": rows, **more})])


@pytest.mark.parametrize(("before", "after", "said"), [
    (swept("a", 1.0, 10.0, 100.0), swept("b", 1.0, 10.0, 50.0), ["busbw of all_reduce float32 sum, 4 B"]),
    (swept("a", 1.0, 10.0), swept("b", 0.5, 5.0), ["busbw of all_reduce float32 sum, 1 B", "busbw of all_reduce float32 sum, 2 B"]),
    (swept("a", 1.0), swept("b", 0.5, hosts=["n1", "n3"]), []),
    (swept("a", 1.0), swept("b", 0.5, op="alltoall"), []),
    (swept("a", None), swept("b", 0.5), []),
    (swept("a", 1.0), swept("b", rows="none"), []),
])
def test_sweeps(before: Summary, after: Summary, said: list[str]) -> None:
    assert [change.check for change in compare(before, after).changes] == said


@settings(deadline=None)
@given(st.floats(1e-6, 1e12), st.floats(1e-6, 1e12), st.sampled_from(["B/s", "s", "1/s"]), st.floats(0, 0.9))
def test_there_and_back(one: float, other: float, unit: str, noise: float) -> None:
    """What got slower one way got faster the other way, or is noise both ways; a run beside itself has no change."""
    there, back = kinds(check("n1", "x", one, unit), check("n1", "x", other, unit), noise), kinds(check("n1", "x", other, unit), check("n1", "x", one, unit), noise)
    assert kinds(check("n1", "x", one, unit), check("n1", "x", one, unit), noise) == []
    assert (there, back) not in [(["slower"], ["slower"]), (["faster"], ["faster"])]


@pytest.mark.parametrize(("ratio", "words"), [(0.5, "50 % slower"), (0.01, "99 % slower"), (1.25, "25 % faster"), (2.4, "2.4 times as fast")])
def test_how_far_it_moved(ratio: float, words: str) -> None:
    assert moved(Change("slower", "n1", "x", "B/s", 1.0, 1.0, "pass", "pass", ratio)) == words


def test_lines_for_a_person() -> None:
    before = run("a", check("n1", "disk.seq_read", 1e9), check("n2", "gpu.ecc", 0, "count"), check("n1", "t", 2.0, "s", simulated=True))
    after = run("b", check("n1", "disk.seq_read", 4e8), check("n2", "gpu.ecc", 3, "count", verdict="fail"), check("n1", "t", 3.0, "s"), verdicts={"n2": "fail"})
    text = "\n".join(comparison_lines(compare(before, after)))
    assert "b compared with a; figures that moved by less than 10% are noise" in text
    assert "n2: pass -> fail" in text
    assert "n2: gpu.ecc: pass -> fail (0 -> 3)" in text
    assert "n1: disk.seq_read: 60 % slower (1 GB/s -> 400 MB/s)" in text
    assert "n1: t: 33 % slower (2 s -> 3 s) [simulated]" in text
    assert text.index("gpu.ecc") < text.index("disk.seq_read")
    assert text.endswith("2 slower, 0 faster, verdicts of nodes that changed: 1, checks as before: 0")


def test_a_slow_switch_is_shown_in_part_and_counted() -> None:
    before = run("a", *(check(f"n{number}", "x", 100.0) for number in range(100)))
    after = run("b", *(check(f"n{number}", "x", 10.0) for number in range(100)))
    lines = comparison_lines(compare(before, after))
    assert f"  and {100 - LINES_MOST} more: --format json has all" in lines
    assert len(json.loads(comparison_json(compare(before, after)))["changes"]) == 100


def test_a_new_check_of_all_nodes_is_one_line() -> None:
    hosts = [f"n{number}" for number in range(50)]
    after = run("b", *(check(host, name, 1.0) for host in hosts for name in ("x", "new")))
    assert "  new: n0, n1, n2, n3, n4 and 45 more" in comparison_lines(compare(run("a", *(check(host, "x", 1.0) for host in hosts)), after))


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts(text: str) -> None:
    before, after = fold(fleet(2)), fold(hostile_run(text))
    after.hosts[text].checks.append({**after.hosts[text].checks[0], "name": "x"})
    for pair in ((before, after), (after, before), (after, after)):
        found = compare(*pair)
        assert all(line.isprintable() for line in comparison_lines(found))
        assert json.loads(comparison_json(found))
        assert "<script" not in comparison_html(found)
        assert "<img" not in comparison_html(found)


def test_a_page_with_the_comparison_in_it(tab: Tab, tmp_path: Path) -> None:
    before, after = fold(fleet(8, bad=0)), fold(fleet(8, bad=1))
    file = tmp_path / "both.html"
    file.write_text(page(after, compare(before, after)))
    tab.open(file)
    text = tab.text("section[aria-labelledby=compare-title]")
    assert "network.pairs: pass -> fail" in text
    assert "verdicts of nodes that changed: 1" in text
