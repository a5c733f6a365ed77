"""One RDMA measurement between two nodes: a server on one, a client on the other, both with a deadline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodectl.verify.answer import Answer, Garbled
from nodectl.verify.group.gang import PORT_DEADLINE
from nodectl.verify.group.rdma_checks import WRITE_BW, Rail
from nodectl.verify.parse.perftest import Perftest, perftest
from nodectl.verify.session import Gone, Session

# Once the client has ended, the server has nothing to wait for: both ends print their table at the same moment.
SERVER_ENDS = 10.0
# Bytes of a message whose latency is measured.
SMALLEST = 2


@dataclass(frozen=True)
class End:
    """One node's end: where its peers reach it, and its rail."""

    session: Session
    address: str
    rail: Rail


@dataclass(frozen=True)
class Load:
    size: int
    iterations: int
    queue_pairs: int


@dataclass(frozen=True)
class Result:
    """``gone``: nodes lost on the way. ``version`` of perftest on the client."""

    figure: Perftest
    version: str = ""
    gone: Mapping[str, Gone] | None = None


def measure(tool: str, client: End, server: End, load: Load, deadline: float) -> Result:
    """The client writes into the server's memory. Seconds: ``deadline``, plus what the agents need to end what hangs."""
    try:
        port = _port(server)
    except Gone as gone:
        return Result(Perftest(None, f"{server.session.host} was lost"), gone={server.session.host: gone})
    except Garbled as garbled:
        return Result(Perftest(None, f"{server.session.host}: {garbled}"))
    try:
        waiting = server.session.send("probe_perftest", _order(tool, server, "", port, load, deadline), deadline)
    except Gone as gone:
        return Result(Perftest(None, f"{server.session.host} was lost"), gone={server.session.host: gone})
    lost: dict[str, Gone] = {}
    said: Mapping[str, Any] = {}
    try:
        outcome = client.session.ask("probe_perftest", _order(tool, client, server.address, port, load, deadline), deadline)
        said = {"rc": 1, "stderr": outcome.msg} if outcome.failed else outcome.values
    except Gone as gone:
        lost[client.session.host] = gone
    figure = perftest(tool, said) if said else Perftest(None, f"{client.session.host} was lost")
    if figure.value is None:
        waiting.cancel()
    try:
        other = server.session.wait(waiting, min(deadline, SERVER_ENDS))
        figure = _of_both(figure, server, tool, {"rc": 1, "stderr": other.msg} if other.failed else other.values)
    except Gone as gone:
        lost[server.session.host] = gone
    return Result(figure, str(said.get("version", "")), lost or None)


def _of_both(figure: Perftest, server: End, tool: str, said: Mapping[str, Any]) -> Perftest:
    """The client's figure. Where it has none, and the server's end says why by itself, that is part of the reason."""
    if figure.value is not None:
        return figure
    theirs = perftest(tool, said)
    known = said.get("installed") is False or (theirs.error and ":" in theirs.error)
    return Perftest(None, f"{figure.error}; {server.session.host}: {theirs.error}" if known else figure.error)


def _port(server: End) -> int:
    """Raises Gone and Garbled."""
    outcome = server.session.ask("probe_free_port", {"address": server.address}, PORT_DEADLINE)
    if outcome.failed:
        raise Garbled(outcome.msg)
    return int(Answer("probe_free_port", outcome.values).number("port", 1))


def _order(tool: str, end: End, peer: str, port: int, load: Load, deadline: float) -> dict[str, Any]:
    rail = end.rail
    return {
        "tool": tool, "device": rail.device, "ib_port": rail.port, "gid_index": rail.gid_index, "connection": rail.connection, "peer": peer, "tcp_port": port,
        "size": load.size if tool == WRITE_BW else SMALLEST, "iterations": load.iterations, "queue_pairs": load.queue_pairs, "timeout": deadline,
    }
