"""What goes over one good line: hello, steps, blobs, large output, progress, other users, noise."""

from __future__ import annotations

import hashlib
import io
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from paramiko.buffered_pipe import BufferedPipe

from nodectl.transport.channel import Lost
from nodectl.transport.pool import Pool
from nodectl.transport.ssh import SshLine
from nodectl.wire.step import Step
from tests.transport.conftest import FAST
from tests.transport.sshd import Sshd


@pytest.fixture(scope="module")
def pool(packed: bytes) -> Iterator[Pool]:
    """One for all tests here: what goes over a good line leaves it good, so one login carries them all."""
    made = Pool(FAST, packed=packed)
    yield made
    made.close()


def test_hello_and_steps_in_order(server: Sshd, pool: Pool) -> None:
    channel = pool.channel(server.target())
    assert channel.facts["user"] == "fake"
    assert channel.facts["uid"] == os.getuid()
    sent = [channel.submit(Step(n, "echo", {"n": n, "text": "\u00e9\u2028 '\"\\"})) for n in range(20)]
    outcomes = [pending.result(5) for pending in sent]
    assert [outcome.values["args"] for outcome in outcomes] == [{"n": n, "text": "\u00e9\u2028 '\"\\"} for n in range(20)]


def test_one_channel_per_host_and_user_and_one_login_for_both(server: Sshd, pool: Pool) -> None:
    before = server.log.count("Accepted publickey")
    first = pool.channel(server.target("shared"))
    assert pool.channel(server.target("shared")) is first
    other = pool.channel(server.target("other"))
    assert other is not first
    assert server.log.count("Accepted publickey") == before + 2


def test_modules_are_imported_from_the_bundle_with_their_source_lines(server: Sshd, pool: Pool) -> None:
    outcome = pool.channel(server.target()).submit(Step(1, "import", {})).result(5)
    assert outcome.values["value"] == 42
    assert 'raise ValueError("shown with its source line")' in outcome.values["source"]


def test_large_output_on_both_streams_does_not_block(server: Sshd, pool: Pool) -> None:
    # Three times the SSH window of 2 MiB, on both.
    channel = pool.channel(server.target())
    assert len(channel.submit(Step(1, "flood", {"bytes": 6_000_000})).result(20).values["stdout"]) == 6_000_000
    assert channel.submit(Step(2, "echo", {})).result(5).values["args"] == {}


def test_a_stream_that_ran_empty_does_not_silence_the_other() -> None:
    """paramiko's own readiness (Channel.fileno) loses this wake-up now and then; the data then waits for ever."""
    out, err = BufferedPipe(), BufferedPipe()
    channel = SimpleNamespace(
        in_buffer=out, in_stderr_buffer=err, eof_received=False, closed=False,
        recv_ready=out.read_ready, recv=out.read, recv_stderr_ready=err.read_ready, recv_stderr=err.read,
    )  # fmt: skip
    line = SshLine(channel, None)  # type: ignore[arg-type]
    err.feed("e")
    out.feed("o")
    err.read(10)  # rings off
    begin = time.monotonic()
    assert line.read(5).out == b"o"
    out.feed("x" * 70_000)
    assert len(line.read(5).out) + len(line.read(5).out) == 70_000
    assert time.monotonic() - begin < 1
    assert line.read(0.01) == (b"", b"", False)


@pytest.mark.parametrize("size", [0, 1, 256 * 1024, 256 * 1024 + 1, 5_000_003])
def test_blobs_arrive_byte_for_byte(server: Sshd, pool: Pool, size: int) -> None:
    content = os.urandom(size)
    step = Step(1, "hash", {}, blobs={"content": f"{size}-1", "again": f"{size}-2"})
    outcome = pool.channel(server.target()).submit(step, {"content": io.BytesIO(content), "again": io.BytesIO(b"x" + content)}).result(20)
    assert outcome.values["content"] == [hashlib.sha256(content).hexdigest(), size]
    assert outcome.values["again"] == [hashlib.sha256(b"x" + content).hexdigest(), size + 1]


def test_a_blob_that_cannot_be_read_leaves_the_channel_usable(server: Sshd, pool: Pool) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError("disk error")

    channel = pool.channel(server.target())
    with pytest.raises(OSError, match="disk error"):
        channel.submit(Step(1, "hash", {}, blobs={"content": "broken"}), {"content": Broken()})
    assert channel.submit(Step(1, "echo", {})).result(5).failed is False


def test_progress_and_hello_are_told(server: Sshd, packed: bytes) -> None:
    told: list[tuple[str, str]] = []
    greeted: list[str] = []
    pool = Pool(FAST, hello=greeted.append, progress=lambda host, text: told.append((host, text)), packed=packed)
    pool.channel(server.target("n7")).submit(Step(1, "progress", {"text": "50 %"})).result(5)
    pool.close()
    assert told == [("n7", "50 %")]
    assert greeted == ["n7"]


def test_a_result_can_be_waited_for_with_a_limit_and_cancelled(server: Sshd, pool: Pool) -> None:
    pending = pool.channel(server.target()).submit(Step(1, "hang", {}))
    with pytest.raises(TimeoutError):
        pending.result(0.2)
    pending.cancel()
    assert pending.result(5).msg == "cancelled"


def test_the_same_step_id_twice_is_our_mistake(server: Sshd, pool: Pool) -> None:
    channel = pool.channel(server.target())
    pending = channel.submit(Step(1, "hang", {}))
    with pytest.raises(ValueError, match="step id 1 is already on its way"):
        channel.submit(Step(1, "hang", {}))
    pending.cancel()
    assert pending.result(5).msg == "cancelled"


def test_fresh_is_a_login_of_its_own_and_ends_alone(server: Sshd, pool: Pool) -> None:
    shared = pool.channel(server.target())
    before = server.log.count("Accepted publickey")
    fresh = pool.fresh(server.target())
    assert server.log.count("Accepted publickey") == before + 1
    assert fresh.facts["pid"] != shared.facts["pid"]
    fresh.close()
    assert not fresh.alive
    assert shared.submit(Step(1, "echo", {})).result(5).failed is False


def test_reset_and_close_end_the_agents(server: Sshd, packed: bytes) -> None:
    pool = Pool(FAST, packed=packed)
    first = pool.channel(server.target())
    pending = first.submit(Step(1, "hang", {}))
    pool.reset("n1")
    with pytest.raises(Lost, match=r"hang \(step 1\): nodectl closed the channel"):
        pending.result(1)
    second = pool.channel(server.target())
    assert second.facts["pid"] != first.facts["pid"]
    pool.close()
    pool.close()
    end = time.monotonic() + 3
    while any(Path(f"/proc/{channel.facts['pid']}").exists() for channel in (first, second)):
        assert time.monotonic() < end
        time.sleep(0.02)
