"""Channel and start over a line made of queues: the orders of events that a real sshd shows only now and then."""

from __future__ import annotations

import io
import queue
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from nodectl.transport.channel import BecomeTarget, Lost, Unreachable
from nodectl.transport.line import Chunk
from nodectl.transport.start import MAX_NOISE, Order, Started, order, start
from nodectl.transport.stream import AgentChannel, Reports
from nodectl.transport.watchdog import Watchdog
from nodectl.wire.frame import MAX_PAYLOAD, Decoder, encode
from nodectl.wire.secret import Secret
from nodectl.wire.step import Step


class ScriptedLine:
    """What the node says is put into ``said``; what it is told lands in ``told``. ``write`` does as it is told to."""

    def __init__(self, *said: Chunk) -> None:
        self.said: queue.Queue[Chunk] = queue.Queue()
        for chunk in said:
            self.said.put(chunk)
        self.told = b""
        self.ended: list[str] = []
        self.on_write: Callable[[bytes], None] = lambda data: None
        self.exit_status: int | None = 0

    def read(self, timeout: float) -> Chunk:
        try:
            return self.said.get(timeout=timeout)
        except queue.Empty:
            return Chunk()

    def write(self, data: bytes, timeout: float) -> None:
        self.on_write(data)
        self.told += data

    def status(self, timeout: float) -> int | None:
        return self.exit_status

    def hang_up(self) -> None:
        self.ended.append("hang_up")
        self.said.put(Chunk(ended=True))

    def discard(self) -> None:
        self.ended.append("discard")

    def abort(self) -> None:
        self.ended.append("abort")
        self.said.put(Chunk(ended=True))

    def frames(self) -> list[str]:
        return [frame.type for frame in Decoder().feed(self.told)]


class Heard:
    """Everything a channel reports."""

    def __init__(self) -> None:
        self.progress: list[tuple[str, str]] = []
        self.lost: list[tuple[str, str]] = []
        self.closed = 0

    def reports(self) -> Reports:
        def close() -> None:
            self.closed += 1

        return Reports(lambda host, text: self.progress.append((host, text)), lambda host, lost: self.lost.append((host, lost.reason)), close)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def line() -> ScriptedLine:
    return ScriptedLine()


@pytest.fixture
def channel(line: ScriptedLine, heard: Heard) -> Iterator[AgentChannel]:
    watchdog = Watchdog(silence=30.0)
    made = AgentChannel("n1", "n1", line, Started({"uid": 0}, Decoder(), []), 30.0, watchdog, heard.reports())
    yield made
    made.close()
    watchdog.stop()


def outcome(step_id: int, **more: object) -> bytes:
    return encode({"t": "outcome", "id": step_id, "outcome": more})


# -- the channel


def test_frames_cut_anywhere_are_put_together(line: ScriptedLine, channel: AgentChannel) -> None:
    first, second = channel.submit(Step(1, "a", {})), channel.submit(Step(2, "b", {}))
    data = outcome(1, msg="one") + outcome(2, msg="two")
    for index in range(len(data)):
        line.said.put(Chunk(data[index : index + 1]))
    assert (first.result(5).msg, second.result(5).msg) == ("one", "two")


def test_outcomes_may_come_in_any_order(line: ScriptedLine, channel: AgentChannel) -> None:
    sent = {number: channel.submit(Step(number, "a", {})) for number in (1, 2, 3)}
    line.said.put(Chunk(outcome(3, msg="3") + outcome(1, msg="1") + outcome(2, msg="2")))
    assert {number: pending.result(5).msg for number, pending in sent.items()} == {1: "1", 2: "2", 3: "3"}


def test_what_the_decoder_already_held_is_not_forgotten(line: ScriptedLine, heard: Heard) -> None:
    decoder = Decoder()
    frames = list(decoder.feed(encode({"t": "progress", "id": 1, "text": "early"}) + outcome(1)[:-1]))
    made = AgentChannel("n1", "n1", line, Started({}, decoder, frames), 30.0, Watchdog(30.0), heard.reports())
    pending = made.submit(Step(1, "a", {}))
    line.said.put(Chunk(outcome(1)[-1:]))
    assert pending.result(5).failed is False
    assert heard.progress == [("n1", "early")]
    made.close()


BROKEN = {
    "an outcome nobody waits for": (outcome(99), "an outcome for step 99, which is not on its way"),
    "an unknown frame": (encode({"t": "surprise"}), "unexpected frame 'surprise'"),
    "a second hello": (encode({"t": "hello"}), "unexpected frame 'hello'"),
    "no frame at all": (b"\xff" * 20, "not a frame"),
    "a header that is no JSON": (b"\x00\x00\x00\x02\x00\x00\x00\x00{}x", "header is not an object with a type"),
}


@pytest.mark.parametrize(("data", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_a_damaged_stream_is_lost_and_said_once(line: ScriptedLine, channel: AgentChannel, heard: Heard, data: bytes, words: str) -> None:
    pending = channel.submit(Step(7, "apt", {}))
    line.said.put(Chunk(data))
    with pytest.raises(Lost) as caught:
        pending.result(5)
    assert caught.value.reason.startswith("n1: connection lost during apt (step 7): the agent's stream is damaged: ")
    assert words in caught.value.reason
    assert [host for host, _ in heard.lost] == ["n1"]
    assert line.ended == ["abort"]
    assert not channel.alive


def test_an_outcome_of_the_wrong_shape_is_our_bug_and_heard(line: ScriptedLine, channel: AgentChannel) -> None:
    pending = channel.submit(Step(1, "a", {}))
    line.said.put(Chunk(encode({"t": "outcome", "id": 1, "outcome": {"colour": "red"}})))
    with pytest.raises(Lost, match="nodectl's reader failed, a bug: TypeError"):
        channel.submit(Step(2, "b", {})).result(5)
    with pytest.raises(Lost, match=r"a \(step 1\)"):
        pending.result(5)


def test_a_crash_of_one_step_leaves_the_channel(line: ScriptedLine, channel: AgentChannel) -> None:
    broken, fine = channel.submit(Step(1, "a", {})), channel.submit(Step(2, "b", {}))
    line.said.put(Chunk(encode({"t": "crash", "id": 1, "traceback": "Traceback\nKeyError: 'x'"}) + outcome(2)))
    with pytest.raises(Lost, match=r"the agent crashed during a \(step 1\), a bug in nodectl: KeyError: 'x'"):
        broken.result(5)
    assert fine.result(5).failed is False
    assert channel.alive


@pytest.mark.parametrize(
    ("error", "words"),
    [(TimeoutError(), "it took no byte from us for 30 s"), (BrokenPipeError("Broken pipe"), "the connection broke (Broken pipe)"), (EOFError(), "(EOFError)")],
)
def test_a_write_that_fails_loses_the_line(line: ScriptedLine, channel: AgentChannel, error: Exception, words: str) -> None:
    waiting = channel.submit(Step(1, "a", {}))

    def fail(_: bytes) -> None:
        raise error

    line.on_write = fail
    with pytest.raises(Lost) as caught:
        channel.submit(Step(2, "b", {}))
    assert words in caught.value.reason
    with pytest.raises(Lost, match=r"during a \(step 1\)"):
        waiting.result(5)


def test_a_cancel_goes_between_the_pieces_of_a_blob(line: ScriptedLine, channel: AgentChannel) -> None:
    running = channel.submit(Step(1, "a", {}))
    pieces, go = threading.Event(), threading.Event()

    def slow(data: bytes) -> None:
        if b'"blob"' in data[:60]:
            pieces.set()
            go.wait(5)

    line.on_write = slow
    content = io.BytesIO(b"x" * (2 * MAX_PAYLOAD + 1))
    sender = threading.Thread(target=lambda: channel.submit(Step(2, "b", {}, blobs={"c": "b1"}), {"c": content}))
    sender.start()
    assert pieces.wait(5)
    canceller = threading.Thread(target=running.cancel)
    canceller.start()
    time.sleep(0.05)
    go.set()
    canceller.join(5)
    sender.join(5)
    told = line.frames()
    assert sorted(told) == sorted(["step", "blob", "blob", "blob", "cancel", "step"])
    assert told[-1] == "step"
    running.future.set_result(None)  # type: ignore[arg-type]


def test_a_cancel_after_the_end_sends_nothing(line: ScriptedLine, channel: AgentChannel) -> None:
    pending = channel.submit(Step(1, "a", {}))
    line.said.put(Chunk(outcome(1)))
    pending.result(5)
    pending.cancel()
    assert line.frames() == ["step"]


def test_silence_is_counted_from_the_last_byte_of_standard_output(line: ScriptedLine, channel: AgentChannel) -> None:
    line.said.put(Chunk(b"", b"noise from a child"))
    pending = channel.submit(Step(1, "a", {}))
    channel.check(time.monotonic() + 29)
    assert channel.alive
    channel.check(time.monotonic() + 31)
    with pytest.raises(Lost, match="no byte from the agent for 30 s"):
        pending.result(5)


def test_a_report_that_is_held_up_is_not_the_silence_of_the_node(line: ScriptedLine) -> None:
    """Ctrl-S, or a pager that nobody scrolls: whoever prints waits, and the reader with it."""
    held, released = threading.Event(), threading.Event()

    def progress(host: str, text: str) -> None:
        held.set()
        assert released.wait(10)

    watchdog = Watchdog(silence=30.0)
    channel = AgentChannel("n1", "n1", line, Started({}, Decoder(), []), 30.0, watchdog, Reports(progress))
    line.said.put(Chunk(encode({"t": "progress", "id": 1, "text": "installing"})))
    assert held.wait(10)
    channel.check(time.monotonic() + 1000)
    assert channel.alive
    released.set()
    sent = channel.submit(Step(1, "a", {}))
    line.said.put(Chunk(outcome(1)))
    assert not sent.result(10).failed
    channel.check(time.monotonic() + 1000)
    assert not channel.alive
    watchdog.stop()


def test_closing_says_bye_and_is_no_loss(line: ScriptedLine, channel: AgentChannel, heard: Heard) -> None:
    pending = channel.submit(Step(1, "a", {}))
    channel.close()
    channel.close()
    with pytest.raises(Lost, match=r"during a \(step 1\): nodectl closed the channel"):
        pending.result(5)
    with pytest.raises(Lost, match="nodectl closed the channel"):
        channel.submit(Step(2, "b", {}))
    assert line.frames() == ["step", "bye"]
    assert line.ended == ["hang_up", "discard"]
    assert heard.lost == []
    assert heard.closed >= 1


def test_the_watchdog_knows_its_own_pauses(line: ScriptedLine) -> None:
    class Recorder:
        def __init__(self) -> None:
            self.calls: list[str] = []

        def check(self, now: float) -> None:
            self.calls.append("check")

        def excuse(self, seconds: float) -> None:
            self.calls.append("excuse")

    watched = Recorder()
    watchdog = Watchdog(silence=0.2)
    watchdog.watch(watched)
    end = time.monotonic() + 5
    while not watched.calls and time.monotonic() < end:
        time.sleep(0.01)
    watchdog.forget(watched)
    seen = len(watched.calls)
    time.sleep(0.2)
    watchdog.stop()
    assert seen
    assert len(watched.calls) <= seen + 1


# -- the start

ORDER = Order("python3", marker="abcdef0123456789")
HELLO = encode({"t": "hello", "uid": 0, "python": "3.11.2"})
PACKED = b"the agent"


def test_marker_and_hello_cut_anywhere() -> None:
    data = b"noise abcdef" + ORDER.sign + HELLO + outcome(1)
    for cut in range(1, len(data)):
        line = ScriptedLine(Chunk(data[:cut]), Chunk(data[cut:]))
        started = start(line, ORDER, PACKED, "n1", 5)
        assert started.facts == {"uid": 0, "python": "3.11.2"}
        assert line.told == PACKED
        more = [*started.frames, *started.decoder.feed(line.said.get_nowait().out if not line.said.empty() else b"")]
        assert [frame.type for frame in more] == ["outcome"]


def test_the_marker_as_it_stands_in_the_command_is_not_the_sign() -> None:
    """A shell that echoes what it runs must not be taken for the agent."""
    line = ScriptedLine(Chunk(f"+ {ORDER.command}\n".encode()), Chunk(ended=True))
    with pytest.raises(Unreachable, match="ended without starting the agent"):
        start(line, ORDER, PACKED, "n1", 5)
    assert line.told == b""


STARTS: dict[str, tuple[list[Chunk], int | None, str, str]] = {
    "not found, sh": ([Chunk(b"", b"sh: 1: python3: not found\n"), Chunk(ended=True)], 127, "python", "there is no interpreter 'python3' (sh: 1: python3: not found)"),
    "not found, tcsh": ([Chunk(b"", b"python3: Command not found.\n"), Chunk(ended=True)], 1, "python", "there is no interpreter"),
    "not executable": ([Chunk(b"", b"Permission denied"), Chunk(ended=True)], 126, "python", "Permission denied"),
    "ended, no status": ([Chunk(ended=True)], None, "closed", "exit status None"),
    "too much noise": ([Chunk(b"x" * (MAX_NOISE + 1))], 0, "protocol", "more than 64 KiB"),
    "ended after the marker": ([Chunk(ORDER.sign), Chunk(b"", b"MemoryError"), Chunk(ended=True)], 1, "closed", "ended before it said hello"),
    "garbage after the marker": ([Chunk(ORDER.sign + b"\xff" * 30)], 0, "protocol", "not a frame"),
    "something else first": ([Chunk(ORDER.sign + encode({"t": "beat"}))], 0, "protocol", "began with 'beat'"),
    "crash": ([Chunk(ORDER.sign + encode({"t": "crash", "traceback": "T"}))], 0, "protocol", "crashed while it started, a bug in nodectl"),
    "silence": ([], 0, "timeout", "did not start the agent in time"),
    "silence after the marker": ([Chunk(ORDER.sign)], 0, "timeout", "did not say hello in time"),
}


def test_an_end_without_a_word_names_what_may_be_behind_it() -> None:
    """/bin/true as interpreter, or a start file that says exit."""
    with pytest.raises(Unreachable) as caught:
        start(ScriptedLine(Chunk(ended=True)), ORDER, PACKED, "n1", 5)
    assert "is 'python3' a Python 3.8 or later" in caught.value.hint
    assert ".bashrc" in caught.value.hint


@pytest.mark.parametrize(("said", "status", "why", "words"), STARTS.values(), ids=STARTS.keys())
def test_starts_that_fail(said: list[Chunk], status: int | None, why: str, words: str) -> None:
    line = ScriptedLine(*said)
    line.exit_status = status
    with pytest.raises(Unreachable) as caught:
        start(line, ORDER, PACKED, "n1", 0.1 if "silence" in words or "in time" in words else 5)
    assert (caught.value.why, caught.value.reason[:4]) == (why, "n1: ")
    assert words in caught.value.reason


def test_a_line_that_breaks_while_the_sources_are_sent() -> None:
    line = ScriptedLine(Chunk(ORDER.sign))

    def fail(_: bytes) -> None:
        raise OSError("Socket is closed")

    line.on_write = fail
    with pytest.raises(Unreachable) as caught:
        start(line, ORDER, PACKED, "n1", 5)
    assert (caught.value.why, "Socket is closed" in caught.value.reason) == ("closed", True)


SUDO_WORDS = {
    "sudo: a password is required": "sudo needs a password",
    "sudo: a terminal is required to read the password": "sudo needs a password",
    "sudo: no password was provided": "sudo password rejected",
    "sudo: 1 incorrect password attempt": "sudo password rejected",
    "sudo: sorry, you must have a tty to run sudo": "sudo demands a terminal",
    "ops is not in the sudoers file.": "the account may not use sudo",
    "Sorry, user ops may not run sudo on n1.": "the account may not use sudo",
    "Sorry, user ops is not allowed to execute '/usr/bin/python3 -I' as root on n1.": "sudo does not let the account run Python as root",
    "sudo: unknown user: slurm": "there is no user root to become",
    "env: 'sudo': No such file or directory": "sudo is not installed",
    "sudo: unable to resolve host n1: timed out": "sudo did not start the agent as root: sudo: unable to resolve host n1",
    "": "it ended without a word",
}


@pytest.mark.parametrize(("words", "reason"), SUDO_WORDS.items())
def test_the_last_words_of_sudo(words: str, reason: str) -> None:
    line = ScriptedLine(Chunk(b"", words.encode()), Chunk(ended=True))
    line.exit_status = 1
    with pytest.raises(Unreachable) as caught:
        start(line, order("python3", BecomeTarget()), PACKED, "n1", 5)
    assert caught.value.why == "sudo"
    assert reason in caught.value.reason


def test_the_password_is_written_after_the_prompt_and_the_bundle_after_the_marker() -> None:
    wanted = order("python3", BecomeTarget(password=Secret("pass w\u00f6rd")))
    assert wanted.sudo
    line = ScriptedLine(Chunk(b"", b"lecture\n"), Chunk(b"", wanted.sudo.prompt.encode()))

    def answer(data: bytes) -> None:
        if data == "pass w\u00f6rd\n".encode():
            assert line.told == b""
            line.said.put(Chunk(wanted.sign + HELLO))

    line.on_write = answer
    assert start(line, wanted, PACKED, "n1", 5).facts["uid"] == 0
    assert line.told == "pass w\u00f6rd\n".encode() + PACKED


def test_sudo_that_floods_standard_error_is_refused() -> None:
    line = ScriptedLine(*[Chunk(b"", b"x" * 40_000)] * 2)
    with pytest.raises(Unreachable, match="more than 64 KiB"):
        start(line, order("python3", BecomeTarget()), PACKED, "n1", 5)
