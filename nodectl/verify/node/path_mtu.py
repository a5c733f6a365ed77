"""Do packets of the full MTU get through to the peers? A switch port with a smaller MTU drops them without a word; small messages pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodectl.verify.answer import Answer
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading, unknown
from nodectl.verify.members import NodeFacts
from nodectl.verify.session import Session

# Each node asks three others: one whose own port is wrong fails with all of them, its peers only with it.
PEERS = 3
_METHOD = "packets that must not be fragmented"
METRIC = "network.path_mtu"


def path_mtu(session: Session, deadline: float, facts: NodeFacts, routes: Sequence[Mapping[str, Any]]) -> Reading:
    """One measurement: does a full packet come back from any of the peers that answer a small one?"""
    # Packets cost time only where they are lost: three tries of small and of full size with each peer, and the rest of the deadline for everything else.
    reached = [str(route.get("address")) for route in routes if route.get("interface") and route.get("address")]
    peers = _spread(reached)
    if not peers or not facts.mtu:
        return Reading()
    order = {"peers": peers, "mtu": facts.mtu, "timeout": deadline / (8 * PEERS)}
    outcome = session.ask("probe_path_mtu", order, deadline, root=True)
    if outcome.failed:
        return unknown(METRIC, (session.host,), _METHOD, outcome.msg)
    found = Answer("probe_path_mtu", outcome.values).parts("peers")
    answering = [one for one in found if one.get("small") is True]
    if not answering:
        why = "; ".join(f"{one.get('address')}: {one.get('error') or 'no answer to a small packet'}" for one in found)
        return unknown(METRIC, (session.host,), _METHOD, f"{why}: ICMP is blocked, or the network is down")
    lost = [str(one.get("address")) for one in answering if one.get("full") is not True]
    conditions = {"mtu": facts.mtu, "peers": len(answering), "way": ", ".join(sorted({str(one.get("way")) for one in answering}))}
    detail = f"packets of {facts.mtu} bytes do not get to {', '.join(lost)} and back, small ones do"
    reading = Reading()
    reading.must_be_true(
        Measurement(METRIC, len(lost) < len(answering), "bool", (session.host,), _METHOD, conditions, detail if lost else "", detail=detail),
        f"packets of {facts.mtu} bytes, the MTU of {facts.interface}, get to peers and back",
    )
    return reading


def _spread(addresses: Sequence[str]) -> list[str]:
    """The first, the middle and the last."""
    if len(addresses) <= PEERS:
        return list(addresses)
    return [addresses[0], addresses[len(addresses) // 2], addresses[-1]]
