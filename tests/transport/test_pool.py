"""The pool under many threads, and its state over a run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from nodectl.transport.channel import BecomeTarget, Lost, Target, Unreachable
from nodectl.transport.pool import Pool
from nodectl.wire.step import Step
from tests.transport.conftest import FAST
from tests.transport.fake_agent import packed as pack_agent
from tests.transport.sshd import Sshd, free_port

HERE = Target("here", "localhost", connection="local")


def test_eight_threads_for_one_node_share_one_login(server: Sshd, pool: Pool) -> None:
    before = server.log.count("Accepted publickey")
    target = server.target("one")
    with ThreadPoolExecutor(8) as threads:
        channels = list(threads.map(lambda _: pool.channel(target), range(8)))
    assert len(set(map(id, channels))) == 1
    assert server.log.count("Accepted publickey") == before + 1


def test_threads_submit_to_one_channel_side_by_side(pool: Pool) -> None:
    channel = pool.channel(HERE)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda n: channel.submit(Step(n, "echo", {"n": n})).result(10).values["args"]["n"], range(100)))
    assert answers == list(range(100))


def test_a_slow_node_does_not_hold_up_another(server: Sshd, packed: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool(FAST, packed=packed)
    entered, go = threading.Event(), threading.Event()

    def slow(host: str) -> None:
        if host == "slow":
            entered.set()
            go.wait(10)

    monkeypatch.setattr(pool, "_hello", slow)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(pool.channel, replace(HERE, host="slow"))
        assert entered.wait(10)
        assert pool.channel(replace(HERE, host="quick")).alive
        go.set()
        assert waiting.result(10).alive
    pool.close()


@pytest.mark.parametrize("change", [{"user": "other"}, {"key_file": ""}, {"options": {"port": "9"}}, {"python": "/usr/bin/env"}])
def test_another_way_in_is_another_connection(change: dict[str, object]) -> None:
    from nodectl.transport.pool import _identity

    assert _identity(replace(Target("n1", "a", key_file="k"), **change)) != _identity(Target("n1", "a", key_file="k"))  # type: ignore[arg-type]


def test_an_unreachable_node_may_be_tried_again(server: Sshd, pool: Pool) -> None:
    with pytest.raises(Unreachable, match="connection refused"):
        pool.channel(replace(server.target("again"), port=free_port()))
    assert pool.channel(server.target("again")).alive


def test_a_fresh_login_that_is_lost_does_not_condemn_the_host(server: Sshd, pool: Pool) -> None:
    shared = pool.channel(server.target("proof"))
    fresh = pool.fresh(server.target("proof"))
    with pytest.raises(Lost):
        fresh.submit(Step(1, "die", {})).result(10)
    fresh.close()
    assert shared.submit(Step(1, "echo", {})).result(10).failed is False
    assert pool.channel(server.target("proof")) is shared


def test_a_host_is_lost_as_a_whole(server: Sshd, pool: Pool, tmp_path: Path, sshd: Callable[..., object]) -> None:
    """Both users' agents run over one connection: when it breaks, both are lost, and both are named."""
    first = pool.channel(HERE)
    with pytest.raises(Lost):
        first.submit(Step(1, "noise", {})).result(10)
    with pytest.raises(Lost, match="here was lost before"):
        pool.channel(HERE, BecomeTarget("nobody"))


def test_nothing_is_opened_after_close(pool: Pool) -> None:
    channel = pool.channel(HERE)
    pool.close()
    assert not channel.alive
    pool.reset("here")
    with pytest.raises(Unreachable, match="the run is over"):
        pool.channel(HERE)


def test_an_agent_with_a_syntax_error_shows_its_last_words() -> None:
    pool = Pool(FAST, packed=pack_agent("def main(:\n"))
    with pytest.raises(Unreachable) as caught:
        pool.channel(HERE)
    pool.close()
    assert caught.value.why == "closed"
    assert "SyntaxError" in caught.value.hint
    assert "nodectl:nodectl.agent.boot" in caught.value.hint


def test_no_thread_stays_behind(packed: bytes) -> None:
    before = {thread.name for thread in threading.enumerate()}
    pool = Pool(FAST, packed=packed)
    channel = pool.channel(HERE)
    pool.close()
    for thread in threading.enumerate():
        if thread.name.startswith("nodectl-here") or (thread.name == "nodectl-watchdog" and thread.name not in before):
            thread.join(3)
            assert not thread.is_alive(), thread.name
    assert not channel.alive


def test_a_module_that_comes_up_later_is_sent_then_and_once_whatever_thread_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an include does that is decided in the middle of a run; against the real agent."""
    pool = Pool(FAST)
    channel = pool.channel(HERE)
    kinds: list[str] = []
    send = channel._send

    def seen(head: dict[str, object], payload: bytes = b"") -> None:
        kinds.append(str(head["t"]))
        send(head, payload)

    monkeypatch.setattr(channel, "_send", seen)
    try:
        assert channel.submit(Step(1, "ping", {})).result(20).values == {"ping": "pong"}
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda n: channel.submit(Step(n, "stat", {"path": "/"})).result(20).failed, range(10, 42)))
        assert answers == [False] * 32
        assert "no module 'nowhere'" in channel.submit(Step(99, "nowhere", {})).result(20).msg
    finally:
        pool.close()
    assert kinds[:3] == ["sources", "step", "sources"]
    assert (kinds.count("sources"), kinds.count("step")) == (2, 34)
