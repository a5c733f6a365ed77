"""Nodes whose hardware is a recorded tree: the real probes read it, the real steps judge what they say. No node, no GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nodectl.agent.catalogue import module
from nodectl.agent.contract import Failed
from nodectl.agent.system import System
from nodectl.lab.hardware import write
from nodectl.verify.judging.measurement import Verdict
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import Suite, SuiteStep
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import validate
from tests.verify.fleet import FakeFleet, FakeNode, Seen, node_of

REAL = ("probe_pci", "probe_hca", "probe_gpu", "probe_nvme", "probe_kernel_log")
KINDS = ("pci", "hca", "gpu", "nvme")
HARDWARE = Suite("hardware", "", tuple(SuiteStep(kind, 30.0) for kind in KINDS))
# For what hangs: a test must not wait half a minute to see that the wait is bounded.
SHORT = Suite("short", "", tuple(SuiteStep(kind, 0.6) for kind in KINDS))


def real(name: str) -> Callable[[FakeNode, dict[str, Any]], Outcome]:
    """The probe itself, run here on the tree that its arguments name."""

    def answer(_node: FakeNode, args: dict[str, Any]) -> Outcome:
        code = module(name)
        values, problems = validate(code.SPEC, args)
        assert not problems, problems
        try:
            outcome: Outcome = code.act(System(), values, False)
        except Failed as failed:
            return Outcome(failed=True, msg=failed.msg)
        return outcome

    return answer


def recorded_node(name: str, folder: Path, roce: bool = False, **variables: Any) -> FakeNode:
    """``name`` is n1, n2 …; its machine is written below ``folder``."""
    root = folder / name
    write(root, int(name[1:]), roce)
    return FakeNode(name, answers={probe: real(probe) for probe in REAL}, variables={"hardware_root": str(root), **variables})


def judged(nodes: list[FakeNode], suite: Suite = HARDWARE) -> tuple[Mapping[str, Verdict], Seen]:
    seen = Seen()
    return verify([node_of(node) for node in nodes], suite, FakeFleet(*nodes), seen), seen
