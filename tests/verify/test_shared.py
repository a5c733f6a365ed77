"""A mount that all nodes share: who does not see what others wrote, whose file nobody sees, and that nothing is left behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from nodectl.verify.group.shared_checks import Look, shared_reading
from nodectl.verify.judging.judge import judge
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import load_suite, suite_of
from nodectl.wire.outcome import Outcome
from tests.verify.fleet import FakeFleet, FakeNode, Seen, node_of

SUITE = suite_of('[[step]]\nkind = "mounts"\ndeadline = 20\n[[step]]\nkind = "shared"\ndeadline = 20\nwithin = 10\n', "shared")
CACHED = {"source": "s3://c", "mode": "MOUNT_CACHED", "profile": "checkpoint_rw"}

# what is wrong; who wrote; who missed whom; verdicts of all; who and words of the reason
CASES: list[tuple[str, str, dict[str, str], str, str]] = [
    ("all see all", "123", {"1": "", "2": "", "3": "", "4": ""}, "pppp", ""),
    ("an old listing", "123", {"1": "", "2": "13", "3": "", "4": ""}, "pfpp", "2: does not show here what n1, n3 wrote 10 s ago, and n3, n4 sees it"),
    ("an old listing of one that only looks", "123", {"1": "", "2": "", "3": "", "4": "123"}, "pppf", "4: does not show here what n1, n2, n3"),
    ("one name of three", "123", {"1": "", "2": "", "3": "", "4": "2"}, "pppf", "4: what n2 wrote"),
    ("nothing of one goes up", "123", {"1": "2", "2": "", "3": "2", "4": "2"}, "pfpp", "2: appeared nowhere within 10 s (n1, n3, n4 looked)"),
    ("an old listing that does not go up either", "123", {"1": "2", "2": "13", "3": "2", "4": "2"}, "pfpp", "2: appeared nowhere"),
    ("two of them", "123", {"1": "3", "2": "13", "3": "", "4": "3"}, "pffp", "3: appeared nowhere"),
    ("two nodes", "12", {"1": "", "2": "1"}, "ff", "2: no third node looked"),
    ("two nodes, both ends", "12", {"1": "2", "2": "1"}, "ff", "1: appeared nowhere within 10 s (n2 looked)"),
    ("three nodes", "123", {"1": "", "2": "13", "3": ""}, "pfp", "2: n1, n3"),
    ("one writer", "1", {"1": "", "2": "", "3": "1"}, "ppf", "3: n2 sees it"),
    ("nobody looked but the writer", "1", {"1": ""}, "p", ""),
]


def name(number: str) -> str:
    return f"n{number}"


@pytest.mark.parametrize(("writers", "missing", "verdicts", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_who_is_named(writers: str, missing: Mapping[str, str], verdicts: str, words: str) -> None:
    reading = shared_reading(Look("/ckpt", 10.0, [*map(name, writers)], {name(host): [*map(name, missed)] for host, missed in missing.items()}))
    checks = {check.host: check for check in judge(reading.measurements, (), reading.expectations)}
    assert "".join(checks[name(host)].verdict[0] for host in missing) == verdicts
    assert {check.name for check in checks.values()} == {"mount.shared:/ckpt"}
    if words:
        host, _, text = words.partition(": ")
        assert text in checks[name(host)].reason


def test_who_could_not_look_is_unknown() -> None:
    reading = shared_reading(Look("/ckpt", 10.0, ["n1"], {"n1": [], "n2": []}, {"n3": "/ckpt: OSError: [Errno 5] Input/output error"}))
    checks = {check.host: check for check in judge(reading.measurements, (), reading.expectations)}
    assert (checks["n3"].verdict, "Input/output error" in checks["n3"].reason) == ("unknown", True)


class Store:
    """Files of one bucket as the nodes see them. ``stale`` nodes see only their own, what ``stuck`` nodes write stays with them; ``refuses`` nothing written."""

    def __init__(self, stale: str = "", stuck: str = "", refuses: str = "") -> None:
        self.files: dict[str, str] = {}
        self.stale, self.stuck, self.refuses = stale, stuck, refuses

    def __call__(self, node: FakeNode, args: dict[str, Any]) -> Outcome:
        if args.get("write"):
            if node.name in self.refuses.split():
                return Outcome(failed=True, msg="/ckpt: PermissionError: [Errno 13] Permission denied")
            self.files[args["write"]] = node.name
        self.files.pop(args.get("remove", ""), None)
        return Outcome(values={"missing": [file for file in args.get("look", []) if not self.sees(node.name, file)]})

    def sees(self, host: str, file: str) -> bool:
        writer = self.files.get(file, "")
        return writer == host or (writer != "" and host not in self.stale.split() and writer not in self.stuck.split())


def run(store: Any, count: int = 4, mounts: Mapping[str, Any] | None = None, **changes: Any) -> tuple[dict[str, str], Seen, list[FakeNode]]:
    nodes = [FakeNode(f"n{number}", answers={"probe_shared_mount": store}, variables={"file_mounts": mounts or {"/ckpt": CACHED}}) for number in range(1, count + 1)]
    for key, value in changes.items():
        setattr(nodes[1], key, value)
    seen = Seen()
    return dict(verify([node_of(node) for node in nodes], SUITE, FakeFleet(*nodes), seen)), seen, nodes


@pytest.mark.parametrize(("store", "bad"), [(Store(), ""), (Store(stale="n2"), "n2"), (Store(stale="n4"), "n4"), (Store(stuck="n3"), "n3"), (Store(refuses="n1"), ""), (Store(refuses="n1 n2 n3"), "")])
def test_the_step_names_the_node_and_leaves_no_file(store: Store, bad: str) -> None:
    verdicts, seen, _ = run(store)
    assert {host for host, verdict in verdicts.items() if verdict != "pass"} == ({bad} if bad else set()), [seen.reasons(host) for host in verdicts]
    assert store.files == {}


@pytest.mark.parametrize("spec", [{**CACHED, "mode": "COPY"}, {**CACHED, "profile": "dataset_ro"}, {**CACHED, "profile": "MODEL_CHECKPOINT_RO"}])
def test_copies_and_mounts_that_are_only_read_are_left_alone(spec: dict[str, Any]) -> None:
    _, _, nodes = run(Store(), mounts={"/data": spec})
    assert not [node for node in nodes if "probe_shared_mount" in node.asked]


def test_a_mount_of_one_node_is_shared_with_nobody() -> None:
    verdicts, _, nodes = run(Store(), variables={"file_mounts": {"/ckpt": {**CACHED, "source": "s3://another"}}}, count=2)
    assert set(verdicts.values()) == {"pass"}
    assert "probe_shared_mount" not in nodes[0].asked + nodes[1].asked


def test_a_source_alone_is_a_mount() -> None:
    _, _, nodes = run(Store(), mounts={"/ckpt": "s3://c"})
    assert [node.asked.count("probe_shared_mount") for node in nodes] == [3, 3, 3, 1]


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_node_that_is_lost_on_the_way_costs_the_others_nothing(after: int) -> None:
    verdicts, _, _ = run(Store(), gone_at=("probe_shared_mount", after))
    assert verdicts == {"n1": "pass", "n2": "unknown", "n3": "pass", "n4": "pass"}


def test_an_answer_that_says_nothing_is_unknown() -> None:
    verdicts, seen, _ = run(Outcome(values={"missing": "no"}))
    assert set(verdicts.values()) == {"pass"}  # nobody is known to have written: there is nothing to look for
    assert not [event for event in seen.of("check") if event.data["name"].startswith("mount.shared")]


def test_a_mount_that_fails_is_not_asked() -> None:
    gone: Sequence[Any] = [Outcome(values={"usable": False, "reason": "nothing is mounted on /ckpt"})]
    store = Store()
    nodes = [FakeNode(f"n{number}", answers={"probe_shared_mount": store, **({"probe_object_mount": gone[0]} if number == 2 else {})}, variables={"file_mounts": {"/ckpt": CACHED}}) for number in (1, 2, 3)]
    verdicts = verify([node_of(node) for node in nodes], SUITE, FakeFleet(*nodes), Seen())
    assert verdicts == {"n1": "pass", "n2": "fail", "n3": "pass"}
    assert "probe_shared_mount" not in nodes[1].asked


def test_the_shipped_suites_do_it() -> None:
    for suite in ("preflight", "burnin"):
        step = load_suite(suite).step("shared")
        assert step is not None
        assert step.option("within") == 30
