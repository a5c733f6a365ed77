"""The channel to one agent over a line: frames out, frames in, and the truth about a line that broke."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from nodectl.transport.channel import AgentCrash, Lost
from nodectl.transport.line import Line, Tail
from nodectl.transport.start import Started
from nodectl.transport.watchdog import Watchdog
from nodectl.wire.frame import MAX_PAYLOAD, BadFrame, Frame, encode
from nodectl.wire.outcome import Outcome, outcome_from_json
from nodectl.wire.step import Step

# How long one read waits: only sets how soon the reader sees that it shall end; data ends the wait at once.
READ_WAIT = 5.0

# How long an agent may take to stop what it runs after `close`: it sends TERM, and KILL two seconds later.
CLOSE_WAIT = 3.0


@dataclass(frozen=True)
class Reports:
    """Whom the channel tells. All are called from its reader or the watchdog: they must be quick and must not raise."""

    progress: Callable[[str, str], None] = field(default=lambda host, text: None)
    lost: Callable[[str, Lost], None] = field(default=lambda host, lost: None)
    closed: Callable[[], None] = field(default=lambda: None)


class SentStep:
    """A step on its way; the Pending of the contract."""

    def __init__(self, channel: AgentChannel, step: Step) -> None:
        self._channel = channel
        self.name = f"{step.module} (step {step.id})"
        self.id = step.id
        self.future: Future[Outcome] = Future()

    def result(self, timeout: float | None = None) -> Outcome:
        return self.future.result(timeout)

    def cancel(self) -> None:
        if not self.future.done():
            self._channel.cancel(self.id)


def _whole(_module: str) -> bytes:
    """For an agent that was started with everything it needs."""
    return b""


class AgentChannel:
    """One agent. ``who`` is how it is called in messages; steps run in the order of ``submit``.

    ``missing`` gives the sources that this agent lacks for a module, and counts them as sent (bundle.Supply.follow).
    """

    def __init__(
        self, host: str, who: str, line: Line, started: Started, silence: float, watchdog: Watchdog, reports: Reports, missing: Callable[[str], bytes] = _whole,
    ) -> None:
        self.host = host
        self._who = who
        self._line = line
        self._started = started
        self._silence = silence
        self._watchdog = watchdog
        self._reports = reports
        self._missing = missing
        # Held until the sources are on the line: another thread's step for the same module must not go before them.
        self._supplying = threading.Lock()
        self._state = threading.Lock()
        self._sending = threading.Lock()
        # Whoever waits for the lock stands in the door, so that a sender of many pieces cannot take it again before them.
        self._door = threading.Lock()
        self._pending: dict[int, SentStep] = {}
        self._lost: Lost | None = None
        self._closing = False
        self._ended = threading.Event()
        self._heard = time.monotonic()
        self._reporting = False
        self._err = Tail()
        self._reader = threading.Thread(target=self._listen, name=f"nodectl-{host}", daemon=True)
        self._reader.start()
        watchdog.watch(self)

    @property
    def facts(self) -> Mapping[str, object]:
        return self._started.facts

    @property
    def alive(self) -> bool:
        return not (self._closing or self._lost or self._ended.is_set())

    # -- to the agent

    def submit(self, step: Step, blobs: Mapping[str, BinaryIO] | None = None) -> SentStep:
        sent = SentStep(self, step)
        with self._state:
            self._refuse_if_broken(sent)
            if step.id in self._pending:
                raise ValueError(f"step id {step.id} is already on its way to {self.host}")
            self._pending[step.id] = sent
        with contextlib.ExitStack() as undo:  # not for our own errors only: a blob's file may be unreadable, and a frame too large
            undo.callback(self._forget, step.id)
            for name, source in (blobs or {}).items():
                self._send_blob(step.blobs[name], source)
            self._supply(step.module)
            self._send({"t": "step", "step": step.to_json()})
            undo.pop_all()
        return sent

    def _supply(self, module: str) -> None:
        with self._supplying:
            lacking = self._missing(module)
            if lacking:
                self._send({"t": "sources"}, lacking)

    def _forget(self, step_id: int) -> None:
        with self._state:
            self._pending.pop(step_id, None)

    def cancel(self, step_id: int) -> None:
        try:
            self._send({"t": "cancel", "id": step_id})
        except Lost:
            return  # result() says so

    def _send_blob(self, blob_id: str, source: BinaryIO) -> None:
        """One piece behind, so that the last one can say so; an empty file is one empty last piece."""
        piece = source.read(MAX_PAYLOAD)
        for _ in itertools.count():
            following = source.read(MAX_PAYLOAD) if piece else b""
            self._send({"t": "blob", "id": blob_id, "last": not following}, piece)
            if not following:
                return
            piece = following

    def _send(self, head: Mapping[str, Any], payload: bytes = b"") -> None:
        """One frame. The lock is held for one frame only: a cancel goes between the pieces of a blob."""
        data = encode(dict(head), payload)
        with self._door:
            self._sending.acquire()
        try:
            self._refuse_if_broken(None)
            try:
                self._line.write(data, self._silence)
            except TimeoutError:
                self._lose(f"it took no byte from us for {self._silence:g} s", _SILENCE_HINT)
            except (OSError, EOFError) as error:
                self._lose(f"the connection broke ({str(error) or type(error).__name__})")
        finally:
            self._sending.release()
        self._refuse_if_broken(None)

    def _refuse_if_broken(self, sent: SentStep | None) -> None:
        if self._lost:
            what = f" before {sent.name}" if sent else ""
            raise Lost(f"{self._who}: the line was lost{what}: {self._lost.reason}", self._lost.hint)
        if self._closing or self._ended.is_set():
            raise Lost(f"{self._who}: the channel is closed")

    # -- from the agent

    def _listen(self) -> None:
        try:
            for frame in self._started.frames:
                self._take(frame)
            while not self._ended.is_set():
                self._read_once()
        except BadFrame as error:
            self._lose(f"the agent's stream is damaged: {error}", "does something else write to its standard output?")
        except (OSError, EOFError) as error:
            self._lose(f"the connection broke ({str(error) or type(error).__name__})")
        except Exception as error:  # noqa: BLE001  a thread's edge: whoever waits must hear of it
            self._lose(f"nodectl's reader failed, a bug: {type(error).__name__}: {error}")
        finally:
            self._ended.set()
            self._watchdog.forget(self)

    def _read_once(self) -> None:
        chunk = self._line.read(READ_WAIT)
        self._err.add(chunk.err)
        if chunk.out:
            # Standard error does not count: it may come from a child of an agent that is frozen itself.
            self._heard = time.monotonic()
        for frame in self._started.decoder.feed(chunk.out):
            self._take(frame)
        if chunk.ended:
            self._ended.set()
            said = self._err.text()
            self._lose("the agent's process ended", f"its last words: {said}" if said else "killed (out of memory?), or the node went down")

    def _take(self, frame: Frame) -> None:
        if frame.type == "outcome":
            self._settle(int(frame.head["id"]), frame.head["outcome"])
        elif frame.type == "progress":
            self._report(str(frame.head.get("text", "")))
        elif frame.type == "crash":
            self._crashed(frame.head.get("id"), str(frame.head.get("traceback", "")))
        elif frame.type not in ("beat", "bye"):
            raise BadFrame(f"unexpected frame '{frame.type}'")

    def _report(self, text: str) -> None:
        """A person may hold the screen (Ctrl-S, a pager): then it is not the node that is silent."""
        self._reporting = True
        try:
            self._reports.progress(self.host, text)
        finally:
            self._heard = time.monotonic()
            self._reporting = False

    def _settle(self, step_id: int, outcome: dict[str, Any]) -> None:
        result = outcome_from_json(outcome)
        with self._state:
            sent = self._pending.pop(step_id, None)
        if sent is None:
            raise BadFrame(f"an outcome for step {step_id}, which is not on its way")
        sent.future.set_result(result)

    def _crashed(self, step_id: int | None, traceback: str) -> None:
        with self._state:
            sent = self._pending.pop(step_id, None) if step_id is not None else None
        last = traceback.strip().splitlines()[-1] if traceback.strip() else "no traceback"
        if sent:
            sent.future.set_exception(AgentCrash(f"{self._who}: the agent crashed during {sent.name}, a bug in nodectl: {last}", traceback))
        else:
            self._lose(f"the agent crashed, a bug in nodectl: {last}", traceback, AgentCrash)

    # -- the end

    def check(self, now: float) -> None:
        if now - self._heard > self._silence and not self._reporting:
            self._lose(f"no byte from the agent for {self._silence:g} s", _SILENCE_HINT)

    def excuse(self, seconds: float) -> None:
        self._heard += seconds

    def close(self) -> None:
        """Ask the agent to end, wait for it a little, then drop the session. Pending steps become Lost."""
        with self._state:
            first = not self._closing and not self._lost
            self._closing = True
        if first:
            self._say_bye()
            self._ended.wait(min(CLOSE_WAIT, self._silence))
        self._lose("closed")
        self._watchdog.forget(self)
        self._reports.closed()

    def _say_bye(self) -> None:
        # Without the lock of _send: a writer that is stuck must not keep us here.
        if self._sending.acquire(timeout=1.0):
            try:
                self._line.write(encode({"t": "bye"}), 1.0)
                self._line.hang_up()
            except (OSError, EOFError):
                return  # it is gone already
            finally:
                self._sending.release()

    def _lose(self, reason: str, hint: str = "", kind: type[Lost] = Lost) -> None:
        """The line is given up, once; everybody who waits hears it with the name of the own step."""
        with self._state:
            if self._closing:
                # After our own bye the agent's end is no accident.
                reason, hint, kind = "nodectl closed the channel", "", Lost
            first = self._lost is None
            if first:
                self._lost = kind(reason, hint)
            left, self._pending = self._pending, {}
        if first and not self._closing:
            self._reports.lost(self.host, kind(f"{self._who}: {reason}", hint))
        if first and self._closing:
            self._line.discard()
        elif first:
            self._line.abort()
        for sent in left.values():
            sent.future.set_exception(kind(f"{self._who}: connection lost during {sent.name}: {reason}", hint))


_SILENCE_HINT = "the node is frozen, switched off, or cut off by the network; the agent would speak every 2 s"
