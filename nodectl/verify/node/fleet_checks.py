"""What must be the same on all nodes: MTU, kind of fabric, number of GPUs. The odd one out is named. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping

from nodectl.verify.judging.judge import Expectation
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading, unknown
from nodectl.verify.members import Clock, NodeFacts
from nodectl.verify.node.fleet_traits import agreement, bridges, groups, packages
from nodectl.verify.suite_load import SuiteStep


def same(name: str, unit: str, method: str, values: Mapping[str, float | str], consequence: str) -> Reading:
    """One measurement per host; expected is what most hosts have. Without a majority every host fails: nobody can say who is right.

    ``consequence`` completes the reason: what a difference leads to. A single host has nothing to differ from.
    """
    reading = Reading()
    if len(values) < 2:
        return reading
    (wanted, most), *_ = Counter(values.values()).most_common(1)
    majority = most * 2 > len(values)
    shown, expected = (unit, wanted) if majority else ("text", "the same on all nodes")
    listed = groups(values)
    for host, value in values.items():
        measurement = Measurement(name, value, shown, (host,), method, detail=f"{listed}; {consequence}")
        reading.add(measurement, Expectation(name, "equals", expected, shown, "as most of the fleet has it", host))
    return reading


def duplicates(values: Mapping[str, str]) -> Reading:
    """An address of the fabric that two nodes share (docker0's is the same everywhere): it can lead to either of them."""
    reading = Reading()
    counts = Counter(values.values())
    for host, value in values.items():
        twins = [other for other, theirs in values.items() if theirs == value and other != host]
        measurement = Measurement(
            "network.address_unique", counts[value] == 1, "bool", (host,), "route to the peers", {"address": value},
            detail=f"{value} is also the address of {', '.join(twins)}",
        )
        reading.must_be_true(measurement, "an address leads to one node only")
    return reading


def clocks(found: Mapping[str, Clock], most: float) -> Reading:
    """How far each clock is from the middle of all clocks, the controller's being one more; ``most`` in seconds.

    One clock that is off, also the controller's, moves the middle of three or more clocks by nothing. A single node is held against the controller.
    """
    reading = Reading()
    offsets = [clock.offset for clock in found.values()]
    middle = statistics.median([0.0, *offsets]) if len(offsets) > 1 else 0.0
    for host, clock in found.items():
        if clock.uncertainty > most:
            slow = f"the quickest answer took {2 * clock.uncertainty:.1f} s: too long to tell the offset"
            reading.join([unknown("clock.offset", (host,), "probe_clock", slow)])
            continue
        value = abs(clock.offset - middle)
        measurement = Measurement("clock.offset", value, "s", (host,), "probe_clock", {"uncertainty_s": clock.uncertainty})
        reading.add(measurement, Expectation("clock.offset", "at_most", most, "s", "middle of all clocks; logs and file times are compared over nodes", host))
    return reading


def _routes(facts: Mapping[str, NodeFacts], step: SuiteStep) -> list[Reading]:
    mtus = {host: float(one.mtu) for host, one in facts.items() if one.mtu}
    return [
        same("network.mtu", "count", "route to the peers", mtus, "small messages pass and large ones hang"),
        duplicates({host: one.address for host, one in facts.items() if one.address}),
    ]


def _clocks(facts: Mapping[str, NodeFacts], step: SuiteStep) -> list[Reading]:
    return [clocks({host: one.clock for host, one in facts.items() if one.clock}, step.option("max_offset"))]


def _fabrics(facts: Mapping[str, NodeFacts], step: SuiteStep) -> list[Reading]:
    kinds: dict[str, float | str] = {host: one.fabric for host, one in facts.items() if one.fabric}
    return [same("fabric.same", "text", "fabric_facts", kinds, "NCCL hangs when nodes choose different networks")]


def _gpus(facts: Mapping[str, NodeFacts], step: SuiteStep) -> list[Reading]:
    counts = {host: float(one.gpus) for host, one in facts.items() if one.torch}
    return [same("torch.gpus", "count", "torch.cuda.device_count", counts, "a job of equal nodes cannot use them")]


def _traits(facts: Mapping[str, NodeFacts], step: SuiteStep) -> list[Reading]:
    return agreement({host: one.hardware.traits.get(step.kind, {}) for host, one in facts.items()})


def _hosts(facts: Mapping[str, NodeFacts], step: SuiteStep) -> list[Reading]:
    known = {host: one.hardware.packages for host, one in facts.items() if one.hardware.packages is not None}
    links = {host: one.hardware.bridges for host, one in facts.items()}
    return [*_traits(facts, step), packages(known), bridges(links, {host: one.hardware.nccl_interface for host, one in facts.items()})]


# By kind of step: what is held against each other once every node went through it. The nodes are those that still answer.
Compare = Callable[[Mapping[str, NodeFacts], SuiteStep], list[Reading]]
COMPARE: Mapping[str, Compare] = {
    "route": _routes, "clock": _clocks, "fabric": _fabrics, "torch": _gpus, "pci": _traits, "hca": _traits, "gpu": _traits, "nvme": _traits, "host": _hosts,
}
