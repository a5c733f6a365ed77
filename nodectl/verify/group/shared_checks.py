"""Who does not see what others have written into a mount that all share, and whose writing nobody sees? Pure.

A name that some node sees has reached the store: whoever misses it shows an old listing. One that nobody else sees is its writer's fault; where
only one node looked nobody can say which end it is, and both fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nodectl.verify.group.network_checks import MOST_NAMED
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading, unknown

METHOD = "small files written by some nodes, looked for by the others"


@dataclass
class Look:
    """What came of one mount. ``writers`` have written; ``missing`` are, by host that looked, the writers whose file it did not see;
    ``errors`` are hosts that could not look, with the reason."""

    path: str
    within: float
    writers: Sequence[str]
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)


def shared_reading(look: Look) -> Reading:
    """One measurement per host that looked, or that could not."""
    reading, name = Reading(), f"mount.shared:{look.path}"
    unseen = {writer for writer in look.writers if _readers(look, writer) and not _sees(look, writer)}
    for host in look.missing:
        text = _trouble(look, host, unseen)
        conditions = {"path": look.path, "within_s": look.within, "writers": list(look.writers)}
        measured = Measurement(name, not text, "bool", (host,), METHOD, conditions, detail=text)
        reading.must_be_true(measured, "what other nodes write appears here, and what this node writes appears there")
    return reading.join(unknown(name, (host,), METHOD, why) for host, why in look.errors.items())


def _readers(look: Look, writer: str) -> list[str]:
    return [host for host in look.missing if host != writer]


def _sees(look: Look, writer: str) -> list[str]:
    return [host for host in _readers(look, writer) if writer not in look.missing[host]]


def _trouble(look: Look, host: str, unseen: set[str]) -> str:
    """ "" for a host with nothing against it."""
    return "; ".join(text for text in (_old(look, host), _unshown(look, host, unseen), _doubtful(look, host, unseen)) if text)


def _old(look: Look, host: str) -> str:
    """Others see what it does not."""
    missed = [writer for writer in look.missing[host] if _sees(look, writer)]
    if not missed:
        return ""
    return (
        f"{look.path} does not show here what {_named(missed)} wrote {look.within:.0f} s ago, and {_named(_sees(look, missed[0]))} sees it: this mount "
        "goes on showing an old listing (names are cached too long, or its daemon lost the store); restart its unit"
    )


def _unshown(look: Look, host: str, unseen: set[str]) -> str:
    """Nobody sees what it wrote."""
    if host not in unseen:
        return ""
    looked = _named(_readers(look, host))
    return f"what it wrote into {look.path} appeared nowhere within {look.within:.0f} s ({looked} looked): it stays in the cache of this node"


def _doubtful(look: Look, host: str, unseen: set[str]) -> str:
    """It was the only one to look."""
    missed = [writer for writer in look.missing[host] if writer in unseen and len(_readers(look, writer)) == 1]
    if not missed:
        return ""
    return f"{look.path} does not show here what {_named(missed)} wrote, and no third node looked: this mount shows an old listing, or that was never uploaded"


def _named(hosts: Sequence[str]) -> str:
    more = len(hosts) - MOST_NAMED
    return ", ".join(hosts[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
