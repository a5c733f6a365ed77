"""Collectives over a group of nodes, values checked, times per rank: runs on the nodes, read from stdin by their torch interpreter.

Self-contained: standard library and torch only, Python 3.8. One start per group, whatever the number of operations and sizes: importing
torch takes longer than most measurements. The parent imports torch once and forks the local ranks before anything touches a GPU.

argv[1] is a JSON object: backend (nccl, gloo), master, port, node_rank, nodes, nproc, timeout (s per operation), init_timeout (s until all
ranks must be there), until (s after which no new size is begun), pace (rounds of fixed work without network; 0: none), and cases: a list of
op, dtype, redop, root, in_place, sizes (bytes), warmup, iterations, budget (s of timed iterations per size), keep (every iteration's time,
not only their mean). Output: lines that begin with "NODECTL ", then JSON; a case is named by its place in the list:

    {"kind": "ready", "rank", "torch", "device"}
    {"kind": "result", "rank", "case", "bytes", "count", "seconds": [...], "wrong"}
    {"kind": "unsupported", "rank", "case", "reason"}  this backend cannot do that
    {"kind": "skipped", "rank", "case", "bytes", "reason"}
    {"kind": "pace", "rank", "host": [...], "cpu": [...], "device": [...], "wait": [...]}   (s per round)
    {"kind": "moved", "rank", "bytes"}                 what each node had to send to others for all of it
    {"kind": "resent", "rank", "peers": {address: [segments of data sent over TCP, of them again]}}
    {"kind": "missing", "rank", "ranks": [...]}        these ranks never came
    {"kind": "error", "rank", "phase", "error"}

``bytes`` is nccl-tests' size (of all ranks together where an operation gathers), ``count`` its number of elements (of one rank's part there).
"""

from __future__ import annotations

import datetime
import json
import os
import signal
import socket
import stat
import struct
import sys
import time
import warnings
from typing import Any, Callable, Dict, List, Sequence, Tuple

import torch
import torch.distributed

# torch's own stubs leave out TCPStore and others.
dist: Any = torch.distributed

# Periods of the three patterns: primes, so that no chunk of a ring (a power of two) lines up with them and hides a shifted chunk.
PERIODS = (251, 241, 239)
# Largest whole number up to which sums are exact, whatever their order; for integers so small that nothing wraps.
EXACT = {
    "float64": 2**24, "float32": 2**24, "float16": 2**11, "bfloat16": 2**8, "int64": 2**24, "int32": 2**24, "int8": 127, "uint8": 255,
}
# How often 2 may be a factor of a product before the type overflows.
DOUBLINGS = {"float64": 100, "float32": 100, "float16": 15, "bfloat16": 100, "int64": 62, "int32": 30, "int8": 6, "uint8": 7}
# Of an average only four ranks are no zero in each place, with values up to 4: then rounding stays below half of what one wrong element changes.
AVERAGED = 4
# More kinds of values than this find nothing more.
MOST_VALUES = 1000
REDUCING = ("all_reduce", "reduce_scatter", "reduce")
# S of nccl-tests counts all ranks' parts together; each rank's part is this much smaller.
PARTED = ("all_gather", "reduce_scatter", "alltoall")
# Between two looks at the children; 20 ms is noise beside any measurement here.
TICK = 0.02
# Share of free memory that a rank's buffers may take: the check of values needs room beside them. Ranks of one node share its memory.
MEMORY_SHARE = 0.6
# Values compared at once (elements): bounds what the check needs beside the buffers.
CHUNK = 1 << 24
# Of one round of fixed work: about 25 ms on a core of 2020, so that a core which is shared or held back shows in every round.
WORK, WORK_ELEMENTS = 240, 1 << 20
MATMULS, MATRIX = 8, 4096
# What a call that a backend does not know raises; a lost peer raises RuntimeError too, and then the ranks cannot agree any more.
REFUSALS = (RuntimeError, ValueError, TypeError, NotImplementedError)
# struct tcp_info of linux/tcp.h: tcpi_total_retrans and tcpi_data_segs_out, the latter since Linux 4.6.
RETRANSMITTED, DATA_SEGMENTS, TCP_INFO_BYTES = 100, 156, 160


def say(kind: str, **data: Any) -> None:
    """One line in one write, so that lines of several ranks never mix."""
    sys.stdout.flush()
    os.write(1, ("NODECTL " + json.dumps(dict(data, kind=kind)) + "\n").encode("ascii"))


def seconds(value: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=value)


def short(error: BaseException) -> str:
    """The first line of a torch error; the rest is a C++ stack."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:400]


def digits(values: Sequence[float]) -> List[float]:
    """Five significant digits: a sweep's output has to stay small, and no clock is better."""
    return [float("%.5g" % value) for value in values]


def call(*names: str) -> Callable[..., Any]:
    """The first of these functions that this torch has: names changed over the years."""
    found: Callable[..., Any] = next(getattr(dist, name) for name in names if hasattr(dist, name))
    return found


def pieces(buffer: torch.Tensor, size: int) -> List[torch.Tensor]:
    """``buffer`` (its rows) in pieces of ``size``, the last one shorter; views, no copies."""
    return [buffer[first : first + size] for first in range(0, len(buffer), size)]


# -- values


def mixed(seed: int, ranks: torch.Tensor, block: int, period: int) -> torch.Tensor:
    """For each of ``ranks`` a row of ``period`` numbers below 2**32, scattered: another rank, block, place or seed gives others."""
    mask = 0xFFFFFFFF
    places = torch.arange(1, period + 1, dtype=torch.int64)
    found = places[None, :] * 2654435761 + (ranks[:, None] + 1) * 2246822519 + (block + 1) * 3266489917 + seed * 668265263
    for shift, factor in ((15, 2246822519), (13, 3266489917)):
        found = found & mask
        found = (found ^ (found >> shift)) * factor
    found = found & mask
    return found ^ (found >> 16)


class Values:
    """What the ranks of one case put in, and what has to come out, for one pattern; rows of whole numbers that repeat along a buffer."""

    def __init__(self, case: Dict[str, Any], world: int, pattern: int) -> None:
        self.redop = str(case["redop"]) if case["op"] in REDUCING else ""
        self.dtype = str(case["dtype"])
        self.world = world
        self.seed = pattern + 1
        self.period = PERIODS[pattern % len(PERIODS)]

    def given(self, ranks: Sequence[int], block: int = 0) -> torch.Tensor:
        """[ranks, period]: what each of ``ranks`` puts into ``block``."""
        index = torch.tensor(list(ranks), dtype=torch.int64)
        scattered = mixed(self.seed, index, block, self.period)
        if self.redop == "prod":
            return torch.where(self._takes_part(index, DOUBLINGS[self.dtype]), 1 + scattered % 2, torch.ones_like(scattered))
        if self.redop in ("sum", "avg"):
            limit = AVERAGED * AVERAGED if self.redop == "avg" else EXACT[self.dtype]
            among = min(self.world, max(limit // 4, 1))
            values = 1 + scattered % min(limit // among, MOST_VALUES)
            return torch.where(self._takes_part(index, among), values, torch.zeros_like(values))
        return 1 + scattered % min(EXACT[self.dtype], MOST_VALUES)

    def _takes_part(self, ranks: torch.Tensor, among: int) -> torch.Tensor:
        """True for ``among`` ranks of each place; which ones changes from place to place, so that all ranks are seen."""
        stride = max(1, self.world // self.period)
        places = torch.arange(self.period, dtype=torch.int64) * stride
        return (ranks[:, None] + places[None, :]) % self.world < among

    def expected(self, block: int = 0) -> torch.Tensor:
        """[period]: the reduction of what all ranks put into ``block``, in float64 for an average of floats."""
        every = self.given(range(self.world), block)
        if self.redop == "prod":
            return every.prod(0)
        if self.redop in ("min", "max"):
            return every.amin(0) if self.redop == "min" else every.amax(0)
        total = every.sum(0)
        if self.redop != "avg":
            return total
        return total.double() / self.world if self.dtype in ("float64", "float32", "float16", "bfloat16") else total // self.world

    @property
    def tolerance(self) -> float:
        """Half of what one wrong element changes in an average of floats; everything else is exact."""
        return 0.5 / self.world if self.redop == "avg" else 0.0


def fill(buffer: torch.Tensor, row: torch.Tensor) -> None:
    """``row`` again and again along ``buffer``."""
    values = row.to(buffer.device).to(buffer.dtype)
    whole = buffer.numel() // len(row) * len(row)
    if whole:
        buffer[:whole].view(-1, len(row)).copy_(values)
    buffer[whole:].copy_(values[: buffer.numel() - whole])


def wrong_in(buffer: torch.Tensor, row: torch.Tensor, tolerance: float) -> int:
    """How many values of ``buffer`` are not ``row`` repeated. NaN is wrong."""
    expected = row.to(buffer.device) if tolerance else row.to(buffer.device).to(buffer.dtype)
    whole = buffer.numel() // len(row) * len(row)
    parts = pieces(buffer[:whole].view(-1, len(row)), max(1, CHUNK // len(row)))
    pairs = [(part, expected) for part in parts] + [(buffer[whole:], expected[: buffer.numel() - whole])]
    total = 0
    for found, wanted in pairs:
        bad = ~((found.double() - wanted).abs() <= tolerance) if tolerance else found != wanted
        total += int(bad.sum().item())
    return total


# -- operations


class Operation:
    """One collective on one size: its buffers, the call, what goes in and what must come out."""

    def __init__(self, case: Dict[str, Any], size: int, rank: int, world: int, device: torch.device) -> None:
        self.case, self.rank, self.world = case, rank, world
        self.op, self.root, self.in_place = str(case["op"]), int(case["root"]), bool(case["in_place"])
        self.dtype = getattr(torch, case["dtype"])
        self.reduction = getattr(dist.ReduceOp, {"prod": "PRODUCT"}.get(case["redop"], str(case["redop"]).upper()))
        parts = world if self.op in PARTED else 1
        self.count = max(1, size // torch.empty(0, dtype=self.dtype).element_size() // parts)
        self.bytes = self.count * parts * torch.empty(0, dtype=self.dtype).element_size()
        self.send, self.receive = self._buffers(device, parts)
        self.runs = 0

    def _buffers(self, device: torch.device, parts: int) -> Tuple[torch.Tensor, torch.Tensor]:
        whole = torch.zeros(self.count * parts, dtype=self.dtype, device=device)
        own = slice(self.rank * self.count, (self.rank + 1) * self.count)
        if self.op == "all_gather":
            return (whole[own] if self.in_place else torch.zeros(self.count, dtype=self.dtype, device=device)), whole
        if self.op == "reduce_scatter":
            return whole, (whole[own] if self.in_place else torch.zeros(self.count, dtype=self.dtype, device=device))
        return whole, (whole if self.in_place else torch.zeros_like(whole))

    def run(self) -> None:
        """Called by all ranks; comes back when it is done here (gloo) or queued (NCCL)."""
        self.runs += 1
        getattr(self, "_" + self.op)()

    def leaving(self, nodes: int, per_node: int) -> float:
        """Bytes that each node sends to others in one run of a ring; 0 where a node may stand at the end of a chain and send nothing."""
        share = (nodes - 1) / nodes
        factors = {"all_reduce": 2 * share, "all_gather": share, "reduce_scatter": share, "alltoall": share * per_node, "sendrecv": 1.0 if nodes > 1 else 0.0}
        return self.bytes * factors.get(self.op, 0.0)

    def _all_reduce(self) -> None:
        dist.all_reduce(self.receive, op=self.reduction)

    def _reduce(self) -> None:
        dist.reduce(self.receive, self.root, op=self.reduction)

    def _broadcast(self) -> None:
        dist.broadcast(self.receive, self.root)

    def _all_gather(self) -> None:
        call("all_gather_single", "all_gather_into_tensor", "_all_gather_base")(self.receive, self.send)

    def _reduce_scatter(self) -> None:
        call("reduce_scatter_single", "reduce_scatter_tensor", "_reduce_scatter_base")(self.receive, self.send, op=self.reduction)

    def _alltoall(self) -> None:
        dist.all_to_all_single(self.receive, self.send)

    def _sendrecv(self) -> None:
        """To the next rank, from the one before: nccl-tests' ring."""
        after, before = (self.rank + 1) % self.world, (self.rank - 1) % self.world
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, self.send, after), dist.P2POp(dist.irecv, self.receive, before)]):
            work.wait()

    def checked(self, pattern: int) -> int:
        """Put a pattern in, run, count the values that are wrong here. What comes out is poisoned first: a buffer left as it was is seen."""
        values = Values(self.case, self.world, pattern)
        self.receive.fill_(255 if self.dtype == torch.uint8 else -1)
        for block, view in self._inputs():
            fill(view, values.given([self.rank], block)[0])
        self.run()
        return sum(wrong_in(view, row, values.tolerance) for view, row in self._outcome(values))

    def _inputs(self) -> List[Tuple[int, torch.Tensor]]:
        if self.op in ("reduce_scatter", "alltoall"):
            return list(enumerate(pieces(self.send, self.count)))
        return [] if self.op == "broadcast" and self.rank != self.root else [(0, self.send)]

    def _outcome(self, values: Values) -> List[Tuple[torch.Tensor, torch.Tensor]]:
        """Each part of what came out, with what has to stand there."""
        if self.op == "all_reduce":
            return [(self.receive, values.expected())]
        if self.op == "reduce":
            return [(self.receive, values.expected())] if self.rank == self.root else []
        if self.op == "reduce_scatter":
            return [(self.receive, values.expected(self.rank))]
        if self.op == "broadcast":
            return [(self.receive, values.given([self.root])[0])]
        if self.op == "sendrecv":
            return [(self.receive, values.given([(self.rank - 1) % self.world])[0])]
        block = self.rank if self.op == "alltoall" else 0
        rows = values.given(range(self.world), block)
        return list(zip(pieces(self.receive, self.count), rows))

    def still(self) -> None:
        """Zeros for the timed runs: whatever is reduced into itself many times stays a number."""
        self.send.zero_()
        self.receive.zero_()


# -- ranks


class Rank:
    """One rank of the group."""

    def __init__(self, config: Dict[str, Any], local: int) -> None:
        self.config = config
        self.rank = int(config["node_rank"]) * int(config["nproc"]) + local
        self.world = int(config["nodes"]) * int(config["nproc"])
        self.cuda = config["backend"] == "nccl"
        self.device = torch.device("cuda", local) if self.cuda else torch.device("cpu")
        self.phase = "store"
        self.began = time.monotonic()
        self.moved = 0.0

    def run(self) -> int:
        """0 when all sizes were measured. Errors are said, with the phase they came in."""
        try:
            self.join()
            self.pace(int(self.config.get("pace", 0)))
            for number, case in enumerate(self.config["cases"]):
                self.measure_case(number, case)
            self.phase = "end"
            say("moved", rank=self.rank, bytes=int(self.moved))
            say("resent", rank=self.rank, peers=resent())
            # No destroy_process_group: gloo's threads have aborted a rank there, after all figures were taken; os._exit ends them.
            dist.barrier()
        except (RuntimeError, ValueError, OSError) as error:
            say("error", rank=self.rank, phase=self.phase, error=short(error))
            return 3
        return 0

    def join(self) -> None:
        if self.cuda:
            torch.cuda.set_device(self.device)
        wait = seconds(self.config["init_timeout"])
        store = dist.TCPStore(self.config["master"], int(self.config["port"]), self.world, self.rank == 0, timeout=wait, wait_for_workers=False)
        self.phase = "waiting for all ranks"
        store.set("here/%d" % self.rank, "1")
        self.await_all(store, wait)
        self.phase = "connecting"
        dist.init_process_group(self.config["backend"], store=store, rank=self.rank, world_size=self.world, timeout=seconds(self.config["timeout"]))
        dist.barrier()
        say("ready", rank=self.rank, torch=torch.__version__, device=str(self.device))

    def await_all(self, store: Any, wait: datetime.timedelta) -> None:
        try:
            store.wait(["here/%d" % rank for rank in range(self.world)], wait)
        except RuntimeError:
            missing = [rank for rank in range(self.world) if not store.check(["here/%d" % rank])]
            say("missing", rank=self.rank, ranks=missing)
            raise

    # -- one operation

    def measure_case(self, number: int, case: Dict[str, Any]) -> None:
        self.phase = "%s of %s" % (case["op"], case["dtype"])
        reason = self.refused(case)
        if reason:
            say("unsupported", rank=self.rank, case=number, reason=reason)
            return
        done = set()
        for size in case["sizes"]:
            self.phase = "%s of %d bytes" % (case["op"], size)
            reason = self.too_large(int(size)) or self.too_late()
            if reason:
                say("skipped", rank=self.rank, case=number, bytes=size, reason=reason)
                continue
            operation = Operation(case, int(size), self.rank, self.world, self.device)
            if operation.bytes not in done:  # small sizes of several parts come out alike
                done.add(operation.bytes)
                self.measure(number, case, operation)

    def refused(self, case: Dict[str, Any]) -> str:
        """Why this backend cannot do the case, "" where it can. Tried on the smallest buffer; the ranks agree, so that nobody waits alone."""
        reason = ""
        try:
            Operation(case, 1, self.rank, self.world, self.device).run()
            self.settle()
        except REFUSALS as error:
            reason = short(error)
        others = self.agreed(1.0 if reason else 0.0, dist.ReduceOp.MAX)
        return reason or ("another rank cannot do it" if others else "")

    def measure(self, number: int, case: Dict[str, Any], operation: Operation) -> None:
        wrong = operation.checked(0) + operation.checked(1)
        operation.still()
        for _ in range(int(case["warmup"])):
            operation.run()
        trial = self.agreed(self.timed(operation, 1)[0], dist.ReduceOp.MAX)
        # As many as fit into the budget; the slowest rank decides, so that all agree.
        count = max(1, min(int(case["iterations"]), int(float(case["budget"]) / max(trial, 1e-6))))
        times = self.timed(operation, count)
        # Once more after the load: a link that corrupts only when warm is as bad.
        wrong += operation.checked(2)
        self.moved += operation.runs * operation.leaving(int(self.config["nodes"]), int(self.config["nproc"]))
        kept = times if case.get("keep") else [sum(times) / len(times)]
        say("result", rank=self.rank, case=number, bytes=operation.bytes, count=operation.count, seconds=digits(kept), wrong=wrong)

    def timed(self, operation: Operation, count: int) -> List[float]:
        """Seconds of each of ``count`` runs, back to back as nccl-tests does: no rank waits for the others but inside the operation."""
        self.agreed(0.0, dist.ReduceOp.MAX)
        if self.cuda:
            return self.timed_on_gpu(operation, count)
        marks = [time.perf_counter()]
        for _ in range(count):
            operation.run()
            marks.append(time.perf_counter())
        return [max(later - earlier, 1e-9) for earlier, later in zip(marks, marks[1:])]

    def timed_on_gpu(self, operation: Operation, count: int) -> List[float]:
        """By events in the stream: waiting for each run on the host would add a launch's time to it."""
        events: List[Any] = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]  # type: ignore[no-untyped-call]
        events[0].record()
        for event in events[1:]:
            operation.run()
            event.record()
        torch.cuda.synchronize()
        return [max(earlier.elapsed_time(later) / 1e3, 1e-9) for earlier, later in zip(events, events[1:])]

    def settle(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()

    def agreed(self, value: float, how: Any) -> float:
        box = torch.tensor([value], dtype=torch.float64, device=self.device)
        dist.all_reduce(box, op=how)
        return float(box.item())

    def too_large(self, size: int) -> str:
        """Two buffers at most; on a CPU all ranks of the node share its memory."""
        free = self.agreed(float(torch.cuda.mem_get_info(self.device)[0]) if self.cuda else available() / int(self.config["nproc"]), dist.ReduceOp.MIN)
        if 2 * size <= free * MEMORY_SHARE:
            return ""
        return "two buffers of %d bytes do not fit beside what fills %s, %d are free" % (size, "the GPU" if self.cuda else "the memory", int(free))

    def too_late(self) -> str:
        until = float(self.config.get("until", 0))
        spent = self.agreed(time.monotonic() - self.began, dist.ReduceOp.MAX)
        return "no time is left: %.0f s are spent, the sweep may take %.0f s" % (spent, until) if until and spent > until else ""

    # -- which rank is slow?

    def pace(self, rounds: int) -> None:
        """Fixed work without network, then a tiny all-reduce: who is late there holds up every step of a training run.

        The time of the work is the rank's own; ``wait`` is what it waited for the slowest; ``cpu`` is what of ``host`` it had a core.
        """
        if not rounds:
            return
        self.phase = "pace"
        found: Dict[str, List[float]] = {"host": [], "cpu": [], "device": [], "wait": []}
        buffer = torch.zeros(WORK_ELEMENTS)
        matrix = torch.ones(MATRIX, MATRIX, dtype=torch.float16, device=self.device) if self.cuda else None
        for number in range(rounds + 1):
            self.agreed(0.0, dist.ReduceOp.MAX)
            began, busy = time.perf_counter(), time.thread_time()
            for step in range(WORK):
                buffer.fill_(float(step))
                buffer.sum()
            worked, busy = time.perf_counter(), time.thread_time() - busy
            if matrix is not None:
                for _ in range(MATMULS):
                    torch.mm(matrix, matrix)
                torch.cuda.synchronize()
            ready = time.perf_counter()
            self.agreed(0.0, dist.ReduceOp.MAX)
            if number:  # the first round touches fresh memory and loads kernels
                for name, value in (("host", worked - began), ("cpu", busy), ("device", ready - worked), ("wait", time.perf_counter() - ready)):
                    found[name].append(value)
        if not self.cuda:
            found["device"] = []
        say("pace", rank=self.rank, **{name: digits(values) for name, values in found.items()})


def resent() -> Dict[str, List[int]]:
    """What the kernel counted on this process's own TCP connections, by the peer's address."""
    found: Dict[str, List[int]] = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            if not stat.S_ISSOCK(os.stat("/proc/self/fd/" + name).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as line:
                peer = line.getpeername()[0] if line.family in (socket.AF_INET, socket.AF_INET6) else ""
                info = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES) if peer else b""
        except OSError:  # it was closed meanwhile, or listens
            continue
        if len(info) == TCP_INFO_BYTES:
            counts = found.setdefault(peer.replace("::ffff:", ""), [0, 0])
            counts[0] += struct.unpack_from("I", info, DATA_SEGMENTS)[0]
            counts[1] += struct.unpack_from("I", info, RETRANSMITTED)[0]
    return found


def available() -> float:
    """Bytes that the node can still give to programs; without an answer as much as needed."""
    try:
        with open("/proc/meminfo") as lines:
            return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return float("inf")


def start(config: Dict[str, Any], local: int) -> int:
    """Fork one local rank; the child never returns."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        code = Rank(config, local).run()
    finally:
        os._exit(code)


def reap(children: List[int]) -> int:
    """Wait for all local ranks. One that fails takes the others with it after a second: they could only wait for it."""
    codes: Dict[int, int] = {}
    failed_at = 0.0
    while len(codes) < len(children):
        for child in children:
            if child in codes:
                continue
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                codes[child] = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
                failed_at = failed_at or (time.monotonic() if codes[child] else 0.0)
        if failed_at and time.monotonic() - failed_at > 1.0:
            for child in children:
                if child not in codes:
                    os.kill(child, signal.SIGKILL)
        time.sleep(TICK)
    return max(codes.values())


def main() -> int:
    # What torch says of names it will drop would push the cause of a failure out of the end of stderr.
    warnings.simplefilter("ignore")
    config = json.loads(sys.argv[1])
    if int(config["nproc"]) == 1:
        return Rank(config, 0).run()
    return reap([start(config, local) for local in range(int(config["nproc"]))])


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Not sys.exit: threads of a broken process group can keep the interpreter waiting for a peer that is gone.
    os._exit(code)
