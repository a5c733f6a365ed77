"""The stage over a fleet of stand-ins: verdicts, reasons, who is handed off, and that nobody stalls it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from nodectl.transport.channel import Unreachable
from nodectl.verify import session, stage
from nodectl.verify.group import gang
from nodectl.verify.judging.measurement import Verdict
from nodectl.verify.node.node_checks import CLOCK_TRIES
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import load_suite, suite_of
from nodectl.wire.outcome import Outcome
from tests.verify import fleet as fleet_module
from tests.verify.fleet import FAST, FakeFleet, FakeNode, Seen, address, fabric, fio, limits, node_of, said, storage

SLOW = 12e6
MOUNTS = {"file_mounts": {"/data": {"source": "s3://d", "mode": "MOUNT"}, "/ckpt": {"source": "s3://c", "mode": "MOUNT_CACHED"}}}


def run(*nodes: FakeNode, suite: str = "preflight") -> tuple[dict[str, Verdict], Seen, FakeFleet]:
    fleet, seen = FakeFleet(*nodes), Seen()
    verdicts = verify([node_of(node) for node in nodes], load_suite(suite), fleet, seen)
    return verdicts, seen, fleet


def healthy(*names: str, **more: Any) -> list[FakeNode]:
    return [FakeNode(name, variables=dict(MOUNTS), **more) for name in names]


def test_a_healthy_fleet_passes_and_is_described() -> None:
    verdicts, seen, fleet = run(*healthy("n1", "n2", "n3"))
    assert verdicts == {"n1": "pass", "n2": "pass", "n3": "pass"}, [seen.reasons(name) for name in verdicts]
    names = [event.data["name"] for event in seen.of("check", "n1")]
    for name in ("login.fresh", "limits.memlock", "fabric.kind", "network.route", "network.mtu", "clock.offset", "scratch.mounted", "mount:/data", "mount:/ckpt",
                 "torch.import", "network.pairs", "network.all_reduce", "network.all_reduce.values", "disk.scratch.seq_write", "disk.scratch.seq_read",
                 "phase.batch_read:/data", "phase.checkpoint_write:/ckpt"):
        assert name in names, name
    assert fleet.groups[-1] == ("n1", "n2", "n3")
    assert len([group for group in fleet.groups if len(group) == 2]) == 3
    data = seen.of("node", "n2")[0].data
    assert data["fabric_address"] == address("n2")
    assert data["env"] == {"GLOO_SOCKET_IFNAME": "host0"}
    assert (data["backend"], data["nproc"], data["torch_python"]) == ("gloo", 1, "/opt/torch/bin/python")
    assert all(channel.closed for channel in fleet.channels)
    assert seen.check("n1", "network.pairs").data["simulated"] is True


def test_figures_and_sources_stand_in_the_check() -> None:
    _, seen, _ = run(*healthy("n1", "n2", "n3"))
    check = seen.check("n1", "network.all_reduce").data
    assert check["value"] == pytest.approx(FAST, rel=0.01)
    assert check["unit"] == "B/s"
    assert check["floor"] > 0
    assert check["source"]


def test_tcp_although_best_was_wanted_is_said_not_failed() -> None:
    _, seen, _ = run(*healthy("n1", "n2"))
    check = seen.check("n1", "fabric.kind").data
    assert check["verdict"] == "pass"
    assert "only TCP was found: no RDMA device" in check["reason"]


def test_one_slow_link_fails_that_node_alone_and_the_rest_forms_the_group() -> None:
    verdicts, seen, fleet = run(*healthy("n1"), FakeNode("n2", speed=SLOW, variables=dict(MOUNTS)), *healthy("n3"))
    assert verdicts == {"n1": "pass", "n2": "fail", "n3": "pass"}
    assert "12 MB/s (96 Mb/s)" in seen.reasons("n2")
    assert "expected at least 150 MB/s (1.2 Gb/s)" in seen.reasons("n2")
    assert fleet.groups[-1] == ("n1", "n3")


def test_two_nodes_and_a_slow_link_cannot_be_told_apart() -> None:
    verdicts, seen, _ = run(*healthy("n1"), FakeNode("n2", speed=SLOW, variables=dict(MOUNTS)))
    assert verdicts == {"n1": "fail", "n2": "fail"}
    assert "cannot be told apart" in seen.reasons("n1")


def test_one_node_has_no_collective_and_passes_without() -> None:
    verdicts, seen, fleet = run(*healthy("n1"))
    assert verdicts == {"n1": "pass"}, seen.reasons("n1")
    assert fleet.groups == []
    assert not [event for event in seen.of("check") if event.data["name"].startswith("network.")]


@pytest.mark.parametrize(("variables", "words"), [
    ({"network_floor": "8 Gb/s"}, "network_floor"), ({"expected_busbw": "2 GB/s"}, "90% of expected_busbw"),
])
def test_a_sites_own_bar(variables: dict[str, Any], words: str) -> None:
    nodes = healthy("n1", "n2", "n3")
    for node in nodes:
        node.variables.update(variables)
    verdicts, seen, _ = run(*nodes)
    assert set(verdicts.values()) == {"fail"}
    assert words in seen.reasons("n1")


def test_wrong_values_are_worse_than_slow_ones() -> None:
    verdicts, seen, _ = run(*healthy("n1", "n2"), FakeNode("n3", corrupts=True, variables=dict(MOUNTS)))
    assert verdicts == {"n1": "pass", "n2": "pass", "n3": "fail"}
    assert "wrong values" in seen.reasons("n3")


# n3 of three nodes joins two pairs, and then the groups; further pairs are those it gets as a suspect
@pytest.mark.parametrize(("disturbed", "verdict"), [
    ({1}, "pass"), ({1, 2}, "pass"), ({1, 2, 3}, "pass"), ({1, 2, 3, 4}, "fail"), ({3}, "pass"), ({3, 4}, "fail"),
])
def test_other_load_is_not_a_slow_node_but_what_stays_slow_is(disturbed: set[int], verdict: Verdict) -> None:
    node = FakeNode("n3", disturbed_in=frozenset(disturbed), variables=dict(MOUNTS))
    verdicts, seen, _ = run(*healthy("n1", "n2"), node)
    assert verdicts["n3"] == verdict, seen.reasons("n3")
    if disturbed == {3, 4}:
        assert set(verdicts.values()) == {"fail"}
        assert "pairs are fine and together they are slow" in seen.reasons("n1")


# -- nodes that go away

STEPS = ["probe_limits", "fabric_facts", "probe_route", "probe_clock", "probe_storage_target", "probe_object_mount", "workload", "probe_fio", "probe_phases", "object_flush"]


@pytest.mark.parametrize("module", STEPS)
def test_a_node_lost_at_any_step_is_named_and_the_others_pass(module: str) -> None:
    verdicts, seen, fleet = run(*healthy("n1"), FakeNode("n2", gone_at=(module, 0), variables=dict(MOUNTS)), *healthy("n3", "n4"))
    assert verdicts == {"n1": "pass", "n2": "unknown", "n3": "pass", "n4": "pass"}, [seen.reasons(name) for name in verdicts]
    (event,) = seen.of("host.lost")
    assert (event.host, event.data["reason"]) == ("n2", "no byte for 20 s")
    assert "lost: no byte for 20 s" in seen.reasons("n2")
    assert seen.of("node", "n2") == []
    assert "n1" in fleet.groups[-1]


@pytest.mark.parametrize("after", [1, 2, 3, 4])
def test_a_node_lost_in_a_group_leaves_a_group_of_the_others(after: int) -> None:
    """The first workload is the look at torch, then come three rounds of pairs and the group."""
    verdicts, seen, fleet = run(*healthy("n1", "n2", "n3"), FakeNode("n4", gone_at=("workload", after), variables=dict(MOUNTS)))
    assert verdicts == {"n1": "pass", "n2": "pass", "n3": "pass", "n4": "unknown"}, [seen.reasons(name) for name in verdicts]
    assert fleet.groups[-1] == ("n1", "n2", "n3")
    assert len(seen.of("host.lost")) == 1


def test_the_holder_of_the_rendezvous_may_be_lost_too() -> None:
    verdicts, _, fleet = run(FakeNode("n1", gone_at=("probe_free_port", 2), variables=dict(MOUNTS)), *healthy("n2", "n3", "n4"))
    assert verdicts == {"n1": "unknown", "n2": "pass", "n3": "pass", "n4": "pass"}
    assert fleet.groups[-1] == ("n2", "n3", "n4")


def test_of_two_nodes_one_is_lost_and_the_other_stays_alone() -> None:
    verdicts, seen, _ = run(*healthy("n1"), FakeNode("n2", gone_at=("workload", 1), variables=dict(MOUNTS)))
    assert verdicts == {"n1": "pass", "n2": "unknown"}, seen.reasons("n1")


def test_an_unreachable_node_is_unreachable() -> None:
    verdicts, seen, _ = run(*healthy("n1", "n2"), FakeNode("n3", unreachable="no route to host"))
    assert verdicts == {"n1": "pass", "n2": "pass", "n3": "unknown"}
    assert seen.of("host.unreachable", "n3")[0].data["why"] == "timeout"
    assert seen.of("host.lost") == []


def test_an_agent_that_never_answers_is_lost() -> None:
    verdicts, seen, _ = run(*healthy("n1", "n2"), FakeNode("n3", hangs_at="probe_clock"))
    assert verdicts["n3"] == "unknown"
    assert "no outcome within" in seen.reasons("n3")


def test_nobody_is_left() -> None:
    verdicts, seen, _ = run(FakeNode("n1", unreachable="down"), FakeNode("n2", unreachable="down"))
    assert verdicts == {"n1": "unknown", "n2": "unknown"}
    assert len(seen.of("verdict")) == 2


def test_a_login_that_is_refused_is_a_failure_not_an_absence() -> None:
    verdicts, seen, _ = run(*healthy("n1", "n2"), FakeNode("n3", fresh=Unreachable("auth", "permission denied (publickey)")))
    assert verdicts["n3"] == "fail"
    assert "permission denied" in seen.reasons("n3")
    assert seen.of("host.unreachable") == []


# -- ranks that die on a node that answers

def test_a_node_whose_ranks_die_in_the_group_is_taken_out() -> None:
    verdicts, seen, fleet = run(*healthy("n1", "n2", "n3"), FakeNode("n4", dies_in_groups_of=4, variables=dict(MOUNTS)))
    assert verdicts == {"n1": "pass", "n2": "pass", "n3": "pass", "n4": "fail"}, [seen.reasons(name) for name in verdicts]
    assert "signal 9: Killed" in seen.reasons("n4")
    assert fleet.groups[-1] == ("n1", "n2", "n3")


def test_a_node_whose_pairs_all_break_is_named() -> None:
    verdicts, seen, fleet = run(*healthy("n1", "n2", "n3"), FakeNode("n4", dies_in_groups_of=2, variables=dict(MOUNTS)))
    assert verdicts["n4"] == "fail"
    assert "no figure" in seen.reasons("n4")
    assert fleet.groups[-1] == ("n1", "n2", "n3")


def test_a_port_that_was_taken_meanwhile_is_tried_once_more() -> None:
    refused = [Outcome(values={"rc": 3, "stdout": "NODECTL " + '{"kind": "error", "rank": 0, "phase": "store", "error": "EADDRINUSE"}\n', "stderr": "", "timed_out": False})]
    nodes = healthy("n1", "n2")
    fleet = FakeFleet(*nodes)
    plain = fleet.collective

    def once(node: FakeNode, config: dict[str, Any]) -> Outcome:
        return refused.pop() if refused and node.name == "n1" else plain(node, config)

    fleet.collective = once  # type: ignore[method-assign]
    seen = Seen()
    assert set(verify([node_of(node) for node in nodes], load_suite("quick"), fleet, seen).values()) == {"pass"}


# -- node checks: what a probe says, the verdict, a word of the reason

def no_torch(_node: FakeNode, _args: dict[str, Any]) -> Outcome:
    return Outcome(values={"rc": 1, "stdout": "", "stderr": "ModuleNotFoundError: No module named 'torch'", "timed_out": False})


def gpus(count: int) -> Callable[[FakeNode, dict[str, Any]], Outcome]:
    return lambda _node, _args: said(0, {"kind": "torch", "torch": "2.13", "python": "3.11", "cuda": "12", "gpus": count, "names": ["NVIDIA H100"] * count, "nccl": "2.27"})


HCAS = [{"name": "mlx5_0", "usable": True, "reason": ""}, {"name": "mlx5_1", "usable": False, "reason": "port is down"}]
NODE_CASES: list[tuple[str, dict[str, Any], dict[str, Any], Verdict, str]] = [
    ("memlock too small", {"probe_limits": limits(8 * 2**20)}, {}, "fail", "measured 8192 KiB, expected unlimited"),
    ("memlock as configured", {"probe_limits": limits(8 * 2**20)}, {"base_memlock": 8192}, "pass", ""),
    ("memlock below configured", {"probe_limits": limits(4 * 2**20)}, {"base_memlock": "8192"}, "fail", "at least 8.389 MB"),
    ("unlimited where a number is enough", {"probe_limits": limits(-1)}, {"base_memlock": 8192}, "pass", ""),
    ("nofile too small", {}, {"base_nofile": 2**21}, "fail", "limits.nofile"),
    ("limits probe failed", {"probe_limits": Outcome(failed=True, msg="no python")}, {}, "unknown", "no python"),
    ("limits probe said nothing", {"probe_limits": Outcome()}, {}, "unknown", "probe_limits gave nothing for login"),
    ("fabric other than the fleet's", {"fabric_facts": fabric("ib", HCAS)}, {}, "fail", "tcp: n1, n2; ib: n3"),
    ("tcp asked for", {"fabric_facts": fabric("ib", HCAS)}, {"network_tier": "standard"}, "pass", ""),
    ("fabric probe failed", {"fabric_facts": Outcome(failed=True, msg="no sysfs")}, {}, "unknown", "no sysfs"),
    ("no route", {"probe_route": Outcome(values={"interface": "", "source": "", "mtu": 0}, warnings=["no route to 10.0.0.1: unreachable"])}, {}, "fail", "unreachable"),
    ("another mtu", {"probe_route": Outcome(values={"interface": "host0", "source": address("n3"), "mtu": 9000, "routes": []})}, {}, "fail", "1500: n1, n2; 9000: n3"),
    ("clock ahead", {"probe_clock": lambda _n, _a: Outcome(values={"time_ns": time.time_ns() + 3 * 10**9})}, {}, "fail", "measured 3 s, expected at most 500 ms"),
    ("clock probe failed", {"probe_clock": Outcome(failed=True, msg="no clock")}, {}, "unknown", "no clock"),
    ("scratch not mounted", {"probe_storage_target": storage(target="/", fstype="overlay", source="overlay", is_overlay=True)}, {}, "fail", "/scratch lies on overlay"),
    ("scratch in memory", {"probe_storage_target": storage(fstype="tmpfs", is_tmpfs=True)}, {}, "fail", "tmpfs"),
    ("scratch of another type", {"probe_storage_target": storage(fstype="ext4")}, {}, "fail", "measured ext4, expected xfs"),
    ("no scratch asked for", {"probe_storage_target": storage(target="/")}, {"disk_tier": "standard"}, "pass", ""),
    ("scratch of another place", {"probe_storage_target": storage(target="/nvme")}, {"nvme_scratch_mount": "/nvme/"}, "pass", ""),
    ("scratch slow", {"probe_fio": fio(5e6)}, {}, "fail", "measured 5 MB/s (40 Mb/s), expected at least 20 MB/s"),
    ("scratch below the site's bar", {}, {"scratch_floor": "1 GB/s"}, "fail", "scratch_floor of the inventory"),
    ("fio failed", {"probe_fio": Outcome(failed=True, msg="No space left on device (error 28)")}, {}, "fail", "error 28"),
    ("disk of a kind without a floor", {"probe_storage_target": storage(kind="nvme"), "probe_fio": fio(1e9)}, {}, "fail", "expected at least 1.5 GB/s"),
    ("mount does not answer", {"probe_object_mount": Outcome(values={"usable": False, "reason": "Transport endpoint is not connected"})}, {}, "fail", "not connected"),
    ("mount probe failed", {"probe_object_mount": Outcome(failed=True, msg="timed out")}, {}, "unknown", "timed out"),
    ("phases failed", {"probe_phases": Outcome(failed=True, msg="Read-only file system")}, {}, "fail", "Read-only"),
    ("cache not flushed", {"object_flush": Outcome(failed=True, msg="2 files are left: a, b", values={"count": 2})}, {}, "fail", "2 files are left: a, b"),
    ("queue not seen", {"object_flush": Outcome(failed=True, msg="rclone does not answer")}, {}, "unknown", "mount.flushed:/"),
    ("phases below the site's bar", {}, {"file_mount_floor": "1 GB/s"}, "fail", "file_mount_floor"),
    ("no torch", {"workload": no_torch}, {}, "fail", "No module named 'torch'"),
    ("fewer gpus than expected", {}, {"expected_gpus": 8}, "fail", "measured 0, expected at least 8"),
    ("gpus on one node only", {"workload": gpus(8)}, {}, "fail", "0: n1, n2; 8: n3"),
    ("a setting nobody understands", {}, {"network_floor": "fast"}, "unknown", "network_floor: 'fast' is not a quantity"),
]


@pytest.mark.parametrize(("answers", "variables", "verdict", "words"), [case[1:] for case in NODE_CASES], ids=[case[0] for case in NODE_CASES])
def test_node_cases(answers: dict[str, Any], variables: dict[str, Any], verdict: Verdict, words: str) -> None:
    odd = FakeNode("n3", answers=answers, variables={**MOUNTS, **variables})
    verdicts, seen, fleet = run(*healthy("n1", "n2"), odd)
    assert verdicts == {"n1": "pass", "n2": "pass", "n3": verdict}, [seen.reasons(name) for name in verdicts]
    assert words in seen.reasons("n3")
    assert all("n1" in group or "n2" in group for group in fleet.groups)


def test_two_nodes_with_one_address_both_fail() -> None:
    """docker0 has the same address everywhere: a peer that connects to it may reach itself."""
    same = Outcome(values={"interface": "docker0", "source": "172.17.0.1", "mtu": 1500})
    verdicts, seen, _ = run(*healthy("n1", "n2"), *healthy("n3", "n4", answers={"probe_route": same}))
    assert verdicts == {"n1": "pass", "n2": "pass", "n3": "fail", "n4": "fail"}
    assert "172.17.0.1 is also the address of n4" in seen.reasons("n3")


def test_the_roles_environment_is_found_where_the_inventory_names_no_interpreter() -> None:
    def role_only(node: FakeNode, args: dict[str, Any]) -> Outcome:
        return no_torch(node, args) if args["python"] == "python3" else gpus(0)(node, args)

    nodes = healthy("n1")
    nodes[0].answers["workload"] = role_only
    nodes[0].variables["torch_python"] = ""
    verdicts, seen, _ = run(*nodes)
    assert verdicts == {"n1": "pass"}, seen.reasons("n1")
    assert seen.of("node", "n1")[0].data["torch_python"] == "/opt/nodectl/torch/bin/python"


def test_a_step_without_a_trace_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard behind all checks: here a step whose function forgets the node."""
    monkeypatch.setattr(stage, "GROUPS", {"node_all_reduce": lambda trial, step: None})
    nodes = healthy("n1")
    seen = Seen()
    suite = suite_of('[[step]]\nkind = "torch"\ndeadline = 9\n[[step]]\nkind = "node_all_reduce"\ndeadline = 9\ngpu_sizes = ["1 GiB"]\niterations = 1\nwarmup = 0\ntimeout = 5\n', "x")
    assert verify([node_of(nodes[0])], suite, FakeFleet(*nodes), seen) == {"n1": "unknown"}
    assert "node_all_reduce: was not run on this node" in seen.reasons("n1")


def test_gpu_nodes_speak_nccl_and_their_fallback_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[dict[str, Any]] = []
    nodes = healthy("n1", "n2")
    fleet = FakeFleet(*nodes)

    def workload(node: FakeNode, args: dict[str, Any]) -> Outcome:
        if not args.get("argv"):
            return gpus(1)(node, args)
        orders.append(args)
        outcome = fleet.collective(node, __import__("json").loads(args["argv"][0]))
        outcome.values["stderr"] = "x NCCL INFO Using network Socket\n"
        return outcome

    for node in nodes:
        node.speed = 300e9
        node.answers.update(workload=workload, fabric_facts=fabric("roce", HCAS))
        node.variables["network_floor"] = "100 GB/s"
    seen = Seen()
    verdicts = verify([node_of(node) for node in nodes], load_suite("quick"), fleet, seen)
    assert set(verdicts.values()) == {"fail"}
    assert "network.transport: measured Socket, expected IB" in seen.reasons("n1")
    assert orders[0]["env"]["NCCL_SOCKET_IFNAME"] == "=host0"
    assert seen.of("node", "n1")[0].data["env"]["NCCL_SOCKET_IFNAME"] == "=host0"


def test_constants_leave_ranks_time_to_name_who_is_missing() -> None:
    for step in load_suite("preflight").steps:
        if step.kind in ("pairs", "all_reduce"):
            assert min(gang.INIT_TIMEOUT, step.deadline / 2) + step.option("timeout") < step.deadline
    assert session.GRACE > 4


@pytest.mark.parametrize(("names", "count"), [(["n1"], "1 node"), (["n1", "n2"], "2 nodes")])
def test_the_bound_is_told_first_and_as_what_it_is(names: list[str], count: str) -> None:
    _, seen, _ = run(*healthy(*names))
    first = next(event.data["text"] for event in seen.events if event.kind == "progress")
    assert re.fullmatch(rf"suite preflight on {count} \(bounded by \d+ min if every wait ran out\)", first)


def repeated(node: FakeNode, times: int = 3) -> tuple[dict[str, Verdict], Seen]:
    seen = Seen()
    suite = suite_of(f'[[step]]\nkind = "clock"\ndeadline = 9\nmax_offset = "500 ms"\nrepeat = {times}\n', "x")
    return verify([node_of(node)], suite, FakeFleet(node), seen), seen


def test_a_repeated_step_is_measured_each_time_and_said_once() -> None:
    verdicts, seen = repeated(FakeNode("n1"))
    assert verdicts == {"n1": "pass"}
    assert [event.data["repetition"] for event in seen.of("reading")] == [[1, 3], [2, 3], [3, 3]]
    assert len(seen.of("check", "n1")) == 1
    assert [event.data["text"] for event in seen.of("progress") if "of 3" in event.data["text"]] == [f"clock ({number} of 3): n1" for number in (1, 2, 3)]


@pytest.mark.parametrize("bad", [1, 2, 3])
def test_once_bad_is_bad(bad: int) -> None:
    def answer(node: FakeNode, _args: dict[str, Any]) -> Outcome:
        repetition = (node.asked.count("probe_clock") - 1) // CLOCK_TRIES + 1
        off = 10**10 if repetition == bad else 0
        return Outcome(values={"time_ns": time.time_ns() + off, "monotonic_ns": time.monotonic_ns(), "boot_id": "x"})

    verdicts, seen = repeated(FakeNode("n1", answers={"probe_clock": answer}))
    assert verdicts == {"n1": "fail"}
    assert [event.data["verdict"] for event in seen.of("check", "n1")] == (["fail"] if bad == 3 else ["fail", "pass"])


def test_a_node_that_goes_in_a_repetition_is_asked_no_more() -> None:
    verdicts, seen = repeated(FakeNode("n1", gone_at=("probe_clock", 2)), 5)
    assert verdicts == {"n1": "unknown"}
    assert len(seen.of("reading")) == 1


# The module that a frozen host no longer answers, and the step that then waits for it.
FROZEN_AT = [("probe_limits", "login"), ("fabric_facts", "fabric"), ("probe_route", "route"), ("probe_clock", "clock"), ("workload", "torch"), ("workload", "all_reduce")]


@pytest.mark.parametrize(("module", "kind"), FROZEN_AT, ids=[f"{kind}" for _, kind in FROZEN_AT])
def test_a_frozen_host_adds_at_most_its_steps_deadline(module: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for once, that long at most, and never again; the others pass in the same run."""
    waits: list[float] = []
    real = fleet_module.FakePending.result

    def result(self: fleet_module.FakePending, timeout: float | None = None) -> Outcome:
        if self._hangs:
            assert timeout is not None, "a wait without an end"
            waits.append(timeout)
        return real(self, timeout)

    monkeypatch.setattr(fleet_module.FakePending, "result", result)
    frozen = FakeNode("n3", hangs_at=module, variables=dict(MOUNTS))
    if kind == "all_reduce":  # torch answers, the ranks hang
        frozen.hangs_at, frozen.hangs_after = module, 1
    verdicts, seen, _ = run(*healthy("n1", "n2"), frozen, suite="quick")
    assert verdicts == {"n1": "pass", "n2": "pass", "n3": "unknown"}, seen.reasons("n3")
    step = load_suite("quick").step(kind)
    assert step is not None
    assert len(waits) == 1
    assert waits[0] <= step.deadline + session.GRACE
    assert seen.check("n3", kind).data["step"] == kind
