"""The whole answer for one workload on what was measured: estimate, what-if, placement, and what would narrow it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from nodectl.advise import measured as measured_run
from nodectl.advise import tiers
from nodectl.advise.figure import Figure, swing
from nodectl.advise.measured import Measured
from nodectl.advise.model import Estimate, Places, estimate
from nodectl.advise.network import Network, nominal
from nodectl.advise.placement import Choice, place, places_of, too_small
from nodectl.advise.storage import Place
from nodectl.advise.workload import Workload
from nodectl.advise.workload_load import load_workload
from nodectl.diagnostics.model import Collector

# As many open questions as a person reads.
NARROW = 5
# A hundredth of the whole decides nothing.
WORTH = 0.01
# The shipped workload, and the network that `best` hopes for, by which a node without a workload of its own is told what its network costs.
REFERENCE = ("12b", "8 x 400 Gb/s InfiniBand")


@dataclass(frozen=True)
class Advice:
    """``networks`` and ``storage`` are the what-if: the estimate with one thing changed, by name. ``notes`` say what was not measured."""

    found: Estimate
    choices: tuple[Choice, ...]
    networks: tuple[tuple[str, Estimate], ...]
    storage: tuple[tuple[str, Estimate], ...]
    notes: tuple[str, ...]

    @property
    def narrow(self) -> list[Figure]:
        """What makes the range of the run wide, widest first: measure it, or say it in the workload."""
        return widest(self.found.run)


def advise(work: Workload, measured: Measured) -> Advice:
    """Raises ValueError where no place meets the workload's demands."""
    notes = []
    network, own = measured_run.network(measured, work.gpu), measured_run.places(measured)
    if network is None:
        network = tiers.networks(work.gpu)[0]
        notes.append(f"the run measured no network between nodes: {network.name} is assumed")
    if not own:
        notes.append("the run measured no storage: the tiers of the published study are assumed")
    elif not any(one.durable for one in own) and work.durable:
        notes.append("the run measured no durable storage, which the workload asks for: the tiers of the published study are assumed beside")
    candidates = own if any(one.durable for one in own) or (own and not work.durable) else [*own, *tiers.places()]
    choices = place(work, candidates)
    notes += too_small(work, candidates)
    found = estimate(work, network, places_of(choices))
    notes += [f"{why}: a step is {_behind(found):.1f} times what it would be over {_best(work).name}" for why in sorted(measured.below)]
    return Advice(found, tuple(choices), _networks(found), _storage(found, own), tuple(notes))


def _networks(found: Estimate) -> tuple[tuple[str, Estimate], ...]:
    others: Sequence[Network] = [found.network, *(one for one in tiers.networks(found.work.gpu) if one.name != found.network.name)]
    return tuple((one.name, estimate(found.work, one, found.places)) for one in others)


def _storage(found: Estimate, own: Sequence[Place]) -> tuple[tuple[str, Estimate], ...]:
    """Everything in one place, so that the places can be compared."""
    return tuple((one.name, estimate(found.work, found.network, Places(one, one, one))) for one in [*own, *tiers.places()] if not one.reads_only)


def widest(figure: Figure) -> list[Figure]:
    """The uncertain figures that move ``figure`` most."""
    swings = {leaf.name: (swing(figure, leaf), leaf) for leaf in figure.leaves() if not leaf.exact}
    found = sorted(swings.values(), key=lambda item: -item[0])
    return [leaf for moved, leaf in found if moved > WORTH * figure.value][:NARROW]


def _best(work: Workload) -> Network:
    """What `network_tier: best` hopes for."""
    return tiers.networks(work.gpu)[-1]


def _behind(found: Estimate) -> float:
    return found.step.value / estimate(found.work, _best(found.work), found.places).step.value


@cache  # a fleet of thousands asks for each node
def reference_slowdown(rate: float) -> float:
    """How many times longer a step of the reference takes over TCP at ``rate`` (B/s of a node), checkpoints on the fastest tier."""
    work = load_workload(REFERENCE[0], Collector())
    if work is None:
        raise ValueError(f"the shipped workload {REFERENCE[0]} cannot be read")
    disk = tiers.places()[0]
    return _behind(estimate(work, nominal("tcp", rate, "tcp", work.gpu), Places(disk, disk, disk)))


