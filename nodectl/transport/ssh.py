"""A login over SSH, hop by hop, with every host key verified and every wait bounded. The one door to fabric."""

from __future__ import annotations

import contextlib
import itertools
import logging
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fabric import Config, Connection
from paramiko import Channel, MissingHostKeyPolicy, PKey, SSHClient, SSHConfig, Transport
from paramiko.ssh_exception import ChannelException, IncompatiblePeer, SSHException

from nodectl.transport import dial
from nodectl.transport.channel import Unreachable
from nodectl.transport.credentials import Login
from nodectl.transport.dial import Over
from nodectl.transport.gate import Gates, NoAnswer
from nodectl.transport.known_hosts import HostKey, Refused
from nodectl.transport.line import Chunk
from nodectl.transport.route import Hop

# paramiko reports every failure to its logger too; it is said once, by us. A person who wants it adds a handler to this name.
LOG = "nodectl.paramiko"

# Drops by MaxStartups are random, so a few tries get through; a server that always hangs up is not asked for ever.
MAX_TRIES = 12

# Pauses between tries in seconds: from, at most. Random within, or forty controllers' threads would knock together again.
PAUSE = (0.1, 2.0)

# As much as paramiko's default packet carries, twice: fewer wake-ups.
PIECE = 65536

# The signature algorithms that an RSA key may be shown with; known_hosts calls the key ssh-rsa in all of them.
_RSA = ("rsa-sha2-512", "rsa-sha2-256", "ssh-rsa")


class SessionRefused(Exception):
    """The server does not open one more session on this connection (MaxSessions): use another one."""


class _Dropped(Exception):
    """The server hung up during the handshake; worth another try."""


class HostKeyPolicy(MissingHostKeyPolicy):
    """Takes the place of fabric's AutoAddPolicy. The client's own table stays empty, so every key comes here."""

    def __init__(self, hop: Hop, warn: Callable[[str], None]) -> None:
        self._hop = hop
        self._warn = warn

    def missing_host_key(self, client: SSHClient, hostname: str, key: PKey) -> None:
        hop = self._hop
        name, port = (hop.key_name, 22) if hop.key_name else (hop.address, hop.port)
        try:
            accepted = hop.known_hosts.verify(name, port, HostKey(key.get_name(), key.asbytes()))
        except Refused as error:
            raise Unreachable("host_key", f"{hop}: {error.reason}", error.hint) from None
        if accepted:
            self._warn(f"{hop}: {accepted}")


class Tunnel:
    """A channel through a hop, where paramiko wants a socket. Its ``close`` is quiet: the connection around it may be gone already,
    and paramiko closes from a thread of its own, which would print a traceback."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def send(self, data: bytes) -> int:
        return self._channel.send(data)

    def recv(self, size: int) -> bytes:
        return self._channel.recv(size)

    def settimeout(self, seconds: float | None) -> None:
        self._channel.settimeout(seconds)

    @property
    def _closed(self) -> bool:
        """paramiko asks its socket under this name."""
        return bool(self._channel.closed)

    def close(self) -> None:
        with contextlib.suppress(SSHException, EOFError, OSError):
            self._channel.close()


class Link:
    """One logged-in connection to a node, with those to its hops inside it. Sessions on it share its fate."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._connections: list[Connection] = []

    @property
    def alive(self) -> bool:
        return bool(self._connections) and bool(self._connections[-1].is_connected)

    @property
    def transport(self) -> Transport:
        """Of the last login."""
        transport: Transport = self._connections[-1].transport
        return transport

    def run(self, command: str, who: str, seconds: float) -> SshLine:
        """Start ``command`` in a new session. Raises SessionRefused, or Unreachable."""
        try:
            with self.cutoff(seconds):
                channel = self.transport.open_session(timeout=seconds)
                channel.exec_command(command)
        except ChannelException as error:
            raise SessionRefused(str(error.text)) from None
        except (SSHException, EOFError, OSError) as error:
            reason = f"{who}: the server did not start a command: {str(error) or type(error).__name__}"
            raise Unreachable("closed", reason, "may the account run commands (shell, ForceCommand)?") from None
        return SshLine(channel, self)

    def extend(self, sock: socket.socket) -> None:
        self._sockets.append(sock)

    def joined(self, connection: Connection) -> None:
        self._connections.append(connection)

    @contextlib.contextmanager
    def cutoff(self, seconds: float) -> Iterator[None]:
        """Not every wait inside paramiko has a limit; without a socket they all end."""
        timer = threading.Timer(max(0.0, seconds), self.abort)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def abort(self) -> None:
        """Everything on this connection ends now. Only the first socket is real; the others run inside it."""
        for sock in list(self._sockets):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.abort()
        for connection in reversed(self._connections):
            # A connection inside another one says goodbye through a line that is gone.
            with contextlib.suppress(SSHException, EOFError, OSError):
                connection.close()
        for sock in self._sockets:
            sock.close()


class _Bell(threading.Event):
    """Rung by both streams of a session. paramiko also tells when a stream ran empty; that must not silence the other one.

    Channel.fileno() exists for this, but loses wake-ups when both streams are busy: seen with 3 MB on each, data waited for ever.
    """

    def clear(self) -> None:
        """Only the reader clears: see ``answer``."""

    def answer(self) -> None:
        super().clear()


class SshLine:
    """One session of a Link, as a Line."""

    def __init__(self, channel: Channel, link: Link) -> None:
        self._channel = channel
        self._link = link
        self._bell = _Bell()
        channel.in_buffer.set_event(self._bell)
        channel.in_stderr_buffer.set_event(self._bell)

    def read(self, timeout: float) -> Chunk:
        """Both streams each time: a stream that nobody reads fills its window and stops the other (D03)."""
        self._bell.wait(timeout)
        self._bell.answer()
        channel = self._channel
        finished = bool(channel.eof_received or channel.closed)
        out = channel.recv(PIECE) if channel.recv_ready() else b""
        err = channel.recv_stderr(PIECE) if channel.recv_stderr_ready() else b""
        more = channel.recv_ready() or channel.recv_stderr_ready()
        if more or finished:
            self._bell.set()
        ended = finished and not (out or err or more)
        if ended and not channel.eof_received and not self._link.alive:
            # paramiko closes the sessions of a connection that broke; the process on the node said nothing.
            raise EOFError(str(self._link.transport.get_exception() or "") or "the SSH connection ended")
        return Chunk(out, err, ended)

    def write(self, data: bytes, timeout: float) -> None:
        self._channel.settimeout(timeout)
        self._channel.sendall(data)

    def status(self, timeout: float) -> int | None:
        # recv_exit_status waits without a limit; this is the event it waits for.
        self._channel.status_event.wait(timeout)
        return self._channel.exit_status if self._channel.exit_status >= 0 else None

    def hang_up(self) -> None:
        self._channel.shutdown_write()

    def discard(self) -> None:
        with contextlib.suppress(SSHException, EOFError, OSError):
            self._channel.close()

    def abort(self) -> None:
        self._link.abort()


class Dialer:
    """Makes one Link within ``seconds``, the time in our own queues not counted."""

    def __init__(self, hops: Sequence[Hop], gates: Gates, seconds: float, warn: Callable[[str], None], over: Over) -> None:
        self._hops = hops
        self._over = over
        self._gates = gates
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._warn = warn
        self._link = Link()

    @property
    def link(self) -> Link:
        """What ``dial`` will return; ``abort`` on it ends the login."""
        return self._link

    def dial(self) -> Link:
        """Raises Unreachable; nothing stays open then, whatever ended it."""
        with contextlib.ExitStack() as undo:
            undo.callback(self._link.close)
            for index, hop in enumerate(self._hops):
                self._pass(index, hop)
            undo.pop_all()
        return self._link

    def _pass(self, index: int, hop: Hop) -> None:
        try:
            self._reach(index, hop)
        except Unreachable as error:
            if hop is self._hops[-1]:
                path = f"; reached through {', '.join(map(str, self._hops[:-1]))}" if index else ""
                raise Unreachable(error.why, error.reason + path, error.hint) from None
            place = f"hop {index + 1} of {len(self._hops) - 1} on the way to {self._hops[-1]}"
            raise Unreachable("hop", f"{place}: {error.reason}", error.hint) from None

    def _reach(self, index: int, hop: Hop) -> None:
        """One login, tried again while the server hangs up during the handshake. The slot is free during a pause."""
        for attempt in itertools.count(1):
            queued = time.monotonic()
            try:
                with self._gates.at(hop.address, hop.port).slot():
                    self._deadline += time.monotonic() - queued
                    self._login(index, hop)
                    return
            except _Dropped as dropped:
                # The last try needs time for itself: half a second, a handshake on a loaded server.
                pause = min(random.uniform(PAUSE[0], min(PAUSE[1], PAUSE[0] * 2**attempt)), self._left() - 0.5)
                if attempt >= MAX_TRIES or pause <= 0:
                    raise Unreachable(
                        "banner",
                        f"{hop}: the server hung up {attempt} times during the handshake ({dropped})",
                        "does it drop logins (MaxStartups, PerSourcePenalties, fail2ban), or is it no SSH server?",
                    ) from None
                self._over.wait(pause)

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _login(self, index: int, hop: Hop) -> None:
        self._over.check(hop)
        sock = self._socket(index, hop)
        connection = self._connection(hop, sock)
        try:
            with self._link.cutoff(self._left()):
                connection.open()
        except Unreachable:
            _discard(connection, sock)
            raise
        except IncompatiblePeer as error:
            _discard(connection, sock)
            hint = "nodectl speaks what paramiko speaks: curve25519, ECDH and DH with SHA-2; AES; HMAC-SHA-2"
            raise Unreachable("protocol", f"{hop}: no common algorithms: {error}", hint) from None
        except (SSHException, EOFError, OSError) as error:
            greeted = bool(getattr(connection.client.get_transport(), "remote_version", ""))
            _discard(connection, sock)
            raise self._handshake_failed(hop, greeted, error) from None
        connection.transport.set_keepalive(hop.keepalive)
        self._link.joined(connection)

    def _handshake_failed(self, hop: Hop, greeted: bool, error: Exception) -> Exception:
        if self._left() <= 0.2:  # paramiko polls every 0.1 s, so its own limit ends a little before ours
            if greeted:
                return NoAnswer("timeout", f"{hop}: the handshake did not end within {self._seconds:g} s", "is the node overloaded?")
            hint = "is the node frozen or overloaded, or is this another service's port?"
            return NoAnswer("banner", f"{hop}: the port is open, but no SSH server greeted within {self._seconds:g} s", hint)
        text = str(error) or type(error).__name__
        if not greeted or isinstance(error, (EOFError, OSError)):
            return _Dropped(text)
        return Unreachable("protocol", f"{hop}: {text}")

    def _socket(self, index: int, hop: Hop) -> socket.socket | Tunnel:
        if index:
            return self._tunnel(hop)
        if not hop.proxy_command:
            return dial.tcp(hop, self._deadline, self._over, self._link.extend)
        sock = dial.proxied(hop)
        self._link.extend(sock)
        return sock

    def _tunnel(self, hop: Hop) -> Tunnel:
        """Through the hop before. It resolves the name, so that names of an inner network work."""
        before = self._hops[self._hops.index(hop) - 1]
        goal = f"{hop.address}:{hop.port}"
        try:
            with self._link.cutoff(self._left()):
                return Tunnel(self._link.transport.open_channel("direct-tcpip", (hop.address, hop.port), ("", 0), timeout=max(0.1, self._left())))
        except ChannelException as error:
            if error.code == 1:
                raise Unreachable("hop", f"{before} does not forward to {goal}: {error.text}", "AllowTcpForwarding in its sshd_config?") from None
            hint = "is sshd running there, on that port, and reachable from the hop?"
            raise Unreachable("refused", f"{hop}: {before} could not connect to {goal}: {error.text}", hint) from None
        except (SSHException, EOFError, OSError) as error:
            if self._left() <= 0.2:
                raise Unreachable("timeout", f"{hop}: {before} did not reach {goal} within {self._seconds:g} s", "is the node up?") from None
            raise Unreachable("hop", f"the line to {before} broke: {str(error) or type(error).__name__}") from None

    def _connection(self, hop: Hop, sock: socket.socket | Tunnel) -> Connection:
        """fabric's connection, with the parts replaced that would trust, guess or wait for ever."""
        left = max(0.1, self._left())
        kwargs: dict[str, Any] = {
            "sock": sock,
            "timeout": left,
            "banner_timeout": left,
            "auth_timeout": left,
            "channel_timeout": left,
            "transport_factory": _transport_factory(hop),
            "auth_strategy": Login(hop, self._deadline),
        }
        # An explicit, empty SSHConfig and lazy: fabric reads no file of its own; route.py has done so.
        config = Config(ssh_config=SSHConfig(), lazy=True)
        connection = Connection(hop.address, user=hop.user, port=hop.port, config=config, connect_kwargs=kwargs)
        connection.client.set_missing_host_key_policy(HostKeyPolicy(hop, self._warn))
        connection.client.set_log_channel(LOG)
        return connection


def quiet() -> None:
    """Without any handler Python prints paramiko's log lines on stderr."""
    logger = logging.getLogger(LOG)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def _transport_factory(hop: Hop) -> Callable[..., Transport]:
    """Asks first for a host key of a type that is known: a server with three keys then shows the right one."""
    name, port = (hop.key_name, 22) if hop.key_name else (hop.address, hop.port)
    known = [algorithm for kind in hop.known_hosts.types(name, port) for algorithm in (_RSA if kind == "ssh-rsa" else (kind,))]

    def make(sock: Any, **kwargs: Any) -> Transport:
        transport = Transport(sock, **kwargs)
        offered = transport.get_security_options()
        supported = list(offered.key_types)
        offered.key_types = [kind for kind in known if kind in supported] + [kind for kind in supported if kind not in known]
        return transport

    return make


def _discard(connection: Connection, sock: socket.socket | Tunnel) -> None:
    with contextlib.suppress(SSHException, EOFError, OSError):
        connection.client.close()
        sock.close()
