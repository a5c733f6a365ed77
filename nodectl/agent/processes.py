"""One program run to its end: own process group, bounded output, bounded time, stoppable from another thread."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from typing import IO, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from nodectl.agent.contract import Failed

# What is kept of stdout and of stderr, each: enough for every log that a person reads, small enough for one frame.
KEEP = 1024 * 1024
# From TERM to KILL: a well-behaved daemon needs well under a second, and a cancelled run should not wait longer.
GRACE = 2.0
# How long the pipes may stay open after the program itself has ended (a daemon it left behind holds them).
LINGER = 1.0
# How often a silent program is looked at; its output and its end wake the loop sooner.
TICK = 0.25
CHUNK = 64 * 1024


class Completed(NamedTuple):
    """A program that ended. Texts are UTF-8, broken bytes kept by surrogateescape. ``dropped_*`` are bytes beyond 1 MiB."""

    rc: int
    stdout: str
    stderr: str
    argv: Tuple[str, ...]
    dropped_stdout: int = 0
    dropped_stderr: int = 0


class _Stream:
    """Keeps the first half and the last half of the limit: both the cause and the end of a long output matter."""

    def __init__(self) -> None:
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = KEEP // 2 - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > KEEP:
            del self.tail[: -KEEP // 2]

    def text(self) -> str:
        self.tail = self.tail[-KEEP // 2 :]
        gap = f"\n[nodectl: {self.dropped} bytes left out here]\n".encode() if self.dropped else b""
        return bytes(self.head + gap + self.tail).decode("utf-8", "replace")

    @property
    def dropped(self) -> int:
        return self.total - len(self.head) - min(len(self.tail), KEEP // 2)


class Stopper:
    """Ends what a step is doing. ``stop`` may be called from any thread; the step's own thread sees it in ``check``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: Dict[int, "subprocess.Popen[bytes]"] = {}
        self._reason = ""
        self._since: Optional[float] = None
        self.event = threading.Event()

    def stop(self, reason: str) -> None:
        """Send TERM to every process group of the step, now; the running ``run`` sends KILL after the grace time."""
        with self._lock:
            self._reason = self._reason or reason
            self._since = self._since or time.monotonic()
            self.event.set()
            for process in self._groups.values():
                send(process, signal.SIGTERM)

    def stopping(self) -> Tuple[str, float]:
        """(why, for how many seconds by now); ("", 0.0) when nobody stopped it."""
        with self._lock:
            return self._reason, 0.0 if self._since is None else time.monotonic() - self._since

    def kill(self) -> None:
        """The last resort, before the agent leaves."""
        with self._lock:
            for process in self._groups.values():
                send(process, signal.SIGKILL)

    def check(self) -> None:
        """Raise Failed when the step was stopped."""
        if self.event.is_set():
            raise Failed(self._reason)

    def started(self, process: "subprocess.Popen[bytes]") -> None:
        with self._lock:
            self._groups[process.pid] = process
            if self.event.is_set():
                send(process, signal.SIGTERM)

    def ended(self, process: "subprocess.Popen[bytes]") -> None:
        with self._lock:
            self._groups.pop(process.pid, None)


def send(process: "subprocess.Popen[bytes]", number: int) -> None:
    """A signal to the whole group. The group lives as long as one member does, so its number cannot mean a stranger."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def started(pid: int) -> str:
    """When a process began, in the kernel's ticks since boot: with it a number that is given again is told from the first. "" when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return fields[19].decode() if len(fields) > 19 and fields[0] not in (b"Z", b"X") else ""


def execute(argv: Sequence[str], stdin: bytes, timeout: Optional[float], env: Mapping[str, str], cwd: str, stopper: Stopper) -> Completed:
    """Run ``argv``; see System.run. ``timeout`` None means that only the step's own time limit counts."""
    stopper.check()
    process = _start(argv, bool(stdin), env, cwd)
    stopper.started(process)
    try:
        return _Watch(process, tuple(argv), stdin, timeout, stopper).to_the_end()
    finally:
        stopper.ended(process)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _start(argv: Sequence[str], with_stdin: bool, env: Mapping[str, str], cwd: str) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            list(argv), stdin=subprocess.PIPE if with_stdin else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(env), cwd=None if cwd == "." else cwd or "/", start_new_session=True, close_fds=True,
        )
    except FileNotFoundError:
        if cwd and not os.path.isdir(cwd):
            raise Failed(f"cannot run {argv[0]} in {cwd}: there is no such folder", rc=2, cmd=list(argv)) from None
        raise Failed(f"program not found: {argv[0]} (looked in {env.get('PATH', '')})", rc=2, cmd=list(argv)) from None
    except (OSError, ValueError) as error:
        raise Failed(f"cannot run {argv[0]}: {error}", rc=getattr(error, "errno", None) or 1, cmd=list(argv)) from None


class _Watch:
    """Feeds stdin, drains the output, and holds the three bounds: timeout, stop, and pipes that nobody closes."""

    def __init__(self, process: "subprocess.Popen[bytes]", argv: Tuple[str, ...], stdin: bytes, timeout: Optional[float], stopper: Stopper) -> None:
        self.process = process
        self.argv = argv
        self.rest = memoryview(stdin)
        self.timeout = timeout
        self.stopper = stopper
        self.output = (_Stream(), _Stream())
        self.selector = selectors.DefaultSelector()
        self.began = time.monotonic()
        self.ended_at: Optional[float] = None
        self.killing_since: Optional[float] = None
        self.killed = False

    def to_the_end(self) -> Completed:
        with self.selector:
            self._register()
            while self.selector.get_map() or self.process.poll() is None:
                self._serve()
                if self._over():
                    break
        self._raise_if_ended_by_us()
        rc = self.process.poll()
        out, err = self.output
        return Completed(-signal.SIGKILL if rc is None else rc, out.text(), err.text(), self.argv, out.dropped, err.dropped)

    def _register(self) -> None:
        for pipe, what in ((self.process.stdout, self.output[0]), (self.process.stderr, self.output[1])):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self.selector.register(pipe, selectors.EVENT_READ, what)
        if self.process.stdin is not None:
            os.set_blocking(self.process.stdin.fileno(), False)
            self.selector.register(self.process.stdin, selectors.EVENT_WRITE, None)

    def _serve(self) -> None:
        if not self.selector.get_map():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(TICK)
            return
        for key, _ in self.selector.select(TICK):
            pipe: IO[bytes] = key.fileobj  # type: ignore[assignment]
            if key.data is None:
                self._write(pipe)
            else:
                self._read(pipe, key.data)

    def _write(self, pipe: IO[bytes]) -> None:
        try:
            self.rest = self.rest[os.write(pipe.fileno(), self.rest[:CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.rest = self.rest[:0]
        if not len(self.rest):
            self.selector.unregister(pipe)
            pipe.close()

    def _read(self, pipe: IO[bytes], stream: _Stream) -> None:
        data = os.read(pipe.fileno(), CHUNK)
        if data:
            stream.add(data)
        else:
            self.selector.unregister(pipe)

    def _over(self) -> bool:
        """True when nothing more is waited for, although a pipe is open or the program cannot be ended."""
        now = time.monotonic()
        if self.killing_since is None and (self.stopper.event.is_set() or self._late(now)):
            self.killing_since = now
            send(self.process, signal.SIGTERM)
        if self.killing_since is not None and now - self.killing_since > GRACE:
            if self.killed:
                return now - self.killing_since > 2 * GRACE  # in the kernel, beyond KILL: leave it there
            self.killed = True
            send(self.process, signal.SIGKILL)
        if self.process.poll() is None:
            return False
        self.ended_at = self.ended_at or now
        return now - self.ended_at > LINGER

    def _late(self, now: float) -> bool:
        return self.timeout is not None and now - self.began > self.timeout and self.process.poll() is None

    def _raise_if_ended_by_us(self) -> None:
        if self.killing_since is None:
            return
        send(self.process, signal.SIGKILL)  # what is left of the group after its leader ended
        values = {"cmd": list(self.argv), "rc": -signal.SIGTERM, "stdout": self.output[0].text(), "stderr": self.output[1].text()}
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(0.1)
        try:
            self.stopper.check()
        except Failed as stopped:
            raise Failed(stopped.msg, **values) from None
        raise Failed(f"{self.argv[0]} did not end within {self.timeout:g} s; its process group was ended", **values)


def lines(text: str) -> List[str]:
    """As Ansible makes stdout_lines."""
    return text.splitlines()
