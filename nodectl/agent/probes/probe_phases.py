"""probe_phases: the three storage phases of a training run, measured on one mount."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, Optional, Tuple

from nodectl.agent import io_proof, rclone_store
from nodectl.agent.contract import Args, Failed
from nodectl.agent.measured_folder import in_child, measured_folder, mount_of, python_method
from nodectl.agent.sizes import size_of
from nodectl.agent.system import Mount, System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Batches of small files, one large model file, a sharded checkpoint with fsync: how long each takes on this mount, and when it is in the store.",
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
        "batch_read": "seconds, bytes, bytes_per_second, files_per_second, batch_seconds (p50, p99, max), proof, proof_text; or error",
        "model_load": "seconds, bytes, bytes_per_second, proof, proof_text; or error",
        "checkpoint_write": "seconds, bytes, bytes_per_second, slowest_shard_seconds, folder_fsync, proof, proof_text; or error",
        "durable": "seconds from the first byte of the checkpoint until the object store had all of it, bytes_per_second, how; or error, "
        "with corrupt: true where the store gave back other bytes; null where fsync is all there is to wait for",
        "content": "wrong: files that did not come back as they were written; or error",
        "direct": "whether O_DIRECT works here", "direct_reason": "why not", "conditions": "sizes, threads, filesystem", "method": "the tool",
    },
    example="- probe_phases:\n    path: /data\n    model_size: 1GiB\n    checkpoint_size: 1GiB\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    if check:
        return Outcome(skipped=True, msg="nothing is measured in check mode: it would write")
    order: Dict[str, Any] = {key: size_of(key, args[key]) for key in ("batch_size", "model_size", "checkpoint_size")}
    order.update({key: max(1, args[key]) for key in ("batches", "samples", "threads", "shards")})
    # What is read lies there twice on an object store: as written, and as the copy that no cache has seen.
    needed = 2 * (order["batches"] * order["batch_size"] + order["model_size"]) + order["checkpoint_size"]
    with measured_folder(system, args["path"], needed, args["user"]) as folder:
        values = _Phases(system, args, order, folder).run()
    conditions = dict(order, fstype=values.pop("fstype"), cache_bytes=values.pop("cache_bytes"), user=args["user"])
    return Outcome(values=dict(values, conditions=conditions, method=python_method()))


class _Phases:
    """One measuring of one folder. What goes wrong in one phase stands in its place, and the others are measured all the same."""

    def __init__(self, system: System, args: Args, order: Dict[str, Any], folder: str) -> None:
        self.system = system
        self.user = args["user"]
        self.order = dict(order, folder=folder)
        self.folder = folder
        self.ends: float = time.monotonic() + args["timeout"]
        self.table = system.mounts()
        self.live: Optional[Mount] = mount_of(self.table, folder)
        self.fstype = self.live.fstype if self.live else ""
        self.daemon, self.why_not = rclone_store.behind(system, self.live)

    def run(self) -> Dict[str, Any]:
        placed = self.child("place", {})
        self.order["direct"] = not placed["direct_reason"]
        values: Dict[str, Any] = {"fstype": self.fstype, "direct": self.order["direct"], "direct_reason": placed["direct_reason"]}
        values["cache_bytes"] = self.daemon.cache_bytes if self.daemon else None
        where = self.part(lambda: {"folder": self.cold(placed["files"])})
        for phase in ("batch_read", "model_load"):
            values[phase] = where if "error" in where else self.part(lambda phase=phase: self.timed(phase, where["folder"]))  # type: ignore[misc]
        values["content"] = where if "error" in where else self.part(lambda: self.child("compare", {"folder": where["folder"], "files": placed["files"]}))
        values["checkpoint_write"], values["durable"] = self.checkpoint()
        return values

    def left(self) -> float:
        return max(1.0, self.ends - time.monotonic())

    def part(self, work: Callable[[], Dict[str, Any]]) -> Dict[str, Any]:
        try:
            return work()
        except Failed as failed:
            self.system.stopper.check()
            return dict(failed.values, error=failed.msg)

    def child(self, what: str, more: Dict[str, Any]) -> Dict[str, Any]:
        return in_child(self.system, self.user, dict(self.order, what=what, **more), self.left())

    def inside(self, folder: str) -> str:
        """As the store names it: relative to the mount point."""
        return os.path.relpath(folder, self.live.target if self.live else "/")

    def cold(self, files: rclone_store.Files) -> str:
        """The folder to read from: where a store stands behind the mount, a copy that was made there and that no cache here has seen."""
        if self.daemon is None:
            return self.folder
        here = self.inside(self.folder)
        rclone_store.until_durable(self.system, self.daemon, here, files, self.left())
        rclone_store.copy(self.system, self.daemon, here, f"{here}/cold", self.left())
        rclone_store.refresh(self.system, self.daemon, here)
        return os.path.join(self.folder, "cold")

    def timed(self, phase: str, folder: str) -> Dict[str, Any]:
        """One phase with proof of where its bytes came from or went."""
        before, moved = io_proof.counters(self.table, folder), self.moved()
        found = self.child(phase, {"folder": folder})
        proof = self.proof(phase, found["bytes"], before, moved)
        return dict(found, proof=proof.kind, proof_text=proof.text)

    def moved(self) -> Optional[int]:
        return rclone_store.fetched(self.system, self.daemon) if self.daemon else None

    def proof(self, phase: str, count: int, before: Optional[io_proof.Counters], moved: Optional[int]) -> io_proof.Proof:
        writes = phase == "checkpoint_write"
        if self.daemon is not None and not writes:
            now = self.moved()
            if moved is None or now is None:
                return io_proof.Proof("", "a copy made within the store was read, but rclone does not tell how much it fetched")
            text = f"{now - moved} bytes came from the store by rclone's own count, {count} were read"
            return io_proof.Proof("store" if now - moved >= io_proof.ENOUGH * count else "", text)
        said = {
            "direct": self.order["direct"], "direct_reason": "", "fstype": self.fstype, "size": count, "memory": io_proof.memory(self.system),
        }
        if self.why_not and self.fstype.startswith("fuse"):
            return io_proof.Proof("", f"{self.fstype} may answer from a cache of its own, and the store behind it was not asked: {self.why_not}")
        return io_proof.proof(writes, count, before, io_proof.counters(self.table, self.folder), said)

    def checkpoint(self) -> Tuple[Dict[str, Any], Optional[Dict[str, Any]]]:
        """(the write as the trainer sees it, when it was safe)."""
        began = time.monotonic()
        found = self.part(lambda: self.timed("checkpoint_write", self.folder))
        files = found.pop("files", {})
        if "error" in found:
            return found, {"error": f"nothing was written: {found['error']}"}
        if self.daemon is None:
            why = {"error": f"it cannot be seen when the store has it: {self.why_not}"} if self.fstype.startswith("fuse") else None
            return found, why
        daemon = self.daemon
        durable = self.part(lambda: self.durable(daemon, files, began))
        if "error" not in durable:
            found.update(proof="store", proof_text=durable["how"])
        return found, durable

    def durable(self, daemon: rclone_store.Daemon, files: rclone_store.Files, began: float) -> Dict[str, Any]:
        written = time.monotonic() - began
        here, size = self.inside(self.folder), sum(length for length, _ in files.values())
        seconds = written + rclone_store.until_durable(self.system, daemon, here, files, self.left())
        rclone_store.must_be_same(self.system, daemon, here, files, self.left())
        how = "the store listed all shards with their sizes, and gave back what was written (SHA-256)"
        return {"seconds": seconds, "bytes": size, "bytes_per_second": size / seconds, "how": how}
