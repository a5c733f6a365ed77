"""Groups of ranks: what came back put together, GPU nodes with every fault a group can show, and questions to one node."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from nodectl.transport.channel import BecomeTarget, Lost, Target, Unreachable
from nodectl.verify.group import gang
from nodectl.verify.group.gang import GangResult, Member, rank_env, run_gang
from nodectl.verify.group.isolate import Finding
from nodectl.verify.group.network_checks import Fleet, PairsOutcome, group_reading, node_reading, pairs_reading, speed, transport_reading
from nodectl.verify.judging.floor_load import Floor
from nodectl.verify.judging.judge import Expectation, judge
from nodectl.verify.judging.measurement import Verdict
from nodectl.verify.parse.workload import GroupOutput, SizeResult
from nodectl.verify.session import GRACE, Gone, Session
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import SuiteStep, load_suite
from nodectl.wire.outcome import Outcome
from nodectl.wire.step import Step
from tests.verify.fleet import FakeFleet, FakeNode, Seen, fabric, fio, node_of, paces, results, said, storage
from tests.verify.node_answers import HCA
from tests.verify.rdma_answers import measured as rdma_measured
from tests.verify.rdma_answers import port

GB = 1e9
SIZE = 16 * 2**30
STEP = SuiteStep("all_reduce", 60.0, (2**20,), (SIZE,), {"iterations": 3.0, "warmup": 1.0, "timeout": 20.0})

# -- one group put together


def outcome(rc: int = 0, stdout: str = "", stderr: str = "", **more: Any) -> Outcome:
    return Outcome(values={"rc": rc, "stdout": stdout, "stderr": stderr, "timed_out": False, **more})


def ranks(*numbers: int, wrong: int = 0, seconds: float = 0.5, size: int = SIZE) -> str:
    lines = [{"kind": "result", "rank": rank, "bytes": size, "seconds": [seconds], "correct": not wrong, "wrong": wrong} for rank in numbers]
    return "".join(f"NODECTL {json.dumps(line)}\n" for line in lines)


def error(rank: int, text: str) -> str:
    return f'NODECTL {json.dumps({"kind": "error", "rank": rank, "phase": "connecting", "error": text})}\n'


class Scripted:
    """Connections whose nodes answer from a list: an outcome, or an exception to raise."""

    def __init__(self, answers: dict[str, Any], ports: tuple[Any, ...] = (29500, 29501, 29502)) -> None:
        self.answers = answers
        self.ports = list(ports)
        self.orders: list[dict[str, Any]] = []
        self.reset_hosts: list[str] = []

    def channel(self, target: Target, become: BecomeTarget | None = None) -> Any:
        fleet = self

        class Channel:
            def submit(self, step: Step, blobs: Any = None) -> Any:
                class Pending:
                    def result(self, timeout: float | None = None) -> Outcome:
                        if step.module == "probe_free_port":
                            port = fleet.ports.pop(0)
                            return port if isinstance(port, Outcome) else Outcome(values={"port": port})
                        fleet.orders.append(dict(step.args))
                        given = fleet.answers[target.host]
                        found = given.pop(0) if isinstance(given, list) else given
                        if isinstance(found, BaseException):
                            raise found
                        assert isinstance(found, Outcome)
                        return found

                return Pending()

        return Channel()

    def reset(self, host: str) -> None:
        self.reset_hosts.append(host)


def members(connections: Any, *hosts: str, nproc: int = 1, backend: str = "gloo", **env: str) -> list[Member]:
    return [Member(Session(host, Target(host, f"10.0.0.{host[1:]}"), {}, connections), f"10.0.0.{host[1:]}", "eth0", nproc, "python3", backend, env) for host in hosts]


# what n2 answers; who is gone, who is to blame, who only saw it; words of the whole
TOGETHER: list[tuple[Any, set[str], set[str], set[str], str]] = [
    (outcome(stdout=ranks(1)), set(), set(), set(), ""),
    (outcome(rc=3, stdout=error(1, "peer closed")), set(), set(), {"n2"}, "n2 saw: connecting: peer closed"),
    (outcome(rc=-9, stderr="x\nKilled"), set(), {"n2"}, set(), "n2: its ranks ended with signal 9: Killed"),
    (outcome(rc=1), set(), {"n2"}, set(), "n2: its ranks ended with exit code 1: nothing was printed"),
    (outcome(rc=None), set(), {"n2"}, set(), "exit code 1"),  # type: ignore[arg-type]
    (Outcome(failed=True, msg="python3 is not there"), set(), {"n2"}, set(), "n2: python3 is not there"),
    (outcome(rc=-15, timed_out=True), set(), set(), {"n2"}, "did not end within the deadline"),
    (Lost("no byte for 20 s"), {"n2"}, set(), set(), "n2 was lost (no byte for 20 s)"),
    (TimeoutError(), {"n2"}, set(), set(), "no outcome within 70 s, although the step was to end after 60 s"),
    (Outcome(), set(), {"n2"}, set(), "nothing was printed"),
]


@pytest.mark.parametrize(("answer", "gone", "blamed", "saw", "words"), TOGETHER, ids=[words or "all well" for *_, words in TOGETHER])
def test_what_came_back_is_sorted_into_gone_guilty_and_victims(answer: Any, gone: set[str], blamed: set[str], saw: set[str], words: str) -> None:
    connections = Scripted({"n1": outcome(stdout=ranks(0)), "n2": answer})
    result = run_gang(members(connections, "n1", "n2"), STEP, (SIZE,))
    assert (set(result.gone), set(result.blamed), set(result.errors)) == (gone, blamed, saw)
    assert words in result.why()
    assert result.complete is not bool(gone or blamed or saw)
    assert bool(result.output.sizes) is result.complete
    assert connections.reset_hosts == (["n2"] if isinstance(answer, TimeoutError) else [])


TAKEN = outcome(rc=3, stdout=error(0, "The server socket has failed to listen: EADDRINUSE"))


@pytest.mark.parametrize(("first", "second", "complete"), [(TAKEN, outcome(stdout=ranks(0)), True), (TAKEN, TAKEN, False)])
def test_a_port_that_was_taken_is_asked_for_once_more_and_not_for_ever(first: Outcome, second: Outcome, complete: bool) -> None:
    connections = Scripted({"n1": [first, second], "n2": [outcome(stdout=ranks(1)), outcome(stdout=ranks(1))]})
    result = run_gang(members(connections, "n1", "n2"), STEP, (SIZE,))
    assert result.complete is complete
    assert [json.loads(order["argv"][0])["port"] for order in connections.orders[::2]] == [29500, 29501]


@pytest.mark.parametrize(("port", "words"), [(Outcome(failed=True, msg="no rendezvous can listen on 10.0.0.1"), "no rendezvous can listen"), ("x", "probe_free_port gave 'x'")])
def test_without_a_port_nobody_starts(port: Any, words: str) -> None:
    connections = Scripted({}, (port,))
    result = run_gang(members(connections, "n1", "n2"), STEP, (SIZE,))
    assert words in result.blamed["n1"]
    assert connections.orders == []


def test_the_order_to_each_node() -> None:
    connections = Scripted({"n1": outcome(stdout=ranks(0, 1)), "n2": outcome(stdout=ranks(2, 3))})
    run_gang(members(connections, "n1", "n2", nproc=2, backend="nccl", NCCL_DEBUG="WARN", MINE="1"), STEP, (SIZE,))
    configs = sorted((json.loads(order["argv"][0]) for order in connections.orders), key=lambda config: int(config["node_rank"]))
    assert [(config["node_rank"], config["nodes"], config["nproc"], config["master"], config["backend"]) for config in configs] == [(0, 2, 2, "10.0.0.1", "nccl"), (1, 2, 2, "10.0.0.1", "nccl")]
    (case,) = configs[0]["cases"]
    assert (case["op"], case["sizes"], case["iterations"], case["warmup"], case["keep"], case["in_place"]) == ("all_reduce", [SIZE], 3, 1, True, True)
    assert all(config["cases"] == [case] and config["init_timeout"] == 30.0 for config in configs)
    env = connections.orders[0]["env"]
    # what must be seen of NCCL is not the site's to switch off; what the site adds stays
    assert (env["NCCL_DEBUG"], env["NCCL_SOCKET_IFNAME"], env["MINE"]) == ("INFO", "=eth0", "1")
    assert connections.orders[0]["source"].startswith('"""Collectives over a group of nodes')


@pytest.mark.parametrize(("backend", "keys"), [("gloo", {"OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME", "TORCH_CPP_LOG_LEVEL"}), ("nccl", {"NCCL_SOCKET_IFNAME", "NCCL_DEBUG_FILE"})])
def test_environment_of_ranks(backend: str, keys: set[str]) -> None:
    (member,) = members(None, "n1", backend=backend)
    assert keys <= set(rank_env(member))
    assert ("NCCL_DEBUG" in rank_env(member)) is (backend == "nccl")


# -- readings of groups


def result(output: GroupOutput, number: int = 16, **more: Any) -> GangResult:
    return GangResult(output, number, **more)


def sizes(seconds: float, wrong: int = 0, size: int = SIZE) -> GroupOutput:
    return GroupOutput((SizeResult(2**20, (0.001,), 0), SizeResult(size, (seconds,), wrong)), torch="2.13")


def fleet(kind: str = "roce", simulated: bool = False, floors: tuple[Floor, ...] = ()) -> Fleet:
    return Fleet(kind, "H100-SXM", 8, simulated, floors, {})


def checked(reading: Any, floors: tuple[Floor, ...] = ()) -> dict[str, Verdict]:
    return {check.name: check.verdict for check in judge(reading.measurements, floors, reading.expectations)}


FAST_PAIRS = {"n1": 400 * GB, "n2": 400 * GB, "n3": 400 * GB}
# result, backend, fabric, best pairs of each node; verdict of each check of the group of three
READINGS: list[tuple[GangResult, str, str, dict[str, float], dict[str, str]]] = [
    (result(sizes(0.08)), "gloo", "tcp", FAST_PAIRS, {"network.all_reduce": "pass", "network.all_reduce.values": "pass"}),
    (result(sizes(0.5)), "gloo", "tcp", FAST_PAIRS, {"network.all_reduce": "fail", "network.all_reduce.values": "pass"}),
    (result(sizes(0.08, wrong=1)), "gloo", "tcp", FAST_PAIRS, {"network.all_reduce": "pass", "network.all_reduce.values": "fail"}),
    (result(sizes(0.08)), "gloo", "tcp", {}, {"network.all_reduce": "unknown", "network.all_reduce.values": "pass"}),
    (result(sizes(0.08)), "gloo", "tcp", {"n1": 1.0, "n2": 1.0}, {"network.all_reduce": "unknown", "network.all_reduce.values": "pass"}),
    (result(GroupOutput()), "gloo", "tcp", FAST_PAIRS, {"network.all_reduce": "unknown"}),
    (result(GroupOutput(skipped=("no room",))), "gloo", "tcp", FAST_PAIRS, {"network.all_reduce": "unknown"}),
    (result(sizes(0.08), blamed={"n2": "died"}), "gloo", "tcp", FAST_PAIRS, {"network.all_reduce": "unknown"}),
    (result(sizes(0.08), gone={"n2": Gone("lost", "x")}), "gloo", "tcp", FAST_PAIRS, {"network.all_reduce": "unknown"}),
    (result(sizes(0.08), logs=dict.fromkeys(FAST_PAIRS, "NCCL INFO Using network IB")), "nccl", "roce", FAST_PAIRS, {
        "network.all_reduce": "pass", "network.all_reduce.values": "pass", "network.transport": "pass"}),
    (result(sizes(0.08), logs=dict.fromkeys(FAST_PAIRS, "NCCL INFO Using network Socket")), "nccl", "ib", FAST_PAIRS, {
        "network.all_reduce": "pass", "network.all_reduce.values": "pass", "network.transport": "fail"}),
    (result(sizes(0.08), logs=dict.fromkeys(FAST_PAIRS, "NCCL INFO Using network AWS Libfabric")), "nccl", "efa", FAST_PAIRS, {
        "network.all_reduce": "pass", "network.all_reduce.values": "pass", "network.transport": "pass"}),
    (result(sizes(0.08)), "nccl", "ib", FAST_PAIRS, {"network.all_reduce": "pass", "network.all_reduce.values": "pass", "network.transport": "unknown"}),
    (result(sizes(0.08)), "nccl", "tcp", FAST_PAIRS, {"network.all_reduce": "pass", "network.all_reduce.values": "pass"}),
]


@pytest.mark.parametrize(("found", "backend", "kind", "pairs", "verdicts"), READINGS)
def test_group_reading(found: GangResult, backend: str, kind: str, pairs: dict[str, float], verdicts: dict[str, str]) -> None:
    assert checked(group_reading(members(None, "n1", "n2", "n3", nproc=8, backend=backend), found, fleet(kind), pairs)) == verdicts


def test_only_the_node_that_fell_back_is_at_fault() -> None:
    logs = {"n1": "NCCL INFO Using network IB", "n2": "NCCL INFO Using network Socket"}
    reading = transport_reading(members(None, "n1", "n2", backend="nccl"), result(sizes(0.08), logs=logs), fleet("ib"))
    found = {check.host: check.verdict for check in judge(reading.measurements, (), reading.expectations)}
    assert found == {"n1": "pass", "n2": "fail"}


NODE_FLOOR = Floor("node.all_reduce", 460 * GB, "B/s", "mean", "source", "2026-05", 787 * GB, "NVLink", match=(("sku", "H100-SXM"), ("fabric", "inside")), gpus=8)
# result of one node's own group; verdicts
INSIDE: list[tuple[GangResult, dict[str, str]]] = [
    (result(sizes(0.06), 8), {"node.all_reduce": "pass", "node.all_reduce.values": "pass"}),
    (result(sizes(0.07), 8), {"node.all_reduce": "fail", "node.all_reduce.values": "pass"}),
    (result(sizes(0.06, wrong=5), 8), {"node.all_reduce": "pass", "node.all_reduce.values": "fail"}),
    (result(GroupOutput(), 8), {"node.all_reduce": "unknown"}),
    (result(GroupOutput(skipped=("16 GiB do not fit",)), 8), {"node.all_reduce": "unknown"}),
    (result(sizes(0.06), 8, blamed={"n1": "signal 9"}), {"node.all_reduce": "unknown"}),
    (result(sizes(0.06), 8, errors={"n1": "CUDA error"}), {"node.all_reduce": "unknown"}),
]


@pytest.mark.parametrize(("found", "verdicts"), INSIDE)
def test_node_reading(found: GangResult, verdicts: dict[str, str]) -> None:
    (member,) = members(None, "n1", nproc=8, backend="nccl")
    assert checked(node_reading(member, found, fleet(floors=(NODE_FLOOR,))), (NODE_FLOOR,)) == verdicts


@pytest.mark.parametrize(("found", "expected"), [(result(GroupOutput()), 0.0), (result(sizes(1.0), 1), 0.0), (result(sizes(1.0), 2), SIZE)])
def test_speed(found: GangResult, expected: float) -> None:
    assert speed(found) == pytest.approx(expected)


def test_pairs_reading_of_every_kind_of_finding() -> None:
    """Best pair; a node at fault without any figure measures 0; nobody left to measure with is unknown; who is gone is not judged."""
    people = members(None, "n1", "n2", "n3", "n4", "n5")
    found = PairsOutcome(gone={"n5": Gone("lost", "x")}, findings={
        "n1": Finding("n1", "none", 400 * GB, 200 * GB, "half of the median", "d", 400 * GB), "n2": Finding("n2", "node", None, 200 * GB, "half of the median", "no figure (died)"),
        "n3": Finding("n3", "unclear", 400 * GB, 200 * GB, "half of the median", "d", 1.0),
    })
    reading = pairs_reading(found, people, STEP, fleet())
    bars = [*reading.expectations, Expectation("network.pairs", "at_least", 100 * GB, "B/s", "network_floor")]
    checks = {check.host: check for check in judge(reading.measurements, (), bars)}
    assert {host: check.verdict for host, check in checks.items()} == {"n1": "pass", "n2": "fail", "n3": "fail", "n4": "unknown"}
    # A fleet that is slow as a whole agrees with itself: without an absolute bar nobody passes, and who is slow fails all the same.
    alike = {check.host: check for check in judge(reading.measurements, (), reading.expectations)}
    assert {host: check.verdict for host, check in alike.items()} == {"n1": "unknown", "n2": "fail", "n3": "fail", "n4": "unknown"}
    assert alike["n1"].unfloored
    assert "nodectl verify HOSTS --adopt" in alike["n1"].reason
    assert not alike["n4"].unfloored
    assert checks["n2"].value == 0.0
    assert "its partners were lost" in checks["n4"].reason


# -- GPU nodes through the whole stage


def rails(_node: FakeNode, args: dict[str, Any]) -> Outcome:
    """Step rdma sees one port of 400 Gb/s; the checks of ports have tests of their own, and see a node without."""
    return Outcome(values=HCA if "root" in args else {"ports": [port(link_layer="InfiniBand")]})


def gpu_nodes(*odd: FakeNode) -> tuple[dict[str, Verdict], Seen]:
    """Three DGX-like nodes; ``odd`` replaces those of its names."""
    nodes = {f"n{index}": FakeNode(f"n{index}") for index in (1, 2, 3)} | {node.name: node for node in odd}
    connections = FakeFleet(*nodes.values())
    for node in nodes.values():
        node.answers = {
            "workload": gpu(), "fabric_facts": fabric("ib", [{"name": "mlx5_0", "usable": True, "reason": ""}]), "probe_storage_target": storage(kind="nvme"),
            "probe_fio": fio(3e9), "probe_hca": rails,
            "probe_perftest": lambda _node, args: rdma_measured(args["tool"], 48 * GB), **node.answers,
        }
        node.variables = {"torch_python": "/opt/torch/bin/python", **node.variables}
    seen = Seen()
    return verify([node_of(node) for node in nodes.values()], load_suite("preflight"), connections, seen), seen


def gpu(inside: float = 470 * GB, between: float = 450 * GB, count: int = 8, network: str = "IB", wrong_inside: int = 0, rc_inside: int = 0, skip: bool = False) -> Callable[..., Outcome]:
    """torch and all groups of a node of ``count`` H100."""

    def workload(node: FakeNode, args: dict[str, Any]) -> Outcome:
        if not args.get("argv"):
            names = ["NVIDIA H100 80GB HBM3"] * count
            return said(0, {"kind": "torch", "torch": "2.13", "python": "3.11", "cuda": "12", "gpus": count, "names": names, "nccl": "2.27"})
        config = json.loads(args["argv"][0])
        alone = config["nodes"] == 1
        if alone and rc_inside:
            return outcome(rc=rc_inside, stderr="Xid 79: GPU has fallen off the bus")
        first = config["node_rank"] * config["nproc"]
        lines: list[dict[str, Any]] = []
        for rank in range(first, first + config["nproc"]):
            if skip and alone:
                lines.append({"kind": "skipped", "rank": rank, "case": 0, "bytes": SIZE, "reason": "does not fit beside what fills the GPU"})
            else:
                lines += results(config, rank, inside if alone else between, wrong_inside if alone else 0) + paces(config, rank, gpu=True)
        lines.append({"kind": "moved", "rank": first, "bytes": 10**9})
        node.sent += 10**9
        found = said(0, *lines)
        found.values["stderr"] = (
            f"n:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB host0:10.0.0.1<0>\nn:1:1 [0] NCCL INFO Using network {network}\n"
            f"n:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/{network}/0/GDRDMA\n"
        )
        return found

    return workload


# what is odd about n3; verdict of n3; words of the reason; the others pass
GPU_CASES: list[tuple[str, FakeNode, Verdict, str]] = [
    ("nothing", FakeNode("n3"), "pass", ""),
    ("NVLink slow", FakeNode("n3", answers={"workload": gpu(inside=300 * GB)}), "fail", "node.all_reduce: measured 300 GB/s"),
    ("wrong values inside", FakeNode("n3", answers={"workload": gpu(wrong_inside=2)}), "fail", "node.all_reduce.values"),
    ("ranks die inside", FakeNode("n3", answers={"workload": gpu(rc_inside=-6)}), "unknown", "fallen off the bus"),
    ("memory is full", FakeNode("n3", answers={"workload": gpu(skip=True)}), "unknown", "does not fit beside"),
    ("a GPU is missing", FakeNode("n3", answers={"workload": gpu(count=7)}, variables={"expected_gpus": 8}), "fail", "measured 7, expected at least 8"),
    ("network slow", FakeNode("n3", answers={"workload": gpu(between=100 * GB)}), "fail", "network.pairs: measured 100 GB/s"),
    ("lost inside", FakeNode("n3", gone_at=("workload", 1)), "unknown", "lost: no byte for 20 s"),
]


@pytest.mark.parametrize(("odd", "verdict", "words"), [case[1:] for case in GPU_CASES], ids=[case[0] for case in GPU_CASES])
def test_gpu_nodes(odd: FakeNode, verdict: Verdict, words: str) -> None:
    found, seen = gpu_nodes(odd)
    assert found == {"n1": "pass", "n2": "pass", "n3": verdict}, [seen.reasons(name) for name in found]
    assert words in seen.reasons("n3")
    if verdict == "pass":
        data = seen.of("node", "n3")[0].data
        assert (data["gpus"], data["nproc"], data["backend"], data["env"]["NCCL_SOCKET_IFNAME"]) == (8, 8, "nccl", "=host0")
        assert "oracle-quickstart" in seen.check("n3", "network.pairs").data["source"]


# -- questions to one node


class Answering:
    """Connections of one node: each method raises or gives what the case says."""

    def __init__(self, at: str, error: BaseException | None) -> None:
        self.at, self.error = at, error
        self.closed = 0
        self.resets: list[str] = []
        self.steps: list[Step] = []
        self.timeouts: list[float | None] = []

    def _maybe(self, at: str) -> None:
        if self.at == at and self.error is not None:
            raise self.error

    def channel(self, target: Target, become: BecomeTarget | None = None) -> Answering:
        self._maybe("channel")
        return self

    def fresh(self, target: Target, become: object = None) -> Answering:
        self._maybe("channel")
        return self

    def submit(self, step: Step, blobs: Any = None) -> Answering:
        self.steps.append(step)
        self._maybe("submit")
        return self

    def result(self, timeout: float | None = None) -> Outcome:
        self.timeouts.append(timeout)
        self._maybe("result")
        return Outcome(msg="fine")

    def close(self) -> None:
        self.closed += 1

    def reset(self, host: str) -> None:
        self.resets.append(host)


ERRORS: list[tuple[str, BaseException, str, str]] = [
    ("channel", Unreachable("auth", "permission denied", "add the key"), "unreachable", "permission denied"),
    ("channel", Lost("lost before"), "lost", "lost before"),
    ("submit", Lost("the line is broken"), "lost", "the line is broken"),
    ("result", Lost("no byte"), "lost", "no byte"),
    ("result", TimeoutError(), "lost", "no outcome within 40 s"),
]


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(("at", "broken", "kind", "words"), ERRORS, ids=[f"{at} {type(broken).__name__}" for at, broken, _, _ in ERRORS])
def test_every_way_a_node_can_be_gone(at: str, broken: BaseException, kind: str, words: str, fresh: bool) -> None:
    connections: Any = Answering(at, broken)
    session = Session("n1", Target("n1", "10.0.0.1"), {}, connections)
    with pytest.raises(Gone) as gone:
        (session.ask_fresh if fresh else session.ask)("probe_clock", {}, 30.0)
    assert gone.value.kind == kind
    assert words in gone.value.reason
    assert gone.value.why == ("auth" if kind == "unreachable" else "")
    assert connections.closed == (1 if fresh and at != "channel" else 0)
    assert connections.resets == (["n1"] if isinstance(broken, TimeoutError) and not fresh else [])


def test_deadlines_of_agent_and_controller() -> None:
    """The agent ends the step first; the controller waits longer, and no answer then is a lost node."""
    connections: Any = Answering("", None)
    session = Session("n1", Target("n1", "10.0.0.1"), {}, connections)
    assert session.ask("m", {"a": 1}, 30.0, cleanup=65.0).msg == "fine"
    assert session.ask_fresh("m", {}, 30.0).msg == "fine"
    assert [step.timeout for step in connections.steps] == [30.0 + GRACE / 2] * 2
    assert connections.timeouts == [30.0 + 65.0 + GRACE, 30.0 + GRACE]
    assert connections.closed == 1


def test_steps_of_many_threads_have_numbers_of_their_own_beside_the_engines() -> None:
    connections: Any = Answering("", None)
    session = Session("n1", Target("n1", "10.0.0.1"), {}, connections)
    threads = [threading.Thread(target=lambda: [session.ask("m", {}, 1.0) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [step.id for step in connections.steps]
    assert len(set(numbers)) == len(numbers) == 80
    assert min(numbers) > 1_000_000


@pytest.mark.parametrize("root", [False, True])
def test_root_is_asked_where_it_is_wanted_and_known(root: bool) -> None:
    asked: list[Any] = []

    class Watching(Answering):
        def channel(self, target: Target, become: BecomeTarget | None = None) -> Answering:
            asked.append(become)
            return self

    become = BecomeTarget("root")
    connections: Any = Watching("", None)
    Session("n1", Target("n1", "10.0.0.1"), {}, connections, become).ask("m", {}, 1.0, root=root)
    assert asked == [become if root else None]


def test_the_source_of_a_workload_is_the_file_beside_the_code() -> None:
    for name in ("collective", "torch_facts", "train_ddp"):
        assert "import torch" in gang.workload_source(name)
