"""What a scheduler must know of a node, for the handoff: asked, never judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodectl.verify.answer import Answer, Garbled
from nodectl.verify.session import Session

# A few small files of /proc and /sys: a node that needs longer hangs.
DEADLINE = 20.0


def machine_of(session: Session, gpu_names: Sequence[str], sku: str) -> dict[str, Any]:
    """The ``machine`` of the node event; {"error": why} where the node said nothing that could be used. Raises Gone."""
    outcome = session.ask("probe_machine", {}, DEADLINE)
    if outcome.failed:
        return {"error": outcome.msg}
    said = Answer("probe_machine", outcome.values)
    try:
        counts = {key: int(said.number(key)) for key in ("cpus", "sockets", "cores_per_socket", "threads_per_core", "memory")}
        conf = [{"path": Answer("nccl_conf", file).text("path"), "text": Answer("nccl_conf", file).text("text")} for file in said.parts("nccl_conf")]
        return {
            "hostname": said.text("hostname"), **counts, "gpu_files": said.texts("gpu_files"), "gpu_model": gpu_names[0] if gpu_names else "", "sku": sku,
            "nccl_conf": conf,
        }
    except Garbled as garbled:
        return {"error": str(garbled)}
