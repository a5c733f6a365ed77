"""What links count while a run uses them: only what came on top, only where it is used, and never a pass for what was not read."""

from __future__ import annotations

from typing import Any

import pytest

from nodectl.verify.judging.measurement import Verdict
from nodectl.verify.node.errors_checks import grown
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import Suite, SuiteStep
from nodectl.wire.outcome import Outcome
from tests.verify.fleet import FakeFleet, FakeNode, Seen, address, node_of
from tests.verify.node_answers import HCA

SUITE = Suite("errors", "", tuple(SuiteStep(kind, 20.0) for kind in ("pci", "hca", "route", "errors")))


def port(usable: bool = True, hw: dict[str, Any] | None = None, **counters: Any) -> dict[str, Any]:
    return {
        "device": "mlx5_0", "port": 1, "netdev": "ib0", "usable": usable, "reason": "" if usable else "front end", "rate": 400.0, "link_layer": "InfiniBand",
        "driver": "mlx5_core", "fw_ver": "28", "board_id": "MT", "mtu": 4092, "matching": [], "counters": counters, "hw_counters": hw or {},
    }


def answer(ports: list[dict[str, Any]], **interface: int) -> Outcome:
    return Outcome(values={**HCA, "ports": ports, "interfaces": {"host0": interface, "docker0": {"rx_errors": 5}}})


def run(*answers: Outcome, **variables: Any) -> tuple[Verdict, Seen]:
    left = list(answers)

    def probe(_node: FakeNode, _args: dict[str, Any]) -> Outcome:
        return left.pop(0) if len(left) > 1 else left[0]

    route = Outcome(values={"interface": "host0", "source": address("n1"), "mtu": 1500, "routes": []})
    node, other = FakeNode("n1", answers={"probe_hca": probe, "probe_route": route}, variables=variables), FakeNode("n2")
    seen = Seen()
    fleet = FakeFleet(node, other)
    return verify([node_of(one) for one in (node, other)], SUITE, fleet, seen)["n1"], seen


def names(seen: Seen) -> set[str]:
    return {str(event.data["name"]) for event in seen.of("check", "n1") if str(event.data["name"]).startswith("errors.")}


@pytest.mark.parametrize(("before", "after", "check", "verdict", "words"), [
    ({"symbol_error": 90}, {"symbol_error": 95}, "errors.symbol", "pass", "measured 5, expected at most 10"),
    ({"symbol_error": 0}, {"symbol_error": 60}, "errors.symbol", "fail", "mlx5_0 port 1: 60"),
    ({"symbol_error": 90}, {"symbol_error": 4}, "errors.symbol", "pass", "measured 4"),
    ({"link_downed": 2}, {"link_downed": 3}, "errors.link_down", "fail", "measured 1, expected at most 0"),
    ({"link_error_recovery": 2}, {"link_error_recovery": 2}, "errors.link_recovery", "pass", "measured 0"),
    ({"port_rcv_errors": 0}, {"port_rcv_errors": 11}, "errors.receive", "fail", "measured 11"),
])
def test_counters_of_a_port(before: dict[str, Any], after: dict[str, Any], check: str, verdict: str, words: str) -> None:
    _, seen = run(answer([port(**before)], rx_errors=1), answer([port(**after)], rx_errors=1))
    assert seen.check("n1", check).data["verdict"] == verdict
    assert words in seen.check("n1", check).data["reason"]
    assert (check in seen.reasons("n1")) == (verdict == "fail")


def test_retransmissions_of_roce() -> None:
    _, seen = run(answer([port(hw={"local_ack_timeout_err": 1, "rnr_nak_retry_err": 0})]), answer([port(hw={"local_ack_timeout_err": 500, "rnr_nak_retry_err": 2})]))
    assert "flow control (PFC, ECN)" in seen.check("n1", "errors.ack_timeout").data["reason"]
    assert seen.check("n1", "errors.rnr_retry").data["verdict"] == "fail"


@pytest.mark.parametrize(("before", "after", "verdict"), [
    ({"rx_errors": 1000}, {"rx_errors": 1010}, "pass"), ({"rx_errors": 0, "rx_crc_errors": 0}, {"rx_errors": 8, "rx_crc_errors": 8}, "fail"), ({"rx_errors": 5}, {"rx_errors": 2}, "pass"),
])
def test_frames_of_the_interface_to_the_peers(before: dict[str, int], after: dict[str, int], verdict: str) -> None:
    _, seen = run(answer([], **before), answer([], **after))
    assert seen.check("n1", "errors.interface").data["verdict"] == verdict


def front(**counters: int) -> dict[str, Any]:
    """A port of the front end: up, and without an address of the fabric."""
    return {**port(usable=False), "counters": counters, "link_layer": "Ethernet", "state": "ACTIVE", "phys_state": "LinkUp"}


def test_ports_that_no_job_uses_and_other_interfaces_do_not_count() -> None:
    verdict, seen = run(answer([front(link_downed=0)]), answer([front(link_downed=9)]))
    assert names(seen) == {"errors.interface"}
    assert verdict == "pass", seen.reasons("n1")


def test_with_standard_network_the_interface_is_still_looked_at() -> None:
    _, seen = run(answer([port(link_downed=0)], rx_errors=0), answer([port(link_downed=9)], rx_errors=99), network_tier="standard")
    assert names(seen) == {"errors.interface"}
    assert "measured 99" in seen.reasons("n1")


@pytest.mark.parametrize(("second", "words"), [
    (Outcome(failed=True, msg="no sysfs"), "no sysfs"), (Outcome(values={}), "probe_hca gave nothing for ports"),
    (Outcome(values={**HCA, "interfaces": {"host0": {"rx_errors": "many"}}}), "expected numbers by name"), (Outcome(values={**HCA, "interfaces": {"host0": 3}}), "expected numbers by name"),
])
def test_a_second_look_that_says_nothing_is_unknown(second: Outcome, words: str) -> None:
    verdict, seen = run(answer([], rx_errors=0), second)
    assert verdict == "unknown"
    assert words in seen.reasons("n1")


def test_a_first_look_that_failed_is_said_once() -> None:
    verdict, seen = run(Outcome(failed=True, msg="no sysfs"))
    assert (verdict, names(seen)) == ("unknown", set())


@pytest.mark.parametrize(("before", "after", "found"), [
    ({"a": 1.0}, {"a": 3.0}, {"a": 2.0}), ({"a": 3.0}, {"a": 1.0}, {"a": 1.0}), ({}, {"a": 1.0}, {}), ({"a": 1.0}, {}, {}),
])
def test_growth(before: dict[str, float], after: dict[str, float], found: dict[str, float]) -> None:
    assert grown(before, after) == found
