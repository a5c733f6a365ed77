"""Every answer of every probe damaged in every way: the node ends as unknown or fail, never as a pass, and takes nobody with it."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from nodectl.report.fold import fold
from nodectl.report.journal import _event
from nodectl.transport.channel import Unreachable
from nodectl.verify.judging.measurement import Verdict
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import Suite, suite_of
from nodectl.wire.outcome import Outcome
from tests.verify.fleet import HEALTHY, FakeFleet, FakeNode, Seen, address, node_of, said

STEPS = {
    "login": "", "fabric": "", "route": "", "clock": 'max_offset = "500 ms"\n', "mounts": "", "torch": "",
    "pairs": 'sizes = ["1 MiB"]\ngpu_sizes = ["1 MiB"]\niterations = 3\nwarmup = 0\ntimeout = 5\nrounds = 3\n',
    "all_reduce": 'sizes = ["1 MiB"]\ngpu_sizes = ["1 MiB"]\niterations = 3\nwarmup = 0\ntimeout = 5\n',
    "scratch": 'size = "1 MiB"\ngpu_size = "1 MiB"\nruntime = 1\nmax_fsync = 1\n',
    "mount_io": 'size = "1 MiB"\nruntime = 1\nmax_fsync = 1\n',
    "flush": "",
    "phases": 'model_size = "1 MiB"\ncheckpoint_size = "1 MiB"\nbatches = 1\nbatch_size = "1 MiB"\n',
}
MOUNTS = {"file_mounts": {"/data": {"source": "s3://d", "mode": "MOUNT"}, "/ckpt": {"source": "s3://c", "mode": "MOUNT_CACHED"}}}


def suite(*kinds: str) -> Suite:
    return suite_of("".join(f'[[step]]\nkind = "{kind}"\ndeadline = 30\n{STEPS[kind]}' for kind in kinds), "case")


def verdicts(bad: FakeNode, wanted: Suite, others: int = 2) -> tuple[dict[str, Verdict], Seen]:
    good = [FakeNode(f"n{index}", variables=dict(MOUNTS)) for index in range(1, others + 1)]
    fleet, seen = FakeFleet(*good, bad), Seen()
    return verify([node_of(node) for node in [*good, bad]], wanted, fleet, seen), seen


# probe, the steps that ask it
ASKED: dict[str, tuple[str, ...]] = {
    "probe_limits": ("login",), "fabric_facts": ("fabric",), "probe_route": ("route",), "probe_clock": ("clock",), "probe_storage_target": ("mounts",),
    "probe_object_mount": ("mounts",), "probe_fio": ("mounts", "scratch", "mount_io"), "probe_phases": ("mounts", "phases"), "object_flush": ("mounts", "flush"), "workload": ("torch",),
}
# What only describes a figure. Without it the verdict may stay what it is.
DESCRIBING = {
    "probe_route": {"routes", "speed"}, "probe_clock": {"monotonic_ns", "boot_id"}, "probe_limits": {"unit"}, "probe_storage_target": {"source", "kind"},
    "probe_object_mount": {"reason"}, "probe_phases": {"method", "conditions"}, "object_flush": {"files", "waited"},
    "workload": {"rc", "stderr", "timed_out"}, "fabric_facts": {"gpus"},
}
HOSTILE: list[Any] = [None, "", "garbage", [], [None], ["x"], {}, {"x": 1}, float("nan"), float("inf"), -1, -1e300, 10**400, True, b"bytes"]


def healthy(probe: str) -> Outcome:
    found = HEALTHY.get(probe)
    if found is None:
        return said(0, {"kind": "torch", "torch": "2.13", "python": "3.11", "cuda": "", "gpus": 0, "names": [], "nccl": "", "gloo": True})
    outcome = found if isinstance(found, Outcome) else found(FakeNode("n3"), {})
    return copy.deepcopy(outcome)


def damaged(probe: str) -> Iterator[tuple[str, str, Outcome]]:
    """(key, what was done to it, the answer)."""
    facts = probe == "fabric_facts"
    plain = healthy(probe)
    inside = plain.facts["nodectl_fabric"] if facts else plain.values
    for key in inside:
        for value in ["(left out)", *HOSTILE]:
            outcome = copy.deepcopy(plain)
            target = outcome.facts["nodectl_fabric"] if facts else outcome.values
            if value == "(left out)":
                del target[key]
            elif type(value) is type(target[key]) and value == target[key]:
                continue
            else:
                target[key] = value
            yield key, repr(value)[:20], outcome


# A value that is hostile to one key is right for another: the empty list of GPUs, no fault found, "some text" as a filesystem's name.
HARMLESS = {("fabric_facts", "not_found"), ("fabric_facts", "hcas"), ("fabric_facts", "interfaces"), ("probe_object_mount", "usable"), ("probe_storage_target", "disks")}
NAMES = {("probe_route", "interface")}  # any text may be one


def test_a_healthy_answer_passes() -> None:
    """The guard of this file: what is damaged below passes where it is whole."""
    for probe, kinds in ASKED.items():
        found, seen = verdicts(FakeNode("n3", answers={probe: healthy(probe)}, variables=dict(MOUNTS)), suite(*kinds))
        assert found["n3"] == "pass", (probe, seen.reasons("n3"))


@pytest.mark.parametrize("probe", ASKED)
def test_no_damaged_answer_passes(probe: str) -> None:
    wrong = []
    for key, done, outcome in damaged(probe):
        found, seen = verdicts(FakeNode("n3", answers={probe: outcome}, variables=dict(MOUNTS)), suite(*ASKED[probe]))
        others = {found["n1"], found["n2"]}
        harmless = key in DESCRIBING.get(probe, ()) or (done in ("[]", "True", "['x']") and (probe, key) in HARMLESS) or (done == "'garbage'" and (probe, key) in NAMES)
        if others != {"pass"} or (found["n3"] == "pass" and not harmless):
            wrong.append(f"{key} {done}: {found} {seen.reasons('n3')}")
        if found["n3"] != "pass":
            assert seen.reasons("n3"), (key, done)
    assert wrong == []


FAILURES: dict[str, dict[str, Any]] = {
    "failed": {"answer": Outcome(failed=True, msg="it is broken")},
    "nothing": {"answer": Outcome()},
    "skipped": {"answer": Outcome(skipped=True, msg="nothing is measured in check mode")},
    "hangs": {"hangs": True},
    "lost": {"lost": True},
}


@pytest.mark.parametrize(("probe", "failure"), list(itertools.product(ASKED, FAILURES)))
def test_every_way_to_fail(probe: str, failure: str) -> None:
    way = FAILURES[failure]
    node = FakeNode("n3", variables=dict(MOUNTS), answers={probe: way["answer"]} if "answer" in way else {})
    if way.get("hangs"):
        node.hangs_at = probe
    if way.get("lost"):
        node.gone_at = (probe, 0)
    found, seen = verdicts(node, suite(*ASKED[probe]))
    assert found["n3"] in ("unknown", "fail"), seen.reasons("n3")
    assert (found["n1"], found["n2"]) == ("pass", "pass")
    assert seen.reasons("n3")
    assert len(seen.of("host.lost")) == (1 if way.get("hangs") or way.get("lost") else 0)


def test_what_is_lost_is_lost_in_the_journal_too() -> None:
    """The event's own words must not hide what it is: the exit code is made from the journal's flat lines."""
    node = FakeNode("n3", gone_at=("probe_clock", 0), variables=dict(MOUNTS))
    _, seen = verdicts(node, suite("clock"))
    summary = fold(_event(json.dumps(event.to_json()).encode()) for event in seen.events)
    assert (summary.hosts["n3"].status, int(summary.exit_code)) == ("lost", 4)


@pytest.mark.parametrize(("why", "verdict"), [("auth", "fail"), ("host_key", "fail"), ("python", "fail"), ("timeout", "unknown"), ("refused", "unknown")])
def test_a_fresh_login_that_is_refused(why: Any, verdict: Verdict) -> None:
    found, _ = verdicts(FakeNode("n3", fresh=Unreachable(why, "no"), variables=dict(MOUNTS)), suite("login"))
    assert found == {"n1": "pass", "n2": "pass", "n3": verdict}


# -- what ranks print

def line(**changes: Any) -> dict[str, Any]:
    whole = {"kind": "result", "rank": 0, "bytes": 2**20, "seconds": [0.002], "correct": True, "wrong": 0}
    return {key: value for key, value in {**whole, **changes}.items() if value != "(left out)"}


NO_VALUES: list[Any] = ["(left out)", None, "x", [], {}, -1, float("nan"), True]
NO_TIMES: list[Any] = [[], [0.0], [-1.0], [float("nan")], [float("inf")], ["0.002"], [None], [10**400], [0.002, float("nan")]]
RANKS: list[dict[str, Any]] = [
    *(line(**{key: value}) for key in ("rank", "bytes", "seconds", "wrong") for value in NO_VALUES),
    *(line(seconds=value) for value in NO_TIMES),
    line(rank=7), line(rank=-1), line(bytes=0), line(wrong=1), line(correct=False), line(correct=None), {"kind": "result"}, {"kind": "nothing"}, {},
    {"kind": "error"}, {"kind": "error", "rank": "x"}, {"kind": "missing"}, {"kind": "missing", "ranks": 3}, {"kind": "missing", "ranks": ["x", None, 99]}, {"kind": "ready"},
]


@pytest.mark.parametrize("record", RANKS, ids=lambda record: str(record)[:70])
def test_no_garbled_rank_makes_a_pass(record: dict[str, Any]) -> None:
    def workload(node: FakeNode, args: dict[str, Any]) -> Outcome:
        if not args.get("argv"):
            return healthy("workload")
        config = json.loads(args["argv"][0])
        mine = said(0, {**record, "rank": config["node_rank"]} if record.get("rank") == 0 and type(record.get("rank")) is int else record)
        fleet = fleets[0]
        fleet.collective(node, config)
        return mine

    good = [FakeNode(f"n{index}") for index in (1, 2, 3)]
    bad = FakeNode("n4", answers={"workload": workload})
    fleets = [FakeFleet(*good, bad)]
    seen = Seen()
    found = verify([node_of(node) for node in [*good, bad]], suite("route", "torch", "pairs", "all_reduce"), fleets[0], seen)
    assert found["n4"] in ("fail", "unknown"), seen.reasons("n4")
    assert (found["n1"], found["n2"], found["n3"]) == ("pass", "pass", "pass"), [seen.reasons(name) for name in found]


@pytest.mark.parametrize("port", [None, "x", -1, 0, 65536, float("nan"), [], True])
def test_a_port_that_is_none(port: Any) -> None:
    """n1 holds the rendezvous of its pairs and of the group: it is at fault, and the others form a group without it."""
    good = [FakeNode(f"n{index}") for index in (2, 3, 4)]
    bad = FakeNode("n1", answers={"probe_free_port": Outcome(values={"port": port})})
    seen = Seen()
    found = verify([node_of(node) for node in [bad, *good]], suite("route", "torch", "all_reduce"), FakeFleet(bad, *good), seen)
    assert found == {"n1": "fail", "n2": "pass", "n3": "pass", "n4": "pass"}
    assert "probe_free_port gave" in seen.reasons("n1")


@pytest.mark.parametrize("conditions", [{"bytes": "many"}, {"bytes": [1]}, {"nodes": "two"}, {"gpus": {}}, {"device": "nvme"}, {"bytes": 10**400}])
def test_conditions_of_a_probe_choose_no_floor_of_their_own(conditions: dict[str, Any]) -> None:
    """What the disk is was found out before: a probe cannot claim another device, and odd words end nothing."""
    outcome = healthy("probe_fio")
    for way in outcome.values["ways"].values():
        way["conditions"] = conditions
    found, seen = verdicts(FakeNode("n3", answers={"probe_fio": outcome}, variables=dict(MOUNTS)), suite("mounts", "scratch"))
    assert set(found.values()) == {"pass"}, seen.reasons("n3")
    assert "(loop, " in seen.check("n3", "disk.scratch.seq_read").data["source"]


def test_an_unknown_fabric_is_no_fabric() -> None:
    outcome = healthy("fabric_facts")
    outcome.facts["nodectl_fabric"]["kind"] = "quantum"
    found, seen = verdicts(FakeNode("n3", answers={"fabric_facts": outcome}), suite("fabric"))
    assert found["n3"] == "unknown"
    assert "'quantum'; expected one of efa, ib, roce, tcp" in seen.reasons("n3")


@pytest.mark.parametrize("interface", ["host0", ""])
def test_a_route_without_mtu_is_not_compared_and_not_passed(interface: str) -> None:
    """A node whose MTU is not known was once left out of the comparison, and passed."""
    answer = Outcome(values={"interface": interface, "source": address("n3") if interface else "", "mtu": 0})
    found, _ = verdicts(FakeNode("n3", answers={"probe_route": answer}), suite("route"))
    assert found == {"n1": "pass", "n2": "pass", "n3": "unknown" if interface else "fail"}
