"""The agent on this machine, the real one: the same loader and frames without SSH."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nodectl.transport.channel import Limits, Lost, Target, Unreachable
from nodectl.transport.line import Tail
from nodectl.transport.pool import Pool
from nodectl.wire.step import Step

HERE = Target("here", "localhost", connection="local", python=sys.executable)


@pytest.fixture
def local() -> Iterator[Pool]:
    pool = Pool(Limits(start=10, silence=10))
    yield pool
    pool.close()


def test_a_command(local: Pool) -> None:
    outcome = local.channel(HERE).submit(Step(1, "command", {"argv": ["sh", "-c", "echo out; echo err >&2; exit 3"]})).result(10)
    assert (outcome.values["rc"], outcome.values["stdout"], outcome.values["stderr"]) == (3, "out", "err")


def test_a_file_by_blob(local: Pool, tmp_path: Path) -> None:
    content = os.urandom(700_000)
    path = tmp_path / "file"
    step = Step(1, "copy", {"dest": str(path), "mode": "0600", "content_blob": "content"}, blobs={"content": "b1"})
    outcome = local.channel(HERE).submit(step, {"content": io.BytesIO(content)}).result(20)
    assert (outcome.failed, outcome.changed) == (False, True), outcome.msg
    assert path.read_bytes() == content


def test_large_output_is_bounded_and_the_channel_goes_on(local: Pool) -> None:
    channel = local.channel(HERE)
    outcome = channel.submit(Step(1, "shell", {"cmd": "head -c 6000000 /dev/zero | tr '\\0' a >&2; head -c 6000000 /dev/zero | tr '\\0' b"})).result(30)
    assert outcome.values["rc"] == 0
    assert len(outcome.values["stdout"]) <= 1024 * 1024 + 200
    assert channel.submit(Step(2, "command", {"argv": ["true"]})).result(10).failed is False


def test_closing_ends_what_runs(local: Pool) -> None:
    channel = local.channel(HERE)
    pending = channel.submit(Step(1, "command", {"argv": ["sleep", "300"]}))
    time.sleep(0.3)
    begin = time.monotonic()
    channel.close()
    # The agent says so itself, if it can; who does not hear it in time says Lost.
    with contextlib.suppress(Lost):
        assert pending.result(1).failed
    assert time.monotonic() - begin < 4
    assert not Path(f"/proc/{channel.facts['pid']}/exe").exists()


def test_no_interpreter(local: Pool) -> None:
    with pytest.raises(Unreachable) as caught:
        local.channel(replace(HERE, python="/no/such/python3"))
    assert caught.value.why == "python"
    assert "/no/such/python3" in caught.value.reason


def test_the_end_of_a_stream_is_kept_printable() -> None:
    tail = Tail(20)
    tail.add(b"x" * 50)
    tail.add(b"\xff\x1b[2Jbad\x00\r\n")
    assert tail.text() == "xxxxxxxxx\ufffd\ufffd[2Jbad\ufffd"
