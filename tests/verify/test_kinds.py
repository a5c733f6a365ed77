"""Kinds of steps: each can be run, says the names of its checks, and stands on the page."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from nodectl.verify.group.group_steps import GROUPS
from nodectl.verify.kinds import KINDS, check_names
from nodectl.verify.ledger import Terms
from nodectl.verify.node.fleet_checks import COMPARE
from nodectl.verify.node.node_checks import CHECKS
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import load_suite, shipped_texts
from nodectl.wire.event import Event
from nodectl.wire.outcome import Outcome
from tests.verify.fleet import FakeFleet, FakeNode, Seen, limits, node_of
from tests.verify.test_groups import gpu_nodes

PAGE = Path(__file__).parents[2] / "docs" / "verification.md"


def test_every_kind_has_exactly_one_that_runs_it() -> None:
    assert set(CHECKS) | set(GROUPS) == set(KINDS)
    assert not set(CHECKS) & set(GROUPS)
    assert set(COMPARE) <= set(CHECKS)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_kind_says_its_checks_and_needs_only_kinds(kind: str) -> None:
    assert KINDS[kind].checks
    assert KINDS[kind].after <= set(KINDS) - {kind}
    assert f"{kind}" in PAGE.read_text("utf-8").partition("## Node checks")[0], "docs/verification.md has a table of steps"


def test_every_kind_is_in_a_shipped_suite() -> None:
    used = {step.kind for name in shipped_texts() for step in load_suite(name).steps}
    assert used == set(KINDS)


def undeclared(events: list[Event]) -> set[tuple[str, str]]:
    """Step and name of checks that no kind says it makes: a waiver of them would be taken for a typing error."""
    found = [(str(event.data["step"]), str(event.data["name"])) for event in events if event.kind == "check"]
    return {
        (step, name) for step, name in found
        if step in KINDS and not any(fnmatchcase(name, one) for one in (step, *KINDS[step].checks)) and not any(fnmatchcase(name, one) for one in check_names())
    }


MOUNTS = {"file_mounts": {"/data": {"source": "s3://d", "mode": "MOUNT"}, "/ckpt": {"source": "s3://c", "mode": "MOUNT_CACHED"}}}
FLEETS = [
    [FakeNode("n1", variables=dict(MOUNTS)), FakeNode("n2", variables=dict(MOUNTS)), FakeNode("n3", variables=dict(MOUNTS))],
    [FakeNode("n1", speed=12e6), FakeNode("n2"), FakeNode("n3", corrupts=True)],
    [FakeNode("n1", gone_at=("workload", 1)), FakeNode("n2", dies_in_groups_of=3), FakeNode("n3"), FakeNode("n4", unreachable="no route")],
    [FakeNode("n1", answers={module: Outcome(failed=True, msg="no") for module in ("probe_clock", "probe_route", "probe_fio", "fabric_facts", "probe_phases")})],
    [FakeNode("n1", answers={"probe_limits": limits(64)}, variables={"network_floor": "1 Tb/s", "expected_gpus": 8, **MOUNTS}), FakeNode("n2", variables=dict(MOUNTS))],
]


@pytest.mark.parametrize("fleet", FLEETS, ids=["healthy", "slow and wrong", "gone", "silent", "demanding"])
def test_checks_are_called_as_their_kinds_say(fleet: list[FakeNode]) -> None:
    seen = Seen()
    verify([node_of(node) for node in fleet], load_suite("preflight"), FakeFleet(*fleet), seen, Terms())
    assert undeclared(seen.events) == set()


def test_checks_of_gpu_nodes_too() -> None:
    _, seen = gpu_nodes()
    assert undeclared(seen.events) == set()
