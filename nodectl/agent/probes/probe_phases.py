"""probe_phases: the three storage phases of a training run, measured on one mount."""

from __future__ import annotations

from typing import Any, Dict

from nodectl.agent.contract import Args
from nodectl.agent.measured_folder import in_child, measured_folder, python_method
from nodectl.agent.sizes import size_of
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Batches of small files, one large model file, a sharded checkpoint with fsync: how long each takes on this mount.",
    params={
        "path": Param("path", "folder on the mount", required=True),
        "user": Param("str", "measure as this account", default=""),
        "batches": Param("int", "how many batches are read", default=16),
        "batch_size": Param("str", "bytes of a batch", default="1MiB"),
        "samples": Param("int", "files of a batch", default=8),
        "threads": Param("int", "readers", default=4),
        "model_size": Param("str", "bytes of the model file", default="32MiB"),
        "checkpoint_size": Param("str", "bytes of the checkpoint", default="32MiB"),
        "shards": Param("int", "files of the checkpoint, written at once", default=4),
        "timeout": Param("float", "seconds for everything", default=120.0),
    },
    returns={
        "batch_read": "seconds, bytes, bytes_per_second, files_per_second, batch_seconds (p50, p99, max), cache (how it was kept out)",
        "model_load": "seconds, bytes, bytes_per_second, cache",
        "checkpoint_write": "seconds, bytes, bytes_per_second, slowest_shard_seconds, folder_fsync, cache",
        "direct": "whether O_DIRECT works here", "direct_reason": "why not", "conditions": "sizes, threads, filesystem", "method": "the tool",
    },
    example="- probe_phases:\n    path: /data\n    model_size: 1GiB\n    checkpoint_size: 1GiB\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    if check:
        return Outcome(skipped=True, msg="nothing is measured in check mode: it would write")
    order: Dict[str, Any] = {key: size_of(key, args[key]) for key in ("batch_size", "model_size", "checkpoint_size")}
    order.update({key: max(1, args[key]) for key in ("batches", "samples", "threads", "shards")}, what="phases")
    needed = order["batches"] * order["batch_size"] + order["model_size"] + order["checkpoint_size"]
    with measured_folder(system, args["path"], needed, args["user"]) as folder:
        found = in_child(system, args["user"], dict(order, folder=folder), args["timeout"])
    conditions = {key: value for key, value in order.items() if key != "what"}
    conditions.update(_filesystem(system, args["path"]), user=args["user"])
    return Outcome(values=dict(found, conditions=conditions, method=python_method()))


def _filesystem(system: System, path: str) -> Dict[str, Any]:
    """Where a FUSE mount keeps a cache, what was just written may be read back from the node's own disk: say so."""
    live = [m for m in system.mounts() if path == m.target or path.startswith(m.target.rstrip("/") + "/")]
    fstype = max(live, key=lambda m: len(m.target)).fstype if live else ""
    return {"fstype": fstype, "own_cache": "a FUSE mount may answer from its own cache" if fstype.startswith("fuse") else ""}
