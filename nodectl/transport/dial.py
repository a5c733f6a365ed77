"""A byte stream to an SSH server: TCP, or the user's ProxyCommand. No SSH yet."""

from __future__ import annotations

import contextlib
import queue
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from nodectl.transport.channel import Unreachable
from nodectl.transport.gate import NoAnswer
from nodectl.transport.route import Hop

# One row of socket.getaddrinfo.
Address = tuple[Any, ...]


# How often a wait that nothing can wake looks whether the run is over.
LOOK = 0.1


class Over:
    """The end of the run, as a login under way sees it: no new wait begins, and the one for a connection ends."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def come(self) -> None:
        self._event.set()

    def check(self, who: object) -> None:
        """Raises Unreachable."""
        if self._event.is_set():
            raise Unreachable("closed", f"{who}: the run is over, its connections are closed")

    def wait(self, seconds: float) -> None:
        self._event.wait(seconds)


def tcp(hop: Hop, deadline: float, over: Over, opened: Callable[[socket.socket], None]) -> socket.socket:
    """A connected socket before ``deadline`` (time.monotonic()). Raises Unreachable: dns, refused, timeout, closed.

    ``opened`` hears of each socket before it is connected: shutting it down ends the wait.
    """
    addresses = _resolve(hop, deadline, over)
    errors: list[OSError] = []
    for index, (family, kind, protocol, _, address) in enumerate(addresses):
        sock = socket.socket(family, kind, protocol)
        opened(sock)
        over.check(hop)
        # A dead first address must leave time for the others.
        sock.settimeout(max(0.1, (deadline - time.monotonic()) / (len(addresses) - index)))
        try:
            sock.connect(address)
        except OSError as error:
            sock.close()
            errors.append(error)
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
    over.check(hop)
    raise _not_connected(hop, errors)


def _not_connected(hop: Hop, errors: list[OSError]) -> Unreachable:
    worst = next((error for error in errors if not isinstance(error, TimeoutError)), errors[-1])
    if isinstance(worst, TimeoutError):
        return NoAnswer("timeout", f"{hop}: no answer in time", f"is the node up, and does a firewall let port {hop.port} through?")
    if isinstance(worst, ConnectionRefusedError):
        hint = f"the machine is up, but nothing listens on port {hop.port}: is sshd running, is the port right?"
        return Unreachable("refused", f"{hop}: connection refused", hint)
    return Unreachable("timeout", f"{hop}: {worst.strerror or worst}", "is the node up, and is there a route to it?")


def _resolve(hop: Hop, deadline: float, over: Over) -> list[Address]:
    """getaddrinfo knows no time limit, so it runs beside us; a resolver that never answers leaves one idle thread."""
    answer: queue.SimpleQueue[list[Address] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answer.put(list(socket.getaddrinfo(hop.address, hop.port, type=socket.SOCK_STREAM)))
        except OSError as error:
            answer.put(error)
        except UnicodeError:
            answer.put(OSError(0, "not a host name"))

    threading.Thread(target=ask, name="nodectl-resolve", daemon=True).start()
    while (found := _next(answer)) is None:
        over.check(hop)
        if time.monotonic() > deadline:
            raise NoAnswer("dns", f"{hop}: the name {hop.address} was not resolved in time", "does the resolver answer? set ansible_host to an address")
    if isinstance(found, OSError):
        raise Unreachable("dns", f"{hop}: the name {hop.address} does not resolve: {found.strerror}", "check the name, or set ansible_host") from None
    return found


def _next(answer: queue.SimpleQueue[list[Address] | OSError]) -> list[Address] | OSError | None:
    with contextlib.suppress(queue.Empty):
        return answer.get(timeout=LOOK)
    return None


class Proxied(socket.socket):
    """One end of a socket pair whose other end is the standard input and output of a ProxyCommand."""

    process: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        super().close()
        if self.process and self.process.poll() is None:
            with contextlib.suppress(OSError):
                self.process.terminate()


def proxied(hop: Hop) -> socket.socket:
    """Start the user's ProxyCommand as ssh does, by the shell, and speak to it."""
    ours, theirs = socket.socketpair()
    sock = Proxied(ours.family, ours.type, ours.proto, fileno=ours.detach())
    with theirs:
        # The command stands in the user's own ssh configuration or inventory, and is a shell command by definition.
        command = ["/bin/sh", "-c", f"exec {hop.proxy_command}"]
        sock.process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.DEVNULL)
    return sock
