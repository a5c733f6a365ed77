"""Evidence and replay: what a run came to can be judged again from its file, and a file that was changed is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodectl.cli.main import run as nodectl
from nodectl.handoff.write import write_handoff
from nodectl.report.fold import fold
from nodectl.report.journal import Journal, read_journal
from nodectl.verify.evidence import BadEvidence, evidence_of, read_evidence, sealed
from nodectl.verify.judging.floor_load import FLOORS, load_floors
from nodectl.verify.judging.measurement import Waiver
from nodectl.verify.ledger import Terms
from nodectl.verify.replay import Replay, Today, replay
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import load_suite, shipped_texts, suite_of
from nodectl.wire.event import Event
from nodectl.wire.outcome import Outcome
from tests.verify.fleet import FakeFleet, FakeNode, Seen, fio, limits, node_of

SHIPPED = load_floors(FLOORS)
TODAY = Today(SHIPPED, shipped_texts(), "1.0", "2026-12-02")


def run(*nodes: FakeNode, suite: str = "quick", terms: Terms | None = None) -> Seen:
    seen = Seen()
    about = {"command": "verify", "run_id": "r1", "version": "1.0", "argv": ["verify"], "inventory": ["hosts.yaml"]}
    seen(Event("run.start", 1.0, "", {**about, "hosts": [node.name for node in nodes]}))
    verify([node_of(node) for node in nodes], load_suite(suite), FakeFleet(*nodes), seen, terms or Terms(today="2026-12-01"))
    return seen


def evidence(seen: Seen) -> dict[str, Any]:
    """As a reader gets it: through the file."""
    made = evidence_of(seen.events, ["n1"], 1)
    return read_evidence(json.dumps(made))


def again(seen: Seen, today: Today = TODAY) -> Replay:
    return replay(evidence(seen), today)


MOUNT = {"file_mounts": {"/data": {"source": "s3://d", "mode": "MOUNT"}}}
FLEETS: list[tuple[str, Callable[[], list[FakeNode]], str]] = [
    ("healthy", lambda: [FakeNode("n1"), FakeNode("n2"), FakeNode("n3")], "preflight"),
    ("one alone", lambda: [FakeNode("n1")], "quick"),
    ("slow link", lambda: [FakeNode("n1"), FakeNode("n2", speed=12e6), FakeNode("n3")], "preflight"),
    ("lost in the group", lambda: [FakeNode("n1"), FakeNode("n2", gone_at=("workload", 1)), FakeNode("n3")], "quick"),
    ("unreachable", lambda: [FakeNode("n1"), FakeNode("n2", unreachable="no route")], "quick"),
    ("dies in groups of three", lambda: [FakeNode("n1"), FakeNode("n2", dies_in_groups_of=3), FakeNode("n3")], "quick"),
    ("corrupts", lambda: [FakeNode("n1"), FakeNode("n2"), FakeNode("n3", corrupts=True)], "preflight"),
    ("low memlock", lambda: [FakeNode("n1", answers={"probe_limits": limits(65536)}), FakeNode("n2")], "quick"),
    ("settings", lambda: [FakeNode("n1", variables={"network_floor": "fast"}), FakeNode("n2")], "quick"),
    ("broken probe", lambda: [FakeNode("n1", answers={"probe_clock": Outcome(failed=True, msg="no")}), FakeNode("n2")], "quick"),
    ("garbled probe", lambda: [FakeNode("n1", answers={"probe_clock": Outcome(values={"time_ns": "x"})}), FakeNode("n2")], "quick"),
    ("no number", lambda: [FakeNode("n1", answers={"probe_fio": fio(float("nan"))}), FakeNode("n2", answers={"probe_fio": fio(float("inf"))})], "preflight"),
    ("mount", lambda: [FakeNode("n1", variables=dict(MOUNT)), FakeNode("n2", variables={**MOUNT, "file_mount_floor": "1 GB/s"})], "preflight"),
]


@pytest.mark.parametrize(("name", "fleet", "suite"), FLEETS, ids=[name for name, *_ in FLEETS])
def test_the_same_verdicts_reasons_and_exit_code_come_out(name: str, fleet: Callable[[], list[FakeNode]], suite: str) -> None:
    seen = run(*fleet(), suite=suite)
    found = again(seen)
    assert found.broken == ()
    assert found.changed == ()
    before, after = fold(seen.events), fold(found.events)
    for host, summary in before.hosts.items():
        assert (after.hosts[host].verdict, after.hosts[host].status, after.hosts[host].reasons) == (summary.verdict, summary.status, summary.reasons), host
        assert [(check["name"], check["verdict"], check["reason"]) for check in after.hosts[host].checks] == [
            (check["name"], check["verdict"], check["reason"]) for check in summary.checks
        ]
    assert after.exit_code == before.exit_code


def test_hosts_that_never_came_to_it_keep_their_exit_code() -> None:
    """Of a bootstrap: n2 failed a task, n3 was stopped, n4 was never reached; only n1 was verified."""
    seen = Seen()
    seen(Event("run.start", 1.0, "", {"command": "bootstrap", "version": "1.0", "hosts": ["n1", "n2", "n3", "n4"]}))
    seen(Event("task.end", 1.0, "n2", {"status": "failed", "task": "Format", "result": {"msg": "no such disk"}}))
    seen(Event("host.stopped", 1.0, "n3", {"reason": "too many failed"}))
    seen(Event("host.unreachable", 1.0, "n4", {"reason": "no route", "why": "timeout"}))
    verify([node_of(FakeNode("n1"))], load_suite("quick"), FakeFleet(FakeNode("n1")), seen, Terms(today="2026-12-01"))
    found = again(seen)
    assert (found.broken, found.verdicts) == ((), {"n1": "pass"})
    before, after = fold(seen.events), fold(found.events)
    assert after.exit_code == before.exit_code == 2
    assert {name: host.status for name, host in after.hosts.items()} == {name: host.status for name, host in before.hosts.items()}
    assert "no such disk" in after.hosts["n2"].reason


def test_repetitions_are_judged_again_as_they_were() -> None:
    seen = Seen()
    seen(Event("run.start", 1.0, "", {"command": "verify", "version": "1.0", "hosts": ["n1", "n2"]}))
    text = load_suite("quick").text.replace('kind = "all_reduce"\n', 'kind = "all_reduce"\nrepeat = 3\n')
    nodes = [FakeNode("n1"), FakeNode("n2")]
    verify([node_of(node) for node in nodes], suite_of(text, "thrice"), FakeFleet(*nodes), seen, Terms(today="2026-12-01"))

    assert len({tuple(event.data["repetition"]) for event in seen.of("reading") if event.data["step"] == "all_reduce"}) == 3
    assert len([event for event in seen.of("check", "n1") if event.data["name"] == "network.all_reduce"]) == 1
    assert again(seen).broken == ()


WAIVER = Waiver("limits.memlock", "ada", "no RDMA here", "2026-12-01", ("n1",), "hosts.yaml:3:9")


def test_a_waiver_counts_as_on_its_day_and_its_end_is_said() -> None:
    seen = run(FakeNode("n1", answers={"probe_limits": limits(65536)}), terms=Terms(waivers=[WAIVER], today="2026-12-01"))
    found = again(seen)
    assert found.verdicts == {"n1": "skipped"}
    assert found.broken == ()
    assert found.changed == ("the waiver of limits.memlock (ada) ended on 2026-12-01: today the check counts",)


# -- a file that was changed


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def apply(data: Any) -> None:
        *way, last = path.split("/")
        for key in way:
            data = data[int(key) if isinstance(data, list) else key]
        data[int(last) if isinstance(data, list) else last] = value

    return apply


def drop(key: str) -> Callable[[dict[str, Any]], None]:
    return lambda data: data.__delitem__(key)


TAMPERED: list[tuple[str, Callable[[dict[str, Any]], None], str]] = [
    ("a value", change("readings/0/measurements/0/value", False), "hold for readings"),
    ("a floor", change("floors/0/floor", 1.0), "hold for floors"),
    ("a verdict", change("verdicts/n1/verdict", "pass"), "hold for verdicts"),
    ("a check", change("checks/n1/0/verdict", "fail"), "hold for checks"),
    ("the suite", change("inputs/suite/text", ""), "hold for inputs"),
    ("the version", change("versions/nodectl", "9"), "hold for versions"),
    ("who is handed off", change("handed_off", ["n9"]), "beside the parts"),
    ("something added", change("extra", 1), "beside the parts"),
    ("a hash", change("sha256/floors", "0" * 64), "hold for floors"),
    ("the hash of all", change("sha256/all", "0" * 64), "beside the parts"),
    ("hashes that are none", change("sha256", 3), "hold for run, inputs"),
    ("no hashes", drop("sha256"), "no evidence of nodectl"),
    ("a part gone", drop("floors"), "no evidence of nodectl"),
    ("another format", change("format", 2), "format 2"),
    ("a number that JSON has not", change("world_size", float("nan")), "cannot be hashed"),
]


@pytest.fixture(scope="module")
def slow_fleet() -> dict[str, Any]:
    return evidence(run(FakeNode("n1", speed=12e6), FakeNode("n2"), FakeNode("n3"), suite="preflight"))


@pytest.mark.parametrize(("name", "tamper", "words"), TAMPERED, ids=[name for name, *_ in TAMPERED])
def test_a_changed_file_is_refused(name: str, tamper: Callable[[dict[str, Any]], None], words: str, slow_fleet: dict[str, Any]) -> None:
    data = copy.deepcopy(slow_fleet)
    tamper(data)
    with pytest.raises(BadEvidence, match=words):
        read_evidence(json.dumps(data))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '"x"', "[" * 100_000])
def test_what_is_no_evidence_is_refused(text: str) -> None:
    with pytest.raises(BadEvidence):
        read_evidence(text)


def test_layout_and_order_do_not_matter(slow_fleet: dict[str, Any]) -> None:
    assert read_evidence(json.dumps(dict(reversed(list(slow_fleet.items()))), indent=3)) == slow_fleet


FORGED: list[tuple[str, Callable[[dict[str, Any]], None], str]] = [
    ("a verdict made good", change("verdicts/n1/verdict", "pass"), "n1: recorded pass, judged fail"),
    ("a reading made bad", change("readings/0/measurements/0/value", False), "judged fail, which is not recorded"),
    ("a check left out", change("checks/n2", []), "n2 clock.offset: judged pass, which is not recorded"),
    ("a floor lowered", change("floors", []), ""),
]


@pytest.mark.parametrize(("name", "forge", "words"), FORGED, ids=[name for name, *_ in FORGED])
def test_who_forges_the_hashes_too_is_found_by_judging(name: str, forge: Callable[[dict[str, Any]], None], words: str, slow_fleet: dict[str, Any]) -> None:
    data = copy.deepcopy(slow_fleet)
    forge(data)
    found = replay(read_evidence(json.dumps(sealed(data))), TODAY)
    assert found.broken
    assert any(words in text for text in found.broken)


NO_EVIDENCE: list[Callable[[dict[str, Any]], None]] = [
    change("readings", 3), change("readings", [3]), change("readings/0/measurements", None), change("readings/0/measurements/0/hosts", "n1"),
    change("readings/0/measurements/0/unit", 3), change("readings/0/measurements/0/extra", 3), change("readings/0/measurements/0", {}),
    change("readings/0/expectations/0/op", "near"), change("floors", [3]), change("floors", [{}]), change("inputs", 3), change("inputs/suite", 3),
    change("inputs/waivers", [3]), change("inputs/waivers", [{"check": "x"}]), change("verdicts", 3), change("run", 3), change("checks", 3), change("versions", 3),
]


@pytest.mark.parametrize("spoil", NO_EVIDENCE)
def test_sealed_nonsense_is_refused_and_nothing_raises(spoil: Callable[[dict[str, Any]], None], slow_fleet: dict[str, Any]) -> None:
    data = copy.deepcopy(slow_fleet)
    spoil(data)
    with pytest.raises(BadEvidence):
        replay(read_evidence(json.dumps(sealed(data))), TODAY)


# -- what is different today


def test_a_floor_that_rose_since_is_named_with_what_it_would_change() -> None:
    found = replay(evidence(run(FakeNode("n1"), FakeNode("n2"))), replace(TODAY, floors=[replace(one, floor=one.floor * 30) for one in SHIPPED]))
    assert found.verdicts == {"n1": "pass", "n2": "pass"}
    assert found.broken == ()
    assert any("network.all_reduce" in text and "no longer shipped as it was" in text for text in found.changed)
    with_more = replay(evidence(run(FakeNode("n1"), FakeNode("n2"))), replace(TODAY, floors=[replace(one, floor=one.bound) for one in SHIPPED]))
    assert any(text.startswith("n1 network.all_reduce: pass then, fail with today's floors: measured") for text in with_more.changed)


def test_a_suite_and_a_version_that_changed_are_named() -> None:
    found = again(run(FakeNode("n1")), replace(TODAY, suites={"quick": "another"}, version="2.0"))
    assert found.changed == ("suite quick is not what it was: a run of today checks something else", "the run was made by nodectl 1.0, this is 2.0")


def test_a_site_floor_goes_with_the_evidence() -> None:
    site = replace(next(one for one in SHIPPED if one.metric == "network.all_reduce" and dict(one.match)["fabric"] == "tcp" and one.statistic == "median"), floor=5e9, site=True)
    found = again(run(FakeNode("n1"), FakeNode("n2"), terms=Terms(floors=[site], today="2026-12-01")))
    assert found.verdicts == {"n1": "fail", "n2": "fail"}
    assert (found.broken, found.changed) == ((), ())


def test_only_floors_that_were_used_are_in_it(slow_fleet: dict[str, Any]) -> None:
    assert {one["metric"] for one in slow_fleet["floors"]} >= {"network.pairs", "network.all_reduce"}
    assert all(one["source"] and one["date"] and one["bound"] for one in slow_fleet["floors"])
    assert not [one for one in slow_fleet["floors"] if "H100-SXM" in str(one["match"])]


def test_inputs_and_versions(slow_fleet: dict[str, Any]) -> None:
    assert slow_fleet["inputs"]["settings"]["n1"] == {"torch_python": "/opt/torch/bin/python"}
    assert slow_fleet["inputs"]["suite"]["name"] == "preflight"
    assert 'kind = "pairs"' in slow_fleet["inputs"]["suite"]["text"]
    assert slow_fleet["versions"]["nodectl"] == "1.0"
    assert "fio-3.33" in slow_fleet["versions"]["methods"]
    assert slow_fleet["simulated"] is True


# -- on the command line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a run of which n1 failed, with its handoff."""
    (tmp_path / "run").mkdir()
    journal = Journal(tmp_path / "run" / "events.jsonl")
    for event in run(FakeNode("n1", answers={"probe_limits": limits(65536)}), FakeNode("n2")).events:
        journal(event)
    journal.close()
    write_handoff(read_journal(tmp_path / "run" / "events.jsonl"), tmp_path / "run" / "handoff")
    return tmp_path / "run"


def told(capfd: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    code = nodectl(["verify", "--replay", *argv])
    out = capfd.readouterr()
    return code, out.out + out.err


@pytest.mark.parametrize("path", ["", "handoff/evidence.json"])
def test_a_run_and_its_file_give_the_table_and_the_code(folder: Path, path: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, text = told(capfd, str(folder / path))
    assert code == 3
    assert "n1" in text
    assert "limits.memlock" in text
    assert "as recorded" in text
    assert "does not hold" not in text


def test_a_tampered_file_exits_1_with_its_code(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = folder / "handoff/evidence.json"
    path.write_text(path.read_text().replace('"verdict": "fail"', '"verdict": "pass"'))
    code, text = told(capfd, str(path))
    assert code == 1
    assert "error[E409]" in text
    assert "it was changed after it was written" in text


def test_a_journal_and_a_file_that_disagree(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = folder / "events.jsonl"
    assert '"value":"64 KiB"' in path.read_text()
    path.write_text(path.read_text().replace('"value":"64 KiB"', '"value":"65 KiB"'))
    code, text = told(capfd, str(folder))
    assert code == 3
    assert "does not hold: readings of the journal are not those of handoff/evidence.json" in text


def test_a_folder_without_readings(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    journal(Event("run.start", 1.0, "", {"command": "run"}))
    journal.close()
    code, text = told(capfd, str(tmp_path))
    assert code == 1
    assert "this run verified nothing" in text


@pytest.mark.parametrize("argv", [["nowhere.json"], ["r", "hosts.yaml"], ["r", "--suite", "quick"]])
def test_wrong_command_lines(argv: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    code, _ = told(capfd, *argv)
    assert code == 1
