"""All connections of a run."""

from __future__ import annotations

import contextlib
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from nodectl.transport import shell
from nodectl.transport.bundle import Supply
from nodectl.transport.channel import BecomeTarget, Connections, Limits, Lost, Ran, Target, Unreachable
from nodectl.transport.dial import Over
from nodectl.transport.gate import Gates
from nodectl.transport.known_hosts import Refused
from nodectl.transport.local import LocalLine
from nodectl.transport.route import Router
from nodectl.transport.ssh import Dialer, Link, SessionRefused, SshLine, quiet
from nodectl.transport.start import order, start
from nodectl.transport.stream import AgentChannel, Reports
from nodectl.transport.watchdog import Watchdog

# All channels close side by side; a healthy agent is gone in milliseconds, one with work to kill in 3 s.
CLOSE_LIMIT = 6.0

Identity = tuple[str, ...]
# What was begun on a connection: an agent, or one command.
Begun = TypeVar("Begun")


def _silent(_: str) -> None:
    """For callers who do not want to hear it."""


def _silent_progress(_: str, __: str) -> None:
    """For callers who do not want to hear it."""


class _Node:
    """What is open to one inventory host. ``lock`` keeps two threads from connecting twice."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.links: dict[Identity, list[Link]] = {}
        self.channels: dict[tuple[Identity, str], AgentChannel] = {}
        self.lost: Lost | None = None


class Pool(Connections):
    """One SSH connection per node and login; on it one agent per user. Thread-safe; threads for different nodes never wait for each other.

    ``hello`` is called with a host's name when its agent spoke first, ``progress`` with (host, text) from running steps, ``warn`` with
    a sentence a person should read (a host key accepted on first contact). All are called from other threads and must be quick.
    ``packed`` replaces the agent, and is all that is sent then; tests use it.
    """

    def __init__(
        self,
        limits: Limits,
        known_hosts: Path | None = None,
        hello: Callable[[str], None] | None = None,
        progress: Callable[[str, str], None] | None = None,
        warn: Callable[[str], None] | None = None,
        packed: bytes | None = None,
    ) -> None:
        quiet()
        self._limits = limits
        self._router = Router(known_hosts)
        self._hello = hello or _silent
        self._warn = warn or _silent
        self._reports = Reports(progress or _silent_progress, self._note_lost)
        self._packed = packed
        self._supply: Supply | None = None
        self._gates = Gates()
        self._watchdog = Watchdog(limits.silence)
        self._lock = threading.Lock()
        self._nodes: dict[str, _Node] = {}
        self._fresh: list[AgentChannel] = []
        self._opening: list[Link] = []
        self._over = Over()
        self._closed = False
        self._all_closed = threading.Event()

    def channel(self, target: Target, become: BecomeTarget | None = None) -> AgentChannel:
        node = self._node(target.host)
        with node.lock:
            if node.lost:
                raise Lost(f"{target.host} was lost before: {node.lost.reason}", node.lost.hint)
            key = (_identity(target), " ".join([become.method, become.user, *become.flags]) if become else "")
            found = node.channels.get(key)
            if found is None or not found.alive:
                found = node.channels[key] = self._open(node, target, become)
                # ``close`` does not wait for a login that is under way; who comes after it must not leave an agent behind.
                if self._closed:
                    found.close()
                    self._refuse_after_close(target.host)
            return found

    def raw(self, target: Target, become: BecomeTarget | None, command: str, executable: str, seconds: float) -> Ran:
        node = self._node(target.host)
        given = shell.order(command, executable, become)
        with node.lock:
            line = self._on_link(node, target, lambda link: self._line(target, given.argv, link))
        return shell.run(line, given, target.host, seconds)

    def fresh(self, target: Target, become: BecomeTarget | None = None) -> AgentChannel:
        link = None if target.connection == "local" else self._dial(target)
        try:
            with self._abortable(link):
                opened = self._start(target, become, link, Reports(self._reports.progress, closed=link.close if link else lambda: None))
        except SessionRefused as error:
            raise _no_session(target.host, error) from None
        except Unreachable:
            if link:
                link.close()
            raise
        with self._lock:
            self._fresh = [channel for channel in self._fresh if channel.alive] + [opened]
        return opened

    def reset(self, host: str) -> None:
        with self._lock:
            node = self._nodes.get(host)
        if node:
            with node.lock:
                self._shut(node)
                node.lost = None

    def close(self) -> None:
        """Everything ends side by side, logins under way too; what does not end in time is dropped with its socket. Who calls it a
        second time waits for the first."""
        with self._lock:
            first, self._closed = not self._closed, True
            nodes, self._nodes = list(self._nodes.values()), {}
            fresh, self._fresh = self._fresh, []
            opening = list(self._opening)
        if not first:
            self._all_closed.wait(CLOSE_LIMIT)
            return
        self._over.come()
        for link in opening:
            link.abort()
        self._end_side_by_side([lambda node=node: self._shut(node) for node in nodes] + [channel.close for channel in fresh])
        for node in nodes:
            for link in _links(node):
                link.abort()
        self._watchdog.stop()
        self._all_closed.set()

    def _end_side_by_side(self, works: list[Callable[[], None]]) -> None:
        threads = [threading.Thread(target=work, name="nodectl-close", daemon=True) for work in works]
        for thread in threads:
            thread.start()
        end = time.monotonic() + CLOSE_LIMIT
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))

    # -- opening

    def _node(self, host: str) -> _Node:
        with self._lock:
            self._refuse_after_close(host)
            return self._nodes.setdefault(host, _Node())

    def _refuse_after_close(self, host: str) -> None:
        if self._closed:
            raise Unreachable("closed", f"{host}: the run is over, its connections are closed")

    def _open(self, node: _Node, target: Target, become: BecomeTarget | None) -> AgentChannel:
        return self._on_link(node, target, lambda link: self._start(target, become, link, self._reports))

    def _on_link(self, node: _Node, target: Target, begin: Callable[[Link | None], Begun]) -> Begun:
        """On a connection that is there already, where the server opens one more session on it; else on a new one."""
        if target.connection == "local":
            return begin(None)
        links = node.links.setdefault(_identity(target), [])
        for link in _living(links):
            try:
                return begin(link)
            except SessionRefused:
                continue
        links.append(self._dial(target))
        try:
            return begin(links[-1])
        except Unreachable as error:
            links.pop().close()
            raise error from None
        except SessionRefused as error:
            links.pop().close()
            raise _no_session(target.host, error) from None

    def _dial(self, target: Target) -> Link:
        try:
            dialer = Dialer(self._router.route(target), self._gates, self._limits.connect, self._warn, self._over)
            with self._abortable(dialer.link):
                return dialer.dial()
        except Refused as error:
            raise Unreachable("host_key", f"{target.host}: {error.reason}", error.hint) from None

    @contextlib.contextmanager
    def _abortable(self, link: Link | None) -> Iterator[None]:
        """``close`` ends what is done inside, where nothing else holds ``link`` yet."""
        if link is None:
            yield
            return
        with self._lock:
            self._opening.append(link)
        try:
            yield
        finally:
            with self._lock:
                self._opening.remove(link)

    def _start(self, target: Target, become: BecomeTarget | None, link: Link | None, reports: Reports) -> AgentChannel:
        begin = time.monotonic()
        order_ = order(target.python, become)
        line = self._line(target, order_.argv, link)
        try:
            core, missing = self._agent()
            started = start(line, order_, core, target.host, self._limits.start - (time.monotonic() - begin))
        except Unreachable:
            line.discard()
            raise
        self._hello(target.host)
        return AgentChannel(target.host, target.host, line, started, self._limits.silence, self._watchdog, reports, missing)

    def _line(self, target: Target, argv: list[str], link: Link | None) -> SshLine | LocalLine:
        return link.run(shlex.join(argv), target.host, self._limits.start) if link else LocalLine(argv)

    def _agent(self) -> tuple[bytes, Callable[[str], bytes]]:
        """What an agent starts from, and what it is sent later for a module. The sources are read when the first one starts."""
        if self._packed is not None:
            return self._packed, lambda _module: b""
        with self._lock:
            self._supply = self._supply or Supply()
            return self._supply.core, self._supply.follow()

    # -- ending

    def _note_lost(self, host: str, lost: Lost) -> None:
        with self._lock:
            node = self._nodes.get(host)
        if node:
            node.lost = lost

    def _shut(self, node: _Node) -> None:
        for channel in list(node.channels.values()):
            channel.close()
        for link in _links(node):
            link.close()
        node.channels.clear()
        node.links.clear()


def _living(links: list[Link]) -> list[Link]:
    """Drops those that broke."""
    for link in [link for link in links if not link.alive]:
        links.remove(link)
        link.close()
    return list(links)


def _no_session(host: str, error: SessionRefused) -> Unreachable:
    return Unreachable("closed", f"{host}: the server opens no session: {error}", "MaxSessions 0, or an account without a shell?")


def _links(node: _Node) -> Iterable[Link]:
    return [link for links in list(node.links.values()) for link in links]


def _identity(target: Target) -> Identity:
    """Everything that makes another login of it: a play may change the user or the port of a host."""
    options = [f"{key}={value}" for key, value in sorted(target.options.items())]
    return (target.connection, target.address, str(target.port), target.user, target.key_file, target.python, *options)
