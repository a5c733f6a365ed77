"""A TCP port of this node on which a rendezvous can listen: picked by the kernel, tested on the wildcard and on the address."""

from __future__ import annotations

import socket

from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

# The kernel seldom offers a port that the address then refuses; five tries cover a race with other jobs of the node.
TRIES = 5

SPEC = Spec(
    summary="Pick a free TCP port on an address of this node",
    params={"address": Param("str", "IPv4 or IPv6 address that peers will connect to", required=True)},
    returns={"port": "The port; free a moment ago, so whoever uses it must be ready to ask again"},
    example="probe_free_port: {address: 10.0.0.1}",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    """Raises Failed when the address is not this node's."""
    reason = ""
    for _ in range(TRIES):
        port = _offered()
        reason = _refused(args["address"], port)
        if not reason:
            return Outcome(values={"port": port})
    raise Failed(f"no rendezvous can listen on {args['address']}: {reason}")


def _offered() -> int:
    """torch's store listens on the wildcard, both families where the kernel has IPv6."""
    family = socket.AF_INET6 if socket.has_ipv6 and _has_ipv6() else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.bind(("", 0))
        return int(server.getsockname()[1])


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as server:
            server.bind(("::", 0))
            return True
    except OSError:
        return False


def _refused(address: str, port: int) -> str:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as server:
            server.bind((address, port))
            server.listen(1)
            return ""
    except OSError as error:
        return error.strerror or str(error)
