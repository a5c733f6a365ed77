"""What happened, as one line of the journal. Everything that is shown, counted or reported is made from these.

Kinds and their data (``host`` is the inventory name, "" where it is about the run):

    run.start     command, argv, run_id, version, check, diff, playbook, inventory
    play.start    play, hosts
    task.start    play, task, role, origin, handler
    task.end      play, task, role, origin, module, status, result, diff, seconds, handler
                  status: ok changed failed skipped rescued ignored
                  (rescued: it failed inside a block that has a rescue; ignored: it failed with ignore_errors)
    task.item     task, item, status, result, diff
    host.unreachable / host.lost   reason, why, hint, task    (why: one word for the cause, such as timeout, auth, lost)
    host.stopped  reason          (taken out although nothing failed on it: end_host, the failure budget)
    handlers.pending  handlers
    progress      stage, text; where a step over several nodes begins also hosts (who is at work) and bound (s, at most)
    warning       text, origin
    target        address, slurm_node_name, kubernetes_node_name   (each host, reached or not; "" where the inventory gives no other name)
    suite         name, text, floors, waivers, today, settings (variables by host)   (at the start of a verification: what it is judged by)
    reading       step, repetition (number, of how many), measurements, expectations   (exactly what the judge was given: `verify --replay` judges it again)
    sweep         hosts, op, dtype, redop ("" where nothing is reduced), root (-1: none), backend, ranks (how many), nproc (of each host),
                  in_place (all rows are), floor, source, note (what the backend cannot do; such a sweep has no rows),
                  rows: bytes, count, time, algbw, busbw, wrong, in_place, ranks (s of each rank)   (base units: B, s, B/s; one row per size and place)
    pair          hosts (two), rail, tool (all_reduce, ib_write_bw, ib_write_lat), bytes, value, unit, round, error
    check         step, name, verdict, value, unit, floor, reason, source, simulated, raw,
                  waiver: null, or check, who, why, until, origin (then the verdict is "skipped")
    verdict       verdict (fail, unknown, skipped, pass: the worst of the node's checks), reasons
    node          address, fabric_address, interface, gpus, nproc, torch_python, user, port, key_file, connection, ssh_options, env, backend, torch, fabric,
                  machine: hostname, cpus, sockets, cores_per_socket, threads_per_core, memory (B), gpu_files, gpu_model, sku, nccl_conf; or error
    handoff       path, hosts, excluded, world_size, refused (by format: hosts that it cannot express, with why)
    run.end       exit_code, seconds
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List

_OWN = frozenset(["kind", "at", "host"])


@dataclass(frozen=True)
class Event:
    """One moment of a run. ``at`` is seconds since the epoch, UTC. ``data`` holds JSON types only, secrets already masked.

    Raises ValueError where ``data`` names kind, at or host itself: in the journal's flat line it would replace the event's own.
    """

    kind: str
    at: float
    host: str = ""
    data: Dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken = sorted(_OWN.intersection(self.data))
        if taken:
            raise ValueError(f"data of a {self.kind} event must not be called {', '.join(taken)}")

    def to_json(self) -> Dict[str, Any]:
        return {"kind": self.kind, "at": self.at, "host": self.host, **self.data}

    # Readers of a journal ask by type: one written by another version, or by hand, must not end them.

    def mapping(self, key: str) -> Dict[str, Any]:
        """The value of ``key`` where it is a mapping, else an empty one."""
        value = self.data.get(key)
        return value if isinstance(value, dict) else {}

    def texts(self, key: str) -> List[str]:
        """The items of ``key`` as texts where it is a list, else none."""
        value = self.data.get(key)
        return [str(item) for item in value] if isinstance(value, (list, tuple)) else []
