"""A fleet that answers like real agents do, with faults at chosen moments: no sockets, no processes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from nodectl.transport.channel import BecomeTarget, Lost, Ran, Target, Unreachable
from nodectl.verify.judging.formulas import bandwidth
from nodectl.verify.trial import Node
from nodectl.wire.event import Event
from nodectl.wire.outcome import Outcome
from nodectl.wire.step import Step
from tests.verify.node_answers import HEALTHY_NODE

FAST = 600e6
# How long a fake rank waits for the others, instead of 40 s.
PATIENCE = 0.4
Answer = Callable[["FakeNode", dict[str, Any]], Outcome]


@dataclass
class FakeNode:
    """One node. ``speed`` of its link in B/s; ``gone_at``: the module during which the line breaks, and how often it works before;
    ``answers`` replaces what a probe says; it hangs at ``hangs_at`` once that was asked ``hangs_after`` times;
    ``pace`` is the share of a core that its ranks get; ``carried`` the share of what it had to send that its interface and its HCA carry (``sent``, B); ``disturbed_in``: groups, counted from 1, in which other load takes nine tenths of its speed."""

    name: str
    speed: float = FAST
    gone_at: tuple[str, int] | None = None
    hangs_at: str = ""
    hangs_after: int = 0
    unreachable: str = ""
    fresh: Exception | None = None
    answers: dict[str, Answer | Outcome] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)
    dies_in_groups_of: int = 0
    corrupts: bool = False
    pace: float = 1.0
    carried: float = 1.0
    sent: int = 0
    disturbed_in: frozenset[int] = frozenset()
    groups_joined: int = 0
    asked: list[str] = field(default_factory=list)
    down: bool = False


class FakePending:
    def __init__(self, work: Callable[[], Outcome], hangs: bool) -> None:
        self._hangs = hangs
        self._value: Outcome | Lost | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], Outcome]) -> None:
        try:
            self._value = work()
        except Lost as lost:
            self._value = lost

    def result(self, timeout: float | None = None) -> Outcome:
        if self._hangs:
            raise TimeoutError
        self._thread.join(timeout)
        if isinstance(self._value, Lost):
            raise self._value
        assert self._value is not None
        return self._value

    def cancel(self) -> None:
        return None


class FakeChannel:
    def __init__(self, fleet: FakeFleet, node: FakeNode) -> None:
        self.fleet = fleet
        self.node = node
        self.closed = False

    @property
    def facts(self) -> Mapping[str, object]:
        return {"user": "ops"}

    def submit(self, step: Step, blobs: Mapping[str, BinaryIO] | None = None) -> FakePending:
        if self.node.down:
            raise Lost("the line is broken")
        hangs = self.node.hangs_at == step.module and self.node.asked.count(step.module) >= self.node.hangs_after
        return FakePending(lambda: self.fleet.answer(self.node, step), hangs)

    def close(self) -> None:
        self.closed = True


class FakeFleet:
    """Connections to all nodes of a fleet."""

    def __init__(self, *nodes: FakeNode) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.groups: list[tuple[str, ...]] = []
        self.channels: list[FakeChannel] = []
        self._ports = 29000
        self._lock = threading.Condition()
        self._waiting: dict[int, dict[int, FakeNode]] = {}

    # -- Connections

    def channel(self, target: Target, become: BecomeTarget | None = None) -> FakeChannel:
        node = self.nodes[target.host]
        if node.unreachable:
            raise Unreachable("timeout", node.unreachable)
        if node.down:
            raise Lost("the line is broken")
        return FakeChannel(self, node)

    def raw(self, target: Target, become: BecomeTarget | None, command: str, executable: str, seconds: float) -> Ran:
        raise AssertionError("a verification has agents")

    def fresh(self, target: Target, become: object = None) -> FakeChannel:
        node = self.nodes[target.host]
        if node.fresh is not None:
            raise node.fresh
        channel = self.channel(target)
        self.channels.append(channel)
        return channel

    def reset(self, host: str) -> None:
        self.nodes[host].down = True

    def close(self) -> None:
        return None

    # -- what the agents do

    def answer(self, node: FakeNode, step: Step) -> Outcome:
        node.asked.append(step.module)
        if node.gone_at and step.module == node.gone_at[0] and node.asked.count(step.module) > node.gone_at[1]:
            node.down = True
            raise Lost("no byte for 20 s")
        scripted = node.answers.get(step.module) or HEALTHY.get(step.module)
        if scripted is not None:
            return scripted if isinstance(scripted, Outcome) else scripted(node, step.args)
        if step.module == "probe_free_port":
            with self._lock:
                self._ports += 1
                return Outcome(values={"port": self._ports})
        assert step.module == "workload", f"nobody scripted {step.module}"
        return self.collective(node, json.loads(step.args["argv"][0])) if step.args.get("argv") else torch_facts(node)

    def collective(self, node: FakeNode, config: dict[str, Any]) -> Outcome:
        """All ranks of a group meet, or say who is missing; the group runs at its slowest member's speed."""
        rank, count, port = config["node_rank"], config["nodes"], config["port"]
        with self._lock:
            met = self._waiting.setdefault(port, {})
            if node.dies_in_groups_of != count:
                met[rank] = node
            self._lock.notify_all()
            if node.dies_in_groups_of == count:
                return Outcome(values={"rc": -9, "stdout": "", "stderr": "Killed", "timed_out": False})
            self._lock.wait_for(lambda: len(met) == count, PATIENCE)
            members = [met[index] for index in sorted(met)]
        if len(members) < count:
            missing = [index for index in range(count) if index not in met]
            return said(3, {"kind": "missing", "rank": rank, "ranks": missing}, {"kind": "error", "rank": rank, "phase": "waiting", "error": "wait timeout"})
        node.groups_joined += 1
        own = node.speed / 10 if node.groups_joined in node.disturbed_in else node.speed
        if rank == 0:
            self.groups.append(tuple(member.name for member in members))
        lines = [{"kind": "ready", "rank": rank, "torch": "2.13", "device": "cpu"}]
        wrong = 3 if any(member.corrupts for member in members) else 0
        lines += results(config, rank, min([own, *(member.speed for member in members)]), wrong)
        moved = sum(2 * size for case in config["cases"] for size in case["sizes"])
        node.sent += int(moved * node.carried)
        lines.append({"kind": "moved", "rank": rank, "bytes": moved})
        return said(0, *lines, *paces(config, rank, node.pace))


def paces(config: Mapping[str, Any], rank: int, pace: float = 1.0, gpu: bool = False) -> list[dict[str, Any]]:
    """What a rank says of the fixed work, where it was asked: 20 ms at full pace, on a core and on a GPU."""
    times = {"host": 0.02 / pace, "cpu": 0.02, "wait": 1e-4, "device": 0.02 / pace}
    found = {name: [time] * (config["pace"] if gpu or name != "device" else 0) for name, time in times.items()}
    return [{"kind": "pace", "rank": rank, **found}] if config["pace"] else []


def results(config: Mapping[str, Any], rank: int, busbw: float, wrong: int = 0) -> list[dict[str, Any]]:
    """What a rank says of each case and size when the group runs at ``busbw`` (B/s)."""
    ranks = config["nodes"] * config["nproc"]
    lines: list[dict[str, Any]] = []
    for number, case in enumerate(config["cases"]):
        for size in case["sizes"]:
            seconds = size / busbw * (bandwidth(case["op"], size, ranks, 1.0).busbw / size if ranks > 1 else 1.0)
            lines.append({"kind": "result", "rank": rank, "case": number, "bytes": size, "count": size // 4, "seconds": [seconds] * 3, "wrong": wrong})
    return lines


def said(rc: int, *lines: Mapping[str, Any]) -> Outcome:
    text = "some library's banner\n" + "".join("NODECTL " + json.dumps(line) + "\n" for line in lines)
    return Outcome(values={"rc": rc, "stdout": text, "stderr": "", "timed_out": False})


def torch_facts(_node: FakeNode) -> Outcome:
    return said(0, {"kind": "torch", "torch": "2.13", "python": "3.11", "cuda": "", "gpus": 0, "names": [], "nccl": "", "gloo": True})


def _route(node: FakeNode, args: dict[str, Any]) -> Outcome:
    return Outcome(values={"interface": "host0", "source": address(node.name), "mtu": 1500, "speed": 10000, "routes": []})


def _traffic(node: FakeNode, _args: dict[str, Any]) -> Outcome:
    port = {"device": "mlx5_0", "port": 1, "link_layer": "InfiniBand", "sent": node.sent, "received": node.sent}
    return Outcome(values={"ports": [port], "interfaces": [{"name": "host0", "sent": node.sent, "received": node.sent}], "simulated": False})


def _clock(_node: FakeNode, _args: dict[str, Any]) -> Outcome:
    return Outcome(values={"time_ns": time.time_ns(), "monotonic_ns": time.monotonic_ns(), "boot_id": "x"})


def _limits(memlock: int) -> Outcome:
    return Outcome(values={"login": {"memlock": {"soft": memlock, "hard": memlock}, "nofile": {"soft": 1048576, "hard": 1048576}}, "unit": None})


def _fabric(kind: str = "tcp", hcas: list[dict[str, Any]] | None = None) -> Outcome:
    direct = {} if kind == "tcp" else {"gpudirect": {"peermem": True, "dmabuf": False}}  # nobody reads it where nothing could use it
    links = [{"name": "host0", "driver": "", "type": "ether", "mtu": 1500}]
    return Outcome(facts={"nodectl_fabric": {"kind": kind, "hcas": hcas or [], "gpus": [], "interfaces": links, **direct, "not_found": ["no RDMA device"]}})


def _storage(**changes: Any) -> Outcome:
    kind = changes.get("kind", "loop")
    lies = {"target": "/scratch", "fstype": "xfs", "source": "/dev/nvme0n1", "is_tmpfs": False, "is_overlay": False, "kind": kind, "writable": True, "free_bytes": 8e12}
    return Outcome(values={**lies, "disks": {"loop": ["loop0"], "nvme": ["nvme0n1"]}.get(kind, ["sda"]), **changes})


def _fio(speed: float = 400e6) -> Outcome:
    """Every kind of access at ``speed`` B/s, seen by the device's counters."""
    one = {"bytes_per_second": speed, "direct": True, "method": "fio-3.33", "conditions": {"bs": 2**20}, "notes": [], "proof": "device", "proof_text": "all", "raw": "{}"}
    return Outcome(values={"ways": {way: dict(one, sync_latency_s={"p99": 0.001}) for way in ("write", "read", "randread", "randwrite", "fsync")}})


def _phases(_node: FakeNode, _args: dict[str, Any]) -> Outcome:
    figures: dict[str, Any] = {
        phase: {"bytes_per_second": 80e6, "seconds": 0.4, "proof": "store", "proof_text": "all"} for phase in ("batch_read", "model_load", "checkpoint_write")
    }
    durable = {"bytes_per_second": 20e6, "seconds": 1.6, "bytes": 2**25, "how": "listed"}
    return Outcome(values={**figures, "durable": durable, "content": {"wrong": []}, "conditions": {"fstype": "fuse.rclone"}, "method": "python"})


MACHINE: dict[str, Any] = {
    "hostname": "gpu-1", "cpus": 4, "sockets": 1, "cores_per_socket": 2, "threads_per_core": 2, "memory": 8 * 2**30, "gpu_files": [],
    "nccl_conf": [{"path": "/etc/nccl.conf", "text": "NCCL_IB_DISABLE=1\n"}],
}
HEALTHY: dict[str, Answer | Outcome] = {
    **HEALTHY_NODE,
    "probe_route": _route,
    "probe_traffic": _traffic,
    "probe_clock": _clock,
    "probe_limits": _limits(-1),
    "fabric_facts": _fabric(),
    "probe_storage_target": _storage(),
    "probe_object_mount": Outcome(values={"usable": True, "reason": ""}),
    "object_flush": Outcome(values={"files": [], "count": 0, "waited": 0.3}),
    "probe_fio": _fio(),
    "probe_phases": _phases,
    "probe_shared_mount": Outcome(values={"missing": []}),
    "probe_machine": Outcome(values=MACHINE),
}
limits, fabric, storage, fio, clock = _limits, _fabric, _storage, _fio, _clock


def address(name: str) -> str:
    return f"10.77.1.{10 + int(name[1:])}"


def node_of(fake: FakeNode) -> Node:
    target = Target(fake.name, address(fake.name), user="ops", key_file="/keys/id", options={"userknownhostsfile": "/keys/known_hosts"})
    return Node(fake.name, target, {"torch_python": "/opt/torch/bin/python", **fake.variables})


@dataclass
class Seen:
    """Collects events, as the journal would."""

    events: list[Event] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        json.dumps(event.to_json(), allow_nan=False)
        self.events.append(event)

    def of(self, kind: str, host: str = "") -> list[Event]:
        return [event for event in self.events if event.kind == kind and (not host or event.host == host)]

    def reasons(self, host: str) -> str:
        return "; ".join(map(str, self.of("verdict", host)[-1].data["reasons"]))

    def check(self, host: str, name: str) -> Event:
        return next(event for event in reversed(self.of("check", host)) if event.data["name"] == name)
