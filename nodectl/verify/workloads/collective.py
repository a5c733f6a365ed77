"""All-reduce over a group of nodes, values checked, times per rank: runs on the nodes, read from stdin by their torch interpreter.

Self-contained: standard library and torch only, Python 3.8. One start per group, whatever the number of sizes: importing torch
takes longer than most measurements. The parent imports torch once and forks the local ranks before anything touches a GPU.

argv[1] is a JSON object: backend (nccl, gloo), master, port, node_rank, nodes, nproc, sizes (bytes), warmup, iterations, budget (s per size),
timeout (s per operation), init_timeout (s until all ranks must be there). Output: lines that begin with "NODECTL ", then JSON:

    {"kind": "ready", "rank", "torch", "device"}
    {"kind": "result", "rank", "bytes", "seconds": [...], "correct", "wrong"}
    {"kind": "skipped", "rank", "bytes", "reason"}
    {"kind": "missing", "rank", "ranks": [...]}        these ranks never came
    {"kind": "error", "rank", "phase", "error"}
"""

from __future__ import annotations

import datetime
import json
import os
import signal
import sys
import time
from typing import Any, Dict, List

import torch
import torch.distributed

# torch's own stubs leave out TCPStore and others.
dist: Any = torch.distributed

# The pattern's period: prime, so that no chunking of a ring lines up with it and hides a shifted chunk.
PERIOD = 7
# Ranks are told apart modulo 16: sums stay exact in float32 (16 x 7 x ranks < 2**24) for 149,000 ranks.
KINDS = 16
# Between two looks at the children; 20 ms is noise beside any measurement here.
TICK = 0.02
# Share of free GPU memory that a buffer may take: the check of values needs room for a seventh of it beside.
MEMORY_SHARE = 0.6


def say(kind: str, **data: Any) -> None:
    """One line in one write, so that lines of several ranks never mix."""
    sys.stdout.flush()
    os.write(1, ("NODECTL " + json.dumps(dict(data, kind=kind)) + "\n").encode("ascii"))


def seconds(value: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=value)


def short(error: BaseException) -> str:
    """The first line of a torch error; the rest is a C++ stack."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:400]


class Rank:
    """One rank of the group."""

    def __init__(self, config: Dict[str, Any], local: int) -> None:
        self.config = config
        self.rank = int(config["node_rank"]) * int(config["nproc"]) + local
        self.world = int(config["nodes"]) * int(config["nproc"])
        self.cuda = config["backend"] == "nccl"
        self.device = torch.device("cuda", local) if self.cuda else torch.device("cpu")
        self.phase = "store"

    def run(self) -> int:
        """0 when all sizes were measured. Errors are said, with the phase they came in."""
        try:
            self.join()
            for size in self.config["sizes"]:
                self.phase = "all_reduce of %d bytes" % size
                self.measure(int(size))
            self.phase = "end"
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

    def measure(self, size: int) -> None:
        reason = self.too_large(size)
        if reason:
            say("skipped", rank=self.rank, bytes=size, reason=reason)
            return
        buffer = torch.empty(max(size // 4, PERIOD), dtype=torch.float32, device=self.device)
        wrong = self.checked(buffer)
        for _ in range(int(self.config["warmup"])):
            self.timed(buffer)
        times = [self.timed(buffer) for _ in range(self.iterations(buffer))]
        # Once more after the load: a link that corrupts only when warm is as bad.
        wrong += self.checked(buffer)
        say("result", rank=self.rank, bytes=buffer.numel() * 4, seconds=times, correct=wrong == 0, wrong=wrong)

    def iterations(self, buffer: torch.Tensor) -> int:
        """As many as fit into the budget; the slowest rank decides, so that all agree."""
        slowest = self.agreed(self.timed(buffer), dist.ReduceOp.MAX)
        return max(1, min(int(self.config["iterations"]), int(self.config["budget"] / max(slowest, 1e-6))))

    def timed(self, buffer: torch.Tensor) -> float:
        began = time.perf_counter()
        dist.all_reduce(buffer)
        if self.cuda:
            torch.cuda.synchronize()
        return time.perf_counter() - began

    def checked(self, buffer: torch.Tensor) -> int:
        """Fill with this rank's pattern, reduce, count the values that are not the sum of all patterns."""
        mine = self.rank % KINDS + 1
        total = sum(rank % KINDS + 1 for rank in range(self.world))
        for step in range(PERIOD):
            buffer[step::PERIOD] = float(mine * (step + 1))
        dist.all_reduce(buffer)
        return sum(int((buffer[step::PERIOD] != float(total * (step + 1))).sum().item()) for step in range(PERIOD))

    def agreed(self, value: float, how: Any) -> float:
        box = torch.tensor([value], dtype=torch.float64, device=self.device)
        dist.all_reduce(box, op=how)
        return float(box.item())

    def too_large(self, size: int) -> str:
        if not self.cuda:
            return ""
        free = self.agreed(float(torch.cuda.mem_get_info(self.device)[0]), dist.ReduceOp.MIN)
        return "" if size <= free * MEMORY_SHARE else "%d bytes do not fit beside what fills the GPU, %d are free" % (size, int(free))


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
    config = json.loads(sys.argv[1])
    if int(config["nproc"]) == 1:
        return Rank(config, 0).run()
    return reap([start(config, local) for local in range(int(config["nproc"]))])


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Not sys.exit: threads of a broken process group can keep the interpreter waiting for a peer that is gone.
    os._exit(code)
