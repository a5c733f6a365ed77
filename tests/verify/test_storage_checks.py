"""Storage of one node, as its probes answer: which check says what, and that nothing without proof passes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from nodectl.verify.judging.measurement import Verdict
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import load_suite, suite_of
from nodectl.wire.outcome import Outcome
from tests.verify.fleet import HEALTHY, FakeFleet, FakeNode, Seen, node_of, storage

MOUNTS = {"file_mounts": {"/data": {"source": "s3://d", "mode": "MOUNT"}, "/ckpt": {"source": "s3://c", "mode": "MOUNT_CACHED"}}}
SUITE = suite_of("".join(f'[[step]]\nkind = "{kind}"\ndeadline = 60\n{more}\n' for kind, more in (
    ("mounts", ""), ("scratch", 'size = "1 MiB"\ngpu_size = "1 MiB"\nruntime = 1\nmax_fsync = "100 ms"'), ("mount_io", 'size = "1 MiB"\nruntime = 1\nmax_fsync = "1 s"'),
    ("phases", 'model_size = "1 MiB"\ncheckpoint_size = "1 MiB"\nbatches = 1\nbatch_size = "1 MiB"'), ("flush", ""),
)), "storage")
WAYS = ("write", "read", "randread", "randwrite", "fsync")


def whole(probe: str) -> dict[str, Any]:
    found = HEALTHY[probe]
    return copy.deepcopy((found if isinstance(found, Outcome) else found(FakeNode("n1"), {})).values)


def on(path: str, values: dict[str, Any], probe: str) -> Callable[[FakeNode, dict[str, Any]], Outcome]:
    """The answer for one folder; all others answer as healthy ones do."""
    return lambda _node, args: Outcome(values=copy.deepcopy(values if args["path"] == path else whole(probe)))


def run(answers: dict[str, Any], variables: dict[str, Any] | None = None) -> tuple[Verdict, Seen, FakeNode]:
    node, seen = FakeNode("n1", answers=answers, variables={**MOUNTS, **(variables or {})}), Seen()
    return verify([node_of(node)], SUITE, FakeFleet(node), seen)["n1"], seen, node


def way(name: str, **changes: Any) -> dict[str, Any]:
    values = whole("probe_fio")
    values["ways"][name].update(changes)
    return values


def phase(**changes: Any) -> dict[str, Any]:
    values = whole("probe_phases")
    for key, change in changes.items():
        values[key] = {**values[key], **change} if isinstance(values[key], dict) and isinstance(change, dict) and "error" not in change else change
    return values


def test_every_kind_of_access_and_every_phase_is_a_check() -> None:
    verdict, seen, _ = run({})
    assert verdict == "pass", seen.reasons("n1")
    names = {event.data["name"] for event in seen.of("check", "n1")}
    figures = ("seq_write", "seq_read", "rand_read", "rand_write", "fsync")
    assert {f"disk.scratch.{what}" for what in figures} | {f"mount.{what}:{path}" for what in figures for path in ("/data", "/ckpt")} <= names
    phases = ("batch_read", "model_load", "checkpoint_write", "checkpoint_durable")
    assert {f"phase.{what}:{path}" for what in phases for path in ("/data", "/ckpt")} | {"mount.content:/data", "mount.content:/ckpt", "scratch.writable"} <= names


def test_a_node_is_not_handed_off_while_files_wait() -> None:
    """All mounts together have the step's deadline, and a mount that is not usable is not waited for."""
    orders: dict[str, dict[str, Any]] = {}

    def left(_node: FakeNode, args: dict[str, Any]) -> Outcome:
        orders[args["path"]] = args
        return Outcome(failed=True, msg="not everything is in the object store after 60 s: 1 files are left: run/last.pt", values={"count": 1, "files": ["run/last.pt"]})

    gone = Outcome(values={"usable": False, "reason": "Transport endpoint is not connected"})
    verdict, seen, _ = run({"object_flush": left, "probe_object_mount": lambda _n, args: gone if args["path"] == "/data" else Outcome(values={"usable": True})})
    data = seen.check("n1", "mount.flushed:/ckpt").data
    assert (verdict, data["verdict"], list(orders)) == ("fail", "fail", ["/ckpt"])
    assert "run/last.pt" in data["reason"]
    assert 59 < orders["/ckpt"]["timeout"] <= 60


LOST, SLOW_SYNC = "no proof that the storage was measured", {"sync_latency_s": {"p99": 0.2}}
# name; probe; folder; its answer; verdict; the check that says so; words of its reason
CASES: list[tuple[str, str, str, dict[str, Any], Verdict, str, str]] = [
    ("scratch cannot be written", "probe_storage_target", "/scratch", storage(writable=False, write_reason="OSError: [Errno 30] Read-only file system").values, "fail",
     "scratch.writable", "Read-only file system"),
    ("nobody tried to write", "probe_storage_target", "/scratch", storage(writable=None).values, "unknown", "mounts", "gave None for writable"),
    ("slow at random", "probe_fio", "/scratch", way("randread", bytes_per_second=0.9e6), "fail", "disk.scratch.rand_read", "expected at least 1 MB/s"),
    ("slow fsync", "probe_fio", "/scratch", way("fsync", **SLOW_SYNC), "fail", "disk.scratch.fsync", "measured 200 ms, expected at most 100 ms (99 of 100 fsyncs)"),
    ("fsync that a mount may take", "probe_fio", "/data", way("fsync", **SLOW_SYNC), "pass", "mount.fsync:/data", "expected at most 1 s"),
    ("from the cache", "probe_fio", "/scratch", way("read", proof="", proof_text="only 3 of 9 bytes went through loop1"), "unknown", "disk.scratch.seq_read", LOST),
    ("no fsync measured", "probe_fio", "/scratch", way("fsync", sync_latency_s={}), "unknown", "disk.scratch.fsync", "gave nothing for p99"),
    ("a read error", "probe_fio", "/scratch", way("randread", error="fio failed: Input/output error (error 5)"), "fail", "disk.scratch.works", "Input/output error"),
    ("fio died", "probe_fio", "/scratch", way("randread", error="fio failed: exit code -9"), "unknown", "disk.scratch.rand_read", "exit code -9"),
    ("mount answers from its cache", "probe_fio", "/ckpt", way("read", proof="", proof_text="fuse.s3fs may answer"), "unknown", "mount.seq_read:/ckpt", LOST),
    ("a mount's disk is broken", "probe_fio", "/ckpt", way("write", error="Input/output error"), "fail", "mount.works:/ckpt", "Input/output error"),
    ("samples from a cache", "probe_phases", "/data", phase(batch_read={"proof": ""}), "unknown", "phase.batch_read:/data", LOST),
    ("slow store", "probe_phases", "/ckpt", phase(durable={"bytes_per_second": 9e5}), "fail", "phase.checkpoint_durable:/ckpt", "expected at least 1 MB/s"),
    ("store refuses", "probe_phases", "/ckpt", phase(durable={"error": "the object store behind /ckpt says: 403 Forbidden", "store": True}), "fail", "mount.content:/ckpt", "403 Forbidden"),
    ("store too slow to end", "probe_phases", "/ckpt", phase(durable={"error": "after 60 s 2 of 4 files are in the cache", "not_durable": 2}), "fail", "mount.content:/ckpt", "2 of 4"),
    ("store changes content", "probe_phases", "/ckpt", phase(durable={"error": "the object store gives back other bytes", "corrupt": True}), "fail", "mount.content:/ckpt", "other bytes"),
    ("reads other content", "probe_phases", "/data", phase(content={"wrong": ["model: other bytes than were written"]}), "fail", "mount.content:/data", "/data: model: other bytes"),
    ("nobody may ask the store", "probe_phases", "/ckpt", phase(durable={"error": "only root can see how rclone reaches the store"}), "unknown", "mount.content:/ckpt", "only root"),
    ("nothing to wait for on FUSE", "probe_phases", "/ckpt", phase(durable=None), "unknown", "phase.checkpoint_durable:/ckpt", "gave None for durable"),
    ("a network filesystem", "probe_phases", "/ckpt", phase(durable=None, conditions={"fstype": "nfs4"}), "pass", "mount.content:/ckpt", "measured yes"),
]


@pytest.mark.parametrize(("probe", "path", "values", "verdict", "check", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_answers(probe: str, path: str, values: dict[str, Any], verdict: Verdict, check: str, words: str) -> None:
    found, seen, _ = run({probe: on(path, values, probe)})
    assert found == verdict, seen.reasons("n1")
    data = seen.check("n1", check).data
    assert data["verdict"] == verdict
    assert words in data["reason"]
    worse = {event.data["name"] for event in seen.of("check", "n1") if event.data["verdict"] != "pass"}
    assert all(name.endswith(path) or path == "/scratch" for name in worse), worse


def test_a_full_disk_is_named_with_both_figures() -> None:
    full = Outcome(failed=True, msg="/scratch has 1000 bytes free; the test needs 900000", values={"free_bytes": 1000, "needed_bytes": 900000})
    verdict, seen, _ = run({"probe_fio": lambda _n, args: full if args["path"] == "/scratch" else Outcome(values=whole("probe_fio"))})
    data = seen.check("n1", "disk.scratch.free").data
    assert (verdict, data["verdict"], data["value"], data["floor"]) == ("fail", "fail", 1000, 1e6)
    assert "the test needs 900000" in data["reason"]


def test_disks_that_are_not_striped_are_each_measured() -> None:
    slow = way("write", bytes_per_second=1e6)
    answers = {
        "probe_mounts": Outcome(values={"mounts": [{"path": "/scratch"}, {"path": "/scratch2"}, {"path": "/scratches"}, {"path": "/"}]}),
        "probe_storage_target": lambda _n, args: storage(target=args["path"]), "probe_fio": on("/scratch2", slow, "probe_fio"),
    }
    verdict, seen, _ = run(answers, {"scratch_devices": [{"serial": "a"}, {"serial": "b"}]})
    assert verdict == "fail"
    assert seen.check("n1", "disk.scratch.seq_write").data["verdict"] == "pass"
    data = seen.check("n1", "disk.scratch.seq_write:/scratch2").data
    assert (data["verdict"], data["value"]) == ("fail", 1e6)
    assert seen.check("n1", "scratch.writable:/scratch2").data["verdict"] == "pass"


def test_a_scratch_disk_that_cannot_be_written_is_not_measured() -> None:
    asked: list[str] = []

    def fio(_node: FakeNode, args: dict[str, Any]) -> Outcome:
        asked.append(args["path"])
        return Outcome(values=whole("probe_fio"))

    _, seen, _ = run({"probe_storage_target": storage(writable=False, write_reason="No space left on device"), "probe_fio": fio})
    assert asked == ["/data", "/ckpt"]
    assert "not measured: /scratch" in seen.check("n1", "disk.scratch.seq_write").data["reason"]


def test_a_mount_that_is_not_usable_is_not_measured() -> None:
    gone = Outcome(values={"usable": False, "reason": "Transport endpoint is not connected"})
    answer = {"probe_object_mount": lambda _n, args: gone if args["path"] == "/data" else Outcome(values={"usable": True, "reason": ""})}
    verdict, seen, _ = run(answer)
    assert verdict == "fail"
    for name in ("mount.seq_write:/data", "phase:/data"):
        assert "not found mounted and usable" in seen.check("n1", name).data["reason"]


@pytest.mark.parametrize(("answer", "verdict", "words"), [
    (storage(target="/", exists=True), "pass", "copied in full"), (storage(target="/", exists=False), "fail", "/set (on /) has no .nodectl-copied: the copy is not there, or not whole"),
    (Outcome(failed=True, msg="/ does not answer"), "unknown", "/ does not answer"), (storage(target="/", exists="x"), "unknown", "expected true or false"),
])
def test_a_copy_is_proven_by_its_mark_and_not_measured_as_a_mount(answer: Outcome, verdict: Verdict, words: str) -> None:
    def under(_node: FakeNode, args: dict[str, Any]) -> Outcome:
        return answer if args["path"] == "/set/.nodectl-copied" else storage()

    found, seen, _ = run({"probe_storage_target": under}, {"file_mounts": {"/set": {"source": "s3://b", "mode": "COPY"}}})
    assert found == verdict, seen.reasons("n1")
    assert words in " ".join(str(event.data["reason"]) for event in seen.of("check", "n1"))
    assert {event.data["name"] for event in seen.of("check", "n1") if "/set" in event.data["name"]} <= {"mount:/set"}


# what the mount says; what the store says past it (None: it cannot be asked), and whether it answered; verdict; words of the reason
REMEMBERED: list[tuple[dict[str, Any], str, bool | None, Verdict, str]] = [
    ({"usable": True, "reason": ""}, "", True, "pass", "measured yes"),
    ({"usable": True, "reason": ""}, "only root can see how rclone reaches the store: use become", None, "pass", "measured yes"),
    ({"usable": True, "reason": ""}, "no rclone process of this node holds /data", None, "pass", "measured yes"),
    ({"usable": True, "reason": ""}, "the object store behind /data says: connection refused", False, "fail", "/data still shows the names it remembers; the object store behind /data says: connection refused"),
    ({"usable": False, "reason": "ops cannot list /data: I/O error"}, "the object store behind /data says: 403", False, "fail", "ops cannot list /data: I/O error; the object store behind /data says: 403"),
    ({"usable": False, "reason": "nothing is mounted on /data"}, "", True, "fail", "nothing is mounted on /data"),
]


@pytest.mark.parametrize(("mount", "store", "answered", "verdict", "words"), REMEMBERED)
def test_names_that_a_mount_remembers_are_no_store(mount: dict[str, Any], store: str, answered: bool | None, verdict: Verdict, words: str) -> None:
    """A listing outlives its store for minutes: the store is asked past the mount, and what cannot be asked proves nothing against it."""
    past = {"usable": False, "reason": store, "store": store, "store_answers": answered}

    def answer(_node: FakeNode, args: dict[str, Any]) -> Outcome:
        return Outcome(values=whole("probe_object_mount") if args["path"] != "/data" else past if args.get("store") else mount)

    found, seen, _ = run({"probe_object_mount": answer})
    data = seen.check("n1", "mount:/data").data
    assert (found, data["verdict"]) == (verdict, verdict), data["reason"]
    assert words in data["reason"]


def test_a_mount_whose_store_is_silent_is_not_measured() -> None:
    def answer(_node: FakeNode, args: dict[str, Any]) -> Outcome:
        return Outcome(values={"usable": True, "reason": "", "store": "did not answer", "store_answers": False if args.get("store") else None})

    _, seen, node = run({"probe_object_mount": answer})
    assert "probe_phases" not in node.asked
    assert "not found mounted and usable" in seen.check("n1", "phase:/data").data["reason"]


def test_the_store_is_asked_as_root_for_the_account_that_trains() -> None:
    orders: dict[str, dict[str, Any]] = {}

    def note(probe: str) -> Callable[[FakeNode, dict[str, Any]], Outcome]:
        def answer(_node: FakeNode, args: dict[str, Any]) -> Outcome:
            orders[f"{probe} {args['path']}"] = args
            return Outcome(values=whole(probe))

        return answer

    run({"probe_fio": note("probe_fio"), "probe_phases": note("probe_phases")})
    user = node_of(FakeNode("n1")).target.user
    assert orders["probe_fio /data"]["user"] == orders["probe_phases /ckpt"]["user"] == user
    assert "user" not in orders["probe_fio /scratch"]
    assert orders["probe_fio /scratch"]["ways"] == list(WAYS)


def test_the_shipped_suite_measures_all_of_it() -> None:
    assert {"scratch", "mount_io", "phases"} <= {step.kind for step in load_suite("preflight").steps}
