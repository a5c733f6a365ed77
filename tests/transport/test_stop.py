"""A run that is stopped does not wait for nodes that do not answer: every login under way ends with it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from nodectl.transport.channel import Limits, Target, Unreachable
from nodectl.transport.pool import Pool
from tests.transport.test_reach import NO_CONFIG, listening

# Far longer than any of these tests may take: what ends sooner was ended by us.
PATIENT = Limits(connect=60.0, start=60.0, silence=60.0)
# A loaded machine is given some time; without the abort each of them takes a minute.
AT_ONCE = 10.0


@contextmanager
def silent() -> Iterator[int]:
    """Connects, and never greets."""
    with listening(lambda connection: None) as port:
        yield port


@contextmanager
def black_hole() -> Iterator[int]:
    """A port whose queue is full: the kernel drops what knocks, as a firewall does."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        knocking = [socket.socket() for _ in range(4)]
        for sock in knocking:
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
        time.sleep(0.1)
        yield port
        for sock in knocking:
            sock.close()


@contextmanager
def hanging_up() -> Iterator[int]:
    """Drops every handshake: the next try waits for its pause."""
    with listening(lambda connection: connection.close()) as port:
        yield port


def stopped(ask: Callable[[Pool], object]) -> Unreachable:
    """What a login says that was stopped half a second after its start."""
    pool = Pool(PATIENT, packed=b"")
    with ThreadPoolExecutor(1) as threads:
        login = threads.submit(ask, pool)
        time.sleep(0.5)
        assert not login.done()
        begin = time.monotonic()
        pool.close()
        with pytest.raises(Unreachable) as caught:
            login.result(AT_ONCE)
        assert time.monotonic() - begin < AT_ONCE
    return caught.value


@pytest.mark.parametrize("port", [silent, black_hole, hanging_up])
@pytest.mark.parametrize("fresh", [False, True])
def test_a_login_under_way_ends_with_the_run(port: Callable[[], Iterator[int]], fresh: bool) -> None:
    with port() as number:  # type: ignore[attr-defined]
        target = Target("n1", "127.0.0.1", number, "ops", options=NO_CONFIG)
        stopped(lambda pool: pool.fresh(target) if fresh else pool.channel(target))


def test_a_resolver_that_hangs_ends_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: released.wait(60) and [])
    try:
        assert stopped(lambda pool: pool.channel(Target("n1", "n1.invalid", 22, "ops", options=NO_CONFIG))).why == "closed"
    finally:
        released.set()


def test_nodes_that_queue_for_a_dead_door_end_with_the_run() -> None:
    pool = Pool(PATIENT, packed=b"")
    with silent() as port, ThreadPoolExecutor(20) as threads:
        logins = [threads.submit(pool.channel, Target(f"n{number}", "127.0.0.1", port, "ops", options=NO_CONFIG)) for number in range(20)]
        time.sleep(0.5)
        begin = time.monotonic()
        pool.close()
        for login in logins:
            with pytest.raises(Unreachable):
                login.result(AT_ONCE)
        assert time.monotonic() - begin < AT_ONCE


def test_nothing_is_opened_after_the_end() -> None:
    pool = Pool(PATIENT, packed=b"")
    pool.close()
    with silent() as port:
        target = Target("n1", "127.0.0.1", port, "ops", options=NO_CONFIG)
        for ask in (pool.channel, pool.fresh):
            with pytest.raises(Unreachable, match="the run is over"):
                ask(target)
