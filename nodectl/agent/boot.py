"""The agent's life: frames in on stdin, frames out on what was stdout, one worker that runs steps in order.

Nothing of it stays on the node's disk: blobs lie in files without a name. End of input stops whatever runs.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pwd
import queue
import select
import signal
import socket
import sys
import tempfile
import threading
import traceback
import zlib
from types import FrameType
from typing import Any, BinaryIO, Dict, Optional, Set, cast

from nodectl.agent.own_folder import remove_leftovers
from nodectl.agent.processes import GRACE, Stopper
from nodectl.agent.runner import OUR_BUG, run_step
from nodectl.agent.system import System
from nodectl.wire.frame import PROTOCOL, BadFrame, Decoder, Frame, encode
from nodectl.wire.outcome import Outcome
from nodectl.wire.step import Step, step_from_json

# The controller takes 20 s of silence for a lost node: a beat every 2 s may fail nine times in a row.
BEAT = 2.0
# A step that was stopped and still runs: its programs are given up after 2 * GRACE, so what is left hangs in the kernel.
STUCK = 3 * GRACE
# What one read takes: as much as one piece of a blob.
PIECE = 256 * 1024
BUG = 70
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class Leave(Exception):
    pass


class Agent:
    """Serves one controller over two file descriptors; ``ahead`` are bytes that were already read from ``source``.

    ``sources`` is where the importer looks: module name to text. What the controller sends of them later is added there.

    ``serve`` is the reader; worker and beat are threads of their own.
    """

    def __init__(self, sources: Dict[str, str], source: int, sink: int, ahead: bytes = b"", wake: Optional[int] = None) -> None:
        self._sources = sources
        self._source = source
        self._sink = sink
        self._ahead = ahead
        # Readable when a signal came: the system may deliver it to another thread, and a read of this one would sleep on.
        self._wake = wake
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._steps: "queue.Queue[Optional[Step]]" = queue.Queue()
        self._blobs: Dict[str, BinaryIO] = {}
        self._broken: Dict[str, str] = {}
        self._failed: Set[int] = set()
        self._cancelled: Set[int] = set()
        self._running: Optional[int] = None
        self._given_up: Optional[int] = None
        self._stopper = Stopper()
        self._over = threading.Event()

    def serve(self) -> int:
        """Until bye, end of input or a signal; the exit code."""
        worker = threading.Thread(target=self._work, name="worker", daemon=True)
        code = 0
        try:
            self._send(_hello())
            worker.start()
            threading.Thread(target=self._beat, name="beat", daemon=True).start()
            self._read()
        except (Leave, BrokenPipeError):
            pass
        except Exception as error:  # noqa: BLE001 -- the edge "agent loop": the controller hears why before the line closes
            self._send({"t": "crash", "text": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()})
            code = BUG
        self._end(worker)
        return code

    def _end(self, worker: threading.Thread) -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        self._over.set()
        with self._lock:
            stopper = self._stopper
        stopper.stop("the line to the controller ended")
        self._steps.put(None)
        if worker.ident is not None:
            worker.join(GRACE + 1)  # TERM was sent; the worker itself sends KILL after the grace time
        stopper.kill()
        with contextlib.suppress(OSError):
            os.set_blocking(self._sink, False)  # a controller that does not read must not keep us
        self._send({"t": "bye"})

    def _read(self) -> None:
        decoder = Decoder()
        while True:
            data = self._arrived()
            if not data:
                return
            for frame in decoder.feed(data):
                if frame.type == "bye":
                    return
                self._take(frame)

    def _arrived(self) -> bytes:
        ahead, self._ahead = self._ahead, b""
        if ahead:
            return ahead
        waiting = [self._source] if self._wake is None else [self._source, self._wake]
        while True:
            ready, _, _ = select.select(waiting, [], [])
            if self._source in ready:
                return os.read(self._source, PIECE)

    def _take(self, frame: Frame) -> None:
        if frame.type == "step":
            self._steps.put(step_from_json(frame.head["step"]))
        elif frame.type == "blob":
            self._blob(str(frame.head["id"]), frame.payload)
        elif frame.type == "sources":
            self._sources.update(json.loads(zlib.decompress(frame.payload).decode("ascii")))
        elif frame.type == "cancel":
            self._cancel(int(frame.head["id"]))
        else:
            raise BadFrame(f"unknown frame type '{frame.type}'")

    def _blob(self, name: str, payload: bytes) -> None:
        try:
            with self._lock:
                if name not in self._blobs:
                    self._blobs[name] = tempfile.TemporaryFile(prefix="nodectl-")  # noqa: SIM115 -- closed after its step
                file = self._blobs[name]
            file.write(payload)
            file.flush()
        except OSError as error:
            self._broken[name] = f"cannot keep the content of this step in {tempfile.gettempdir()}: {error.strerror}"

    def _cancel(self, number: int) -> None:
        with self._lock:
            self._cancelled.add(number)
            stopper = self._stopper if self._running == number else None
        if stopper is not None:
            stopper.stop("cancelled")

    def _beat(self) -> None:
        while not self._over.wait(BEAT):
            self._send({"t": "beat"})
            self._give_up()

    def _give_up(self) -> None:
        """A module that waits for a dead mount cannot be ended from inside: answer for it, and leave with it."""
        with self._lock:
            reason, seconds = self._stopper.stopping()
            number = self._running
            if number is None or seconds < STUCK:
                return
            self._running, self._given_up = None, number
        msg = f"{reason}; it hangs in the kernel and cannot be ended, most likely it waits for a mount that does not answer"
        self._send({"t": "outcome", "id": number, "outcome": Outcome(failed=True, msg=msg).to_json()})
        os.kill(os.getpid(), signal.SIGTERM)

    def _work(self) -> None:
        try:
            remove_leftovers(tempfile.gettempdir())
            while not self._over.is_set():
                step = self._steps.get()
                if step is None:
                    return
                outcome = self._one(step)
                if outcome.failed:
                    self._failed.add(step.id)
                self._answer(step, outcome)
        except Exception as error:  # noqa: BLE001 -- the edge "thread entry": without it the controller would wait for beats only
            self._send({"t": "crash", "text": f"worker: {type(error).__name__}: {error}", "traceback": traceback.format_exc()})
        finally:
            if not self._over.is_set():
                os.kill(os.getpid(), signal.SIGTERM)  # an agent without its worker would beat for ever and do nothing

    def _one(self, step: Step) -> Outcome:
        if step.needs is not None and step.needs in self._failed:
            return Outcome(failed=True, skipped=True, msg=f"not run: step {step.needs} before it failed", values={"not_run": True})
        with self._lock:
            blobs = {name: self._blobs.pop(key) for name, key in step.blobs.items() if key in self._blobs}
            stopper = self._stopper = Stopper()
            self._running = step.id
            cancelled = step.id in self._cancelled
        if cancelled or self._over.is_set():
            stopper.stop("cancelled")
        system = System(step.environment, blobs, lambda text: self._send({"t": "progress", "id": step.id, "text": text}), stopper)
        broken = [self._broken.pop(key) for key in step.blobs.values() if key in self._broken]
        try:
            if cancelled or broken:
                return Outcome(failed=True, msg="cancelled" if cancelled else broken[0], values={"not_run": True})
            return run_step(system, step)
        finally:
            with self._lock:
                self._running = None
            for file in blobs.values():
                file.close()

    def _answer(self, step: Step, outcome: Outcome) -> None:
        with self._lock:
            if step.id == self._given_up:
                return
        try:
            self._send({"t": "outcome", "id": step.id, "outcome": outcome.to_json()})
        except (BadFrame, TypeError) as error:
            msg = f"{OUR_BUG}: the result of {step.module} cannot be sent: {error}"
            self._send({"t": "outcome", "id": step.id, "outcome": Outcome(changed=outcome.changed, failed=True, msg=msg).to_json()})

    def _send(self, head: Dict[str, Any]) -> None:
        data = memoryview(encode(head))
        # One frame at a time. Whoever holds the lock is writing; when the controller has not read for so long, it has
        # long called this node lost, and only the end of input is left to wait for.
        if self._writing.acquire(timeout=1.0 if self._over.is_set() else 60.0):
            try:
                while len(data):
                    data = data[os.write(self._sink, data) :]
            except (BrokenPipeError, BlockingIOError):
                pass  # the reader sees the end of input itself
            finally:
                self._writing.release()


def _hello() -> Dict[str, Any]:
    uid = os.geteuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    version = ".".join(map(str, sys.version_info[:3]))
    return {"t": "hello", "version": PROTOCOL, "pid": os.getpid(), "user": user, "uid": uid, "python": version, "hostname": socket.gethostname()}


def _leave(number: int, _frame: Optional[FrameType]) -> None:
    raise Leave(f"signal {number}")


def _read_ahead() -> bytes:
    """What the loader, which read our sources through a buffer, took from the pipe beyond them."""
    os.set_blocking(0, False)
    try:
        return cast(io.BufferedReader, sys.stdin.buffer).peek()
    finally:
        os.set_blocking(0, True)


def _wake() -> int:
    """A descriptor that becomes readable with every signal."""
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def main(sources: Dict[str, str]) -> None:
    """Take stdin and stdout for frames, give everything else stderr, serve, and be gone."""
    sink = os.dup(1)
    os.dup2(2, 1)  # a stray print must never break a frame
    os.umask(0o022)
    for number in SIGNALS:
        signal.signal(number, _leave)
    code = Agent(sources, 0, sink, _read_ahead(), _wake()).serve()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)  # not exit(): a worker stuck in the kernel must not keep the process
