"""junit.xml: valid against a schema, read by a program of somebody else, and never greener than the run."""

from __future__ import annotations

from pathlib import Path

import junitparser
import pytest
import xmlschema

from nodectl.report.fold import fold
from nodectl.report.junit import OUTPUT_ALL, OUTPUT_MOST, junit
from nodectl.wire.event import Event
from tests.report.fleet import fleet
from tests.report.test_page_browser import HOSTILE, everything, hostile_run

# Written by us from what CI systems accept: names, order and types as Jenkins, GitLab and GitHub's readers agree on them.
SCHEMA = xmlschema.XMLSchema(str(Path(__file__).parent / "junit.xsd"))


def read(text: str) -> junitparser.JUnitXml:
    return junitparser.JUnitXml.fromstring(text.encode())


def outcomes(events: list[Event]) -> dict[tuple[str, str], str]:
    """(node, test case) to its outcome, as junitparser understands it."""
    found = {}
    for suite in read(junit(fold(events))):
        for case in suite:
            results = [type(result).__name__.lower() for result in case.result]
            found[case.classname, case.name] = results[0] if results else "pass"
    return found


RUNS = {
    "fleet": fleet(8), "clean": fleet(2, bad=0), "every state": everything(), "nothing": [Event("run.start", 1.0, "", {"command": "verify"})],
    "no check": [Event("run.start", 1.0, "", {"command": "run", "hosts": ["n1"]})], **{f"hostile {place}": hostile_run(text) for place, text in enumerate(HOSTILE)},
}


@pytest.mark.parametrize("name", RUNS)
def test_the_document_is_valid(name: str) -> None:
    SCHEMA.validate(junit(fold(RUNS[name])).encode("utf-8", "backslashreplace").decode())


def test_the_schema_can_say_no() -> None:
    good = junit(fold(RUNS["every state"]))
    for before, after in (("testcase", "case"), ('tests="', 'test="'), ("<skipped", "<waived"), ('time="0"', 'time="soon"')):
        assert before in good
        assert not SCHEMA.is_valid(good.replace(before, after)), after


def check(verdict: str, **more: object) -> Event:
    return Event("check", 2.0, "n1", {"name": "gpu.ecc", "verdict": verdict, "reason": "measured 3, expected 0", "source": "vendor", "raw": "out", "simulated": False, **more})


def run_of(*events: Event) -> list[Event]:
    return [Event("run.start", 1.0, "", {"command": "verify", "run_id": "r", "hosts": ["n1"]}), *events]


@pytest.mark.parametrize(("event", "outcome"), [
    (check("pass"), "pass"), (check("fail"), "failure"), (check("unknown"), "error"), (check("whatever"), "error"), (check("skipped"), "error"),
    (check("skipped", waiver={"who": "ops", "why": "w", "until": "2027-01-01"}), "skipped"),
])
def test_verdicts_become_outcomes(event: Event, outcome: str) -> None:
    assert outcomes(run_of(event))["n1", "gpu.ecc"] == outcome


@pytest.mark.parametrize(("events", "outcome"), [
    ([Event("verdict", 3.0, "n1", {"verdict": "pass", "reasons": []})], "pass"),
    ([], "error"),  # a verification promised a verdict
    ([Event("host.unreachable", 3.0, "n1", {"reason": "refused"})], "error"),
    ([Event("host.lost", 3.0, "n1", {"reason": "silent"})], "error"),
    ([Event("host.stopped", 3.0, "n1", {"reason": "budget"})], "error"),
    ([Event("task.end", 3.0, "n1", {"status": "failed", "task": "t", "result": {"msg": "no space"}})], "failure"),
    ([Event("verdict", 3.0, "n1", {"verdict": "unknown", "reasons": ["not covered: pairs"]})], "error"),
    ([Event("verdict", 3.0, "n1", {"verdict": "fail", "reasons": ["r"]})], "failure"),
])
def test_the_node_itself_is_a_case(events: list[Event], outcome: str) -> None:
    assert outcomes(run_of(*events))["n1", "node"] == outcome


@pytest.mark.parametrize("name", RUNS)
def test_a_file_without_failures_is_a_run_without_them(name: str) -> None:
    summary = fold(RUNS[name])
    clean = all(outcome in ("pass", "skipped") for outcome in outcomes(RUNS[name]).values())
    assert clean == all(summary.ready(host) or (host.status == "ok" and host.verdict == "skipped") for host in summary.hosts.values())


def test_counts_are_right() -> None:
    document = read(junit(fold(everything())))
    told = (document.tests, document.failures, document.errors)
    document.update_statistics()  # type: ignore[no-untyped-call]
    assert told == (document.tests, document.failures, document.errors)
    assert all(part > 0 for part in told)


def test_one_case_per_node_and_check() -> None:
    events = fleet(3, checks=12)
    assert len(outcomes(events)) == 3 * 13


def test_reason_floor_and_output_are_in_it() -> None:
    text = junit(fold(run_of(check("fail"))))
    assert 'message="measured 3, expected 0" type="fail"' in text
    assert "source of the floor: vendor" in text
    assert "out</system-out>" in text


def test_long_output_is_cut_and_counted() -> None:
    text = junit(fold(run_of(check("fail", raw="a" * 50_000 + "END"))))
    assert len(text) < OUTPUT_MOST + 3000
    assert "characters left out" in text
    assert "END</system-out>" in text


def test_all_outputs_together_are_bounded() -> None:
    events = [Event("check", 2.0, f"n{place}", {"name": "x", "verdict": "fail", "reason": "r", "raw": "a" * OUTPUT_MOST, "simulated": False}) for place in range(3000)]
    assert OUTPUT_ALL / 2 < len(junit(fold(events))) < OUTPUT_ALL + 3000 * 600


def test_a_thousand_nodes_stay_readable_for_a_ci_system() -> None:
    assert len(junit(fold(fleet(1000, bad=16, raw=2000, rounds=1)))) < 12_000_000


def test_a_passed_check_has_its_reason_and_no_output() -> None:
    text = junit(fold(run_of(check("pass", raw="quite long"))))
    assert "measured 3, expected 0" in text
    assert "quite long" not in text


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_come_back_as_texts(text: str) -> None:
    names = {case.name for suite in read(junit(fold(hostile_run(text)))) for case in suite}
    assert len(names) >= 3
    shown = text.split("\u2028")[0].split("\ud800")[0][:20]
    assert any(shown in name for name in names)
