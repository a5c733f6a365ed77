"""Nodes that cannot be reached: each cause has its own name, sentence and advice, and each wait its bound."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodectl.transport.channel import Limits, Target, Unreachable
from nodectl.transport.dial import Over
from nodectl.transport.gate import Gate, Gates, NoAnswer
from nodectl.transport.pool import Pool
from nodectl.transport.route import Router
from nodectl.transport.ssh import Dialer, Link
from nodectl.wire.step import Step
from tests.transport.sshd import Sshd, free_port

NO_CONFIG = {"configfile": "/dev/null"}


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port that accepts, and then does what ``answer`` says; it keeps what it accepted open."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        accepted: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                accepted.append(connection)
                answer(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        for connection in accepted:
            connection.close()


def unreachable(pool: Pool, target: Target) -> Unreachable:
    with pytest.raises(Unreachable) as caught:
        pool.channel(target)
    return caught.value


def test_refused(pool: Pool) -> None:
    port = free_port()
    begin = time.monotonic()
    error = unreachable(pool, Target("n1", "127.0.0.1", port, "ops", options=NO_CONFIG))
    assert time.monotonic() - begin < 5  # at once, and not at the end of Limits.connect
    assert error.why == "refused"
    assert error.reason == f"n1 (ops@127.0.0.1:{port}): connection refused"
    assert f"nothing listens on port {port}" in error.hint


def test_dns(pool: Pool) -> None:
    error = unreachable(pool, Target("n1", "no-such-host.invalid", 22, "ops", options=NO_CONFIG))
    assert error.why == "dns"
    assert "the name no-such-host.invalid does not resolve" in error.reason


def test_a_resolver_that_never_answers_is_bounded(packed: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object, **__: object) -> list[object]:
        time.sleep(2)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    pool = Pool(Limits(connect=0.3), packed=packed)
    begin = time.monotonic()
    error = unreachable(pool, Target("n1", "slow.example", 22, "ops", options=NO_CONFIG))
    assert (error.why, "not resolved in time" in error.reason) == ("dns", True)
    assert time.monotonic() - begin < 1.9
    pool.close()


def test_a_port_that_accepts_and_says_nothing_is_bounded(packed: bytes) -> None:
    pool = Pool(Limits(connect=0.5), packed=packed)
    with listening(lambda connection: None) as port:
        begin = time.monotonic()
        error = unreachable(pool, Target("n1", "127.0.0.1", port, "ops", options=NO_CONFIG))
        assert time.monotonic() - begin < 5
    assert error.why == "banner"
    assert "no SSH server greeted within 0.5 s" in error.reason
    pool.close()


def test_a_server_that_greets_and_freezes_is_bounded(packed: bytes) -> None:
    pool = Pool(Limits(connect=0.5), packed=packed)
    with listening(lambda connection: connection.sendall(b"SSH-2.0-frozen\r\n")) as port:
        begin = time.monotonic()
        error = unreachable(pool, Target("n1", "127.0.0.1", port, "ops", options=NO_CONFIG))
        assert time.monotonic() - begin < 5
    assert (error.why, "handshake did not end within 0.5 s" in error.reason) == ("timeout", True)
    pool.close()


def test_a_port_that_always_hangs_up_fails_within_the_bound_and_says_how_often(packed: bytes) -> None:
    pool = Pool(Limits(connect=1.5), packed=packed)
    with listening(lambda connection: connection.close()) as port:
        begin = time.monotonic()
        error = unreachable(pool, Target("n1", "127.0.0.1", port, "ops", options=NO_CONFIG))
        assert time.monotonic() - begin < 5
    assert error.why == "banner"
    assert "the server hung up" in error.reason
    assert "MaxStartups" in error.hint
    pool.close()


def test_another_service_on_the_port(packed: bytes) -> None:
    def http(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 200)
        connection.close()

    pool = Pool(Limits(connect=1.0), packed=packed)
    with listening(http) as port:
        assert unreachable(pool, Target("n1", "127.0.0.1", port, "ops", options=NO_CONFIG)).why == "banner"
    pool.close()


def test_forty_logins_on_a_server_that_drops_them(sshd: Callable[..., object]) -> None:
    """D04: stock clients lose 35 of 40 here. Logins only; what comes after them is the same for one and for forty."""
    gates = Gates()
    with sshd("MaxStartups 5:100:5") as server:  # type: ignore[attr-defined]

        def login(number: int) -> Link:
            return Dialer(Router().route(server.target(f"n{number}")), gates, 20.0, print, Over()).dial()

        with ThreadPoolExecutor(40) as threads:
            links = list(threads.map(login, range(40)))
        assert [link.alive for link in links] == [True] * 40
        for link in links:
            link.close()


def test_those_who_queue_at_a_dead_door_hear_of_it() -> None:
    gate = Gate(slots=1)
    inside = threading.Event()

    def first() -> None:
        with gate.slot():
            inside.set()
            time.sleep(0.2)
            raise NoAnswer("timeout", "hop: no answer in time")

    def second() -> None:
        with gate.slot():
            raise AssertionError("went in")

    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(first)
        inside.wait(1)
        two = threads.submit(second)
        assert isinstance(one.exception(2), NoAnswer)
        assert str(two.exception(2)) == "hop: no answer in time"
    with gate.slot():
        pass  # whoever comes later tries anew


def test_a_proxy_command_is_followed(server: Sshd, pool: Pool, tmp_path: Path) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(
        "import os, socket, sys, threading\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "def up():\n"
        "    while data := os.read(0, 65536): s.sendall(data)\n"
        "threading.Thread(target=up, daemon=True).start()\n"
        "while data := s.recv(65536): os.write(1, data)\n"
    )
    target = server.target("n9", proxycommand=f"python3 {relay} %h %p")
    assert pool.channel(target).submit(Step(1, "echo", {})).result(5).failed is False
