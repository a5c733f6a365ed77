"""Events to summary: every truth of a run, and the exit code that follows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodectl.report.exit_code import MEANING, ExitCode, first
from nodectl.report.fold import Summary, complaint, fold
from nodectl.report.human import ending
from nodectl.report.json import report, write_report
from nodectl.wire.event import Event


def task(host: str, status: str, **data: Any) -> Event:
    return Event("task.end", 2.0, host, {"task": "t", "role": "", "module": "command", "status": status, "result": {}, **data})


def start(command: str = "run", check: bool = False, hosts: tuple[str, ...] = ("n1",)) -> list[Event]:
    return [
        Event("run.start", 1.0, "", {"command": command, "run_id": "r", "version": "0", "check": check}),
        Event("play.start", 1.5, "", {"play": "p", "hosts": list(hosts)}),
    ]


def verdict(host: str, word: str, *reasons: str) -> Event:
    return Event("verdict", 3.0, host, {"verdict": word, "reasons": list(reasons)})


STATS = [
    # (status, result) → the counters that move, by Ansible's rules
    ("ok", {}, {"ok": 1}),
    ("changed", {"changed": True}, {"ok": 1, "changed": 1}),
    ("failed", {"msg": "no"}, {"failed": 1}),
    ("skipped", {}, {"skipped": 1}),
    ("rescued", {"msg": "no"}, {"rescued": 1}),
    ("ok", {"results": [{}, {}, {"skipped": True}]}, {"ok": 1}),
    ("ignored", {"msg": "no"}, {"ok": 1, "ignored": 1}),
    ("ignored", {"msg": "no", "changed": True}, {"ok": 1, "ignored": 1, "changed": 1}),
]


@pytest.mark.parametrize(("status", "result", "expected"), STATS)
def test_counts_as_ansible_does(status: str, result: dict[str, Any], expected: dict[str, int]) -> None:
    stats = vars(fold([*start(), task("n1", status, result=result)]).hosts["n1"].stats)
    assert {name: count for name, count in stats.items() if count} == expected


COMPLAINTS = [
    ({"msg": "no space"}, "no space"),
    ({}, "failed"),
    ({"msg": "non-zero return code", "rc": 3, "stderr": "one\ntwo\n"}, "non-zero return code (rc=3): two"),
    ({"msg": "it said two", "rc": 3, "stderr": "two"}, "it said two (rc=3)"),
    ({"msg": "no", "rc": 0}, "no"),
    ({"msg": "no", "rc": 1}, "no (rc=1)"),
    ({"msg": "One or more items failed", "results": [{"msg": "fine"}, {"failed": True, "msg": "x", "rc": 3}]}, "x (rc=3)"),
    ({"msg": "One or more items failed", "results": [{"failed": True, "msg": "a"}, {"failed": True, "msg": "b"}]}, "a (and 1 more of its items)"),
]


@pytest.mark.parametrize(("result", "text"), COMPLAINTS)
def test_complaint(result: dict[str, Any], text: str) -> None:
    assert complaint(result) == text


def test_a_looped_include_counts_once_per_inclusion() -> None:
    event = task("n1", "ok", include=True, result={"results": [{}, {}, {"skipped": True}]})
    assert fold([*start(), event]).hosts["n1"].stats.ok == 2


def events_of(names: str) -> list[Event]:
    """A short script of a run: words separated by blanks, each an event of host n1 unless it says otherwise."""
    words = {
        "ok": task("n1", "ok"),
        "failed": task("n1", "failed", result={"msg": "no"}),
        "failed2": task("n2", "failed", result={"msg": "no"}),
        "ignored": task("n1", "ignored"),
        "rescued": task("n1", "rescued"),
        "unreachable": Event("host.unreachable", 2.0, "n1", {"reason": "no route", "hint": "look"}),
        "lost": Event("host.lost", 2.0, "n1", {"reason": "line broke"}),
        "stopped": Event("host.stopped", 2.0, "n1", {"reason": "budget"}),
        "pass": verdict("n1", "pass"),
        "fail": verdict("n1", "fail", "slow"),
        "unknown": verdict("n1", "unknown", "timed out"),
        "odd": verdict("n1", "superb"),
        "interrupted": Event("run.end", 9.0, "", {"exit_code": 130}),
        "bug": Event("run.end", 9.0, "", {"exit_code": 70}),
        "lying": Event("run.end", 9.0, "", {"exit_code": 0}),
    }
    return [words[name] for name in names.split()]


CODES = [
    ("run", False, "ok", 0),
    ("run", False, "ignored rescued", 0),
    ("run", False, "failed", 2),
    ("run", False, "unreachable", 4),
    ("run", False, "lost", 4),
    ("run", False, "stopped", 0),
    ("run", False, "failed2 unreachable", 2),
    ("bootstrap", False, "ok pass", 0),
    ("bootstrap", False, "ok fail", 3),
    ("bootstrap", False, "ok unknown", 3),
    ("bootstrap", False, "ok odd", 3),
    # a promised proof that never came is not a pass
    ("bootstrap", False, "ok", 3),
    ("bootstrap", False, "stopped", 3),
    ("verify", False, "ok", 3),
    ("bootstrap", True, "ok", 0),
    ("bootstrap", False, "unreachable", 4),
    ("bootstrap", False, "lost unknown", 4),
    ("bootstrap", False, "failed", 2),
    ("bootstrap", False, "failed unknown unreachable", 2),
    ("bootstrap", False, "ok pass interrupted", 130),
    ("bootstrap", False, "failed bug", 70),
    ("bootstrap", False, "failed lying", 2),
]


@pytest.mark.parametrize(("command", "check", "script", "code"), CODES, ids=[f"{c[0]}{'-check' if c[1] else ''}: {c[2]}" for c in CODES])
def test_exit_code(command: str, check: bool, script: str, code: int) -> None:
    assert int(fold([*start(command, check), *events_of(script)]).exit_code) == code


STATUS = [
    ("ok", "ok", ""),
    ("failed", "failed", "t: no"),
    ("failed stopped", "failed", "t: no"),
    ("stopped failed", "failed", "t: no"),
    ("failed lost", "lost", "line broke"),
    ("unreachable", "unreachable", "no route"),
    ("unreachable lost", "unreachable", "no route"),
    ("stopped", "stopped", "budget"),
]


@pytest.mark.parametrize(("script", "status", "reason"), STATUS, ids=[s[0] for s in STATUS])
def test_status_only_gets_worse(script: str, status: str, reason: str) -> None:
    host = fold([*start(), *events_of(script)]).hosts["n1"]
    assert (host.status, host.reason) == (status, reason)


def test_an_empty_journal_is_no_success_story() -> None:
    summary = fold([])
    assert not summary.complete
    assert summary.hosts == {}


def test_a_host_without_any_event_is_in_the_report() -> None:
    summary = fold(start(hosts=("n1", "n2")))
    assert list(summary.hosts) == ["n1", "n2"]


def test_unknown_kinds_are_passed_over() -> None:
    assert fold([*start(), Event("from.the.future", 2.0, "n9", {})]).hosts.keys() == {"n1"}


@pytest.mark.parametrize(("codes", "expected"), [([], 0), ([3, 4], 4), ([4, 3, 2], 2), ([3], 3), ([0, 4], 4)])
def test_first_of_several(codes: list[int], expected: int) -> None:
    assert first(ExitCode(code) for code in codes) == expected


def test_every_code_has_a_meaning() -> None:
    assert set(MEANING) == set(ExitCode)


def full() -> Summary:
    check = {"name": "disk.seq_write", "verdict": "fail", "value": 1.0, "unit": "B/s", "floor": 2.0, "reason": "slow", "source": "s", "simulated": True, "raw": "…"}
    return fold([
        *start("bootstrap", hosts=("n1", "n2")),
        task("n1", "changed"),
        Event("handlers.pending", 2.0, "n2", {"handlers": ["restart sshd"]}),
        task("n2", "failed", role="base", task="install", result={"msg": "no space"}),
        Event("check", 2.5, "n1", check),
        verdict("n1", "fail", "slow"),
        Event("warning", 2.6, "n1", {"text": "careful"}),
        Event("warning", 2.7, "n1", {"text": "careful"}),
        Event("handoff", 3.0, "", {"path": "h", "hosts": [], "excluded": ["n1", "n2"], "world_size": 0}),
        Event("run.end", 11.0, "", {"exit_code": 2, "seconds": 10.0}),
    ])


def test_report_json_survives_what_is_no_text(tmp_path: Path) -> None:
    write_report(fold([Event("host.lost", 1.0, "n1", {"reason": "said \udcff"})]), tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["hosts"]["n1"]["reason"] == "said \udcff"


def test_report_json_holds_what_scripts_rely_on(tmp_path: Path) -> None:
    write_report(full(), tmp_path / "report.json")
    data = json.loads((tmp_path / "report.json").read_text())
    assert data == report(full())
    assert data["exit_code"] == 2
    assert data["complete"] is True
    assert data["seconds"] == 10.0
    assert data["warnings"] == ["n1: careful"]
    n1, n2 = data["hosts"]["n1"], data["hosts"]["n2"]
    assert n1["stats"] == {"ok": 1, "changed": 1, "failed": 0, "skipped": 0, "rescued": 0, "ignored": 0}
    assert n1["verdict"] == "fail"
    assert n1["checks"] == [
        {"name": "disk.seq_write", "verdict": "fail", "value": 1.0, "unit": "B/s", "floor": 2.0, "reason": "slow", "source": "s", "simulated": True, "step": None}
    ]
    assert (n2["status"], n2["pending_handlers"], n2["verdict"]) == ("failed", ["restart sshd"], "none")
    assert n2["reason"] == "base : install: no space"
    assert list(tmp_path.iterdir()) == [tmp_path / "report.json"]


def waived_run(**waiver: object) -> list[Event]:
    return [
        Event("run.start", 1.0, "", {"command": "verify", "hosts": ["n1"]}),
        Event("check", 2.0, "n1", {"name": "clock.offset", "verdict": "skipped", "waiver": waiver, "simulated": False}),
        Event("verdict", 3.0, "n1", {"verdict": "skipped", "reasons": []}),
    ]


def test_a_waived_check_is_no_pass_and_says_who_waived_it() -> None:
    summary = fold(waived_run(who="ops", why="cable is on its way", until="2027-01-31"))
    assert summary.hosts["n1"].verdict == "skipped"
    assert summary.exit_code == ExitCode.NOT_PROVEN
    assert summary.hosts["n1"].waived == ["clock.offset (waived by ops until 2027-01-31: cable is on its way)"]
    assert any("cable is on its way" in line.plain for line in ending(summary, Path("run")))
    assert report(summary)["hosts"]["n1"]["checks"][0]["waiver"]["who"] == "ops"


def test_skipped_by_nobody_did_not_run() -> None:
    assert fold(waived_run()).hosts["n1"].checks[0]["verdict"] == "unknown"


@pytest.mark.parametrize("said", ["PASS", "", None, 1, "ok"])
def test_a_verdict_nobody_knows_is_unknown(said: object) -> None:
    assert fold([Event("check", 1.0, "n1", {"name": "x", "verdict": said})]).hosts["n1"].checks[0]["verdict"] == "unknown"


def test_sweeps_pairs_and_the_suite_are_kept_and_raw_output_stays_in_the_journal() -> None:
    events = [
        Event("suite", 1.0, "", {"name": "quick", "text": "a minute", "floors": []}),
        Event("pair", 1.0, "", {"hosts": ["a", "b"], "value": 1.0}),
        Event("sweep", 1.0, "", {"op": "all_reduce", "rows": []}),
        Event("check", 1.0, "a", {"name": "x", "verdict": "pass", "raw": "0123456789" * 100}),
    ]
    summary = fold(events)
    assert (summary.suite["name"], len(summary.pairs), len(summary.sweeps)) == ("quick", 1, 1)
    assert len(summary.hosts["a"].checks[0]["raw"]) == 1000
    assert "raw" not in report(summary)["hosts"]["a"]["checks"][0]
