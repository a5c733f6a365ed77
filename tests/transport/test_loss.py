"""Lines that break in the middle of a step: every wait ends, and the step is named."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nodectl.transport.channel import AgentCrash, Lost, Unreachable
from nodectl.transport.pool import Pool
from nodectl.wire.step import Step
from tests.transport.conftest import FAST
from tests.transport.sshd import Sshd, descendants

# Silence, the watchdog's tick, and what two busy cores may add.
BOUND = FAST.silence + FAST.silence / 4 + 5.0


def test_a_frozen_session_is_lost_within_the_bound_and_others_go_on(sshd: Callable[..., object], server: Sshd, pool: Pool) -> None:
    with sshd() as frozen:  # type: ignore[attr-defined]
        channel = pool.channel(frozen.target("n2"))
        healthy = pool.channel(server.target("n1"))
        pending = channel.submit(Step(4, "hang", {}))
        for pid in descendants(frozen.process.pid):
            os.kill(pid, signal.SIGSTOP)
        begin = time.monotonic()
        with pytest.raises(Lost) as caught:
            pending.result(BOUND)
        assert time.monotonic() - begin > FAST.silence - 0.5
        assert caught.value.reason == "n2: connection lost during hang (step 4): no byte from the agent for 2 s"
        assert "frozen, switched off" in caught.value.hint
        assert healthy.submit(Step(1, "echo", {})).result(5).failed is False
        with pytest.raises(Lost, match="n2: the line was lost before echo"):
            channel.submit(Step(5, "echo", {}))


def test_a_lost_host_stays_lost_until_reset(server: Sshd, pool: Pool) -> None:
    channel = pool.channel(server.target("n3"))
    with pytest.raises(Lost):
        channel.submit(Step(1, "die", {})).result(3)
    with pytest.raises(Lost, match="n3 was lost before: n3: the agent's process ended"):
        pool.channel(server.target("n3"))
    pool.reset("n3")
    assert pool.channel(server.target("n3")).submit(Step(1, "echo", {})).result(5).failed is False


BREAKS = {
    "die": ("the agent's process ended", "out of memory", Lost),
    "noise": ("the agent's stream is damaged: not a frame", "standard output", Lost),
    "crash": ("a bug in nodectl: ValueError: broken", "Traceback", AgentCrash),
}


@pytest.mark.parametrize(("module", "expected"), BREAKS.items(), ids=BREAKS.keys())
def test_every_pending_step_hears_how_the_agent_ended(server: Sshd, pool: Pool, module: str, expected: tuple[str, str, type[Lost]]) -> None:
    reason, hint, kind = expected
    channel = pool.channel(server.target())
    waiting = [channel.submit(Step(n, "hang", {})) for n in (1, 2)]
    waiting.append(channel.submit(Step(3, module, {})))
    for number, name in ((0, "hang (step 1)"), (1, "hang (step 2)"), (2, f"{module} (step 3)")):
        with pytest.raises(Lost) as caught:
            waiting[number].result(5)
        assert f"n1: connection lost during {name}: " in caught.value.reason
        assert reason in caught.value.reason
        assert hint in caught.value.hint
        assert type(caught.value) is kind


def test_sshd_killed_is_lost_at_once(sshd: Callable[..., object], pool: Pool) -> None:
    with sshd() as server:  # type: ignore[attr-defined]
        pending = pool.channel(server.target()).submit(Step(1, "hang", {}))
        for pid in server.sessions():
            os.kill(pid, signal.SIGKILL)
        begin = time.monotonic()
        with pytest.raises(Lost, match=r"during hang \(step 1\): the connection broke") as caught:
            pending.result(5)
        assert "out of memory" not in caught.value.hint
        assert time.monotonic() - begin < FAST.silence


def test_a_write_into_a_frozen_line_is_bounded(tmp_path: Path, sshd: Callable[..., object], pool: Pool) -> None:
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(200_000_000)  # more than window and socket buffers hold
    with sshd() as server:  # type: ignore[attr-defined]
        channel = pool.channel(server.target())
        for pid in server.sessions():
            os.kill(pid, signal.SIGSTOP)
        begin = time.monotonic()
        with pytest.raises(Lost), big.open("rb") as content:
            channel.submit(Step(1, "hash", {}, blobs={"content": "b"}), {"content": content})
        assert time.monotonic() - begin < 2 * BOUND


def test_close_is_bounded_when_nodes_are_frozen(sshd: Callable[..., object], packed: bytes) -> None:
    from nodectl.transport.channel import Limits

    pool = Pool(Limits(connect=20, start=20, silence=1.0), packed=packed)
    with sshd() as server:  # type: ignore[attr-defined]
        for name in ("a", "b", "c"):
            pool.channel(server.target(name))
        for pid in server.sessions():
            os.kill(pid, signal.SIGSTOP)
        begin = time.monotonic()
        pool.close()
        assert time.monotonic() - begin < 6.5
    with pytest.raises(Unreachable, match="the run is over"):
        pool.channel(server.target("a"))


def test_our_own_pause_is_not_counted_against_the_nodes(server: Sshd, pool: Pool) -> None:
    """Ctrl-Z and fg: the watchdog sees that it slept itself."""
    channel = pool.channel(server.target())
    channel.excuse(100.0)
    channel.check(time.monotonic() + FAST.silence + 50)
    assert channel.alive
    channel.check(time.monotonic() + FAST.silence + 200)
    assert not channel.alive
