"""A program that asks questions on a terminal."""

from __future__ import annotations

import contextlib
import datetime
import os
import re
import select
import shlex
import signal
import subprocess
import termios
import time
import tty
from typing import Any, Dict, List, Optional, Tuple

from nodectl.agent import edited_text
from nodectl.agent.contract import Args, Failed
from nodectl.agent.processes import GRACE, KEEP, send
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

# How often a silent program is looked at.
TICK = 0.25
CHUNK = 4096

SPEC = Spec(
    summary="Run a program on a terminal of its own, and answer what it asks",
    params={
        "command": Param(required=True, help="the command line; no shell"),
        "responses": Param("dict", required=True, help="pattern to answer; to a list of answers for a question that comes several times"),
        "timeout": Param("int", default=30, help="seconds without a question that is known, after which it is given up"),
        "echo": Param("bool", default=False, help="show the answers in the output"),
        "chdir": Param("path", help="run in this folder"),
        "creates": Param("path", help="a path; when it is there, do not run"),
        "removes": Param("path", help="a path; when it is not there, do not run"),
    },
    returns={
        "cmd": "what was run", "rc": "exit code", "stdout": "what was on the terminal", "stdout_lines": "that, as lines",
        "start": "when it began", "end": "when it ended", "delta": "how long it took",
    },
    example="- expect:\n    command: cryptsetup luksFormat /dev/disk/by-id/x\n    responses: {'Are you sure': 'YES', 'passphrase': '{{ phrase }}'}\n",
)

Answers = List[Tuple["re.Pattern[bytes]", List[bytes]]]


def act(system: System, args: Args, check: bool) -> Outcome:
    if not args["command"].strip():
        raise Failed("no command given", rc=256)
    for name, there in (("creates", True), ("removes", False)):
        if args[name] and os.path.exists(os.path.expanduser(args[name])) == there:
            text = f"skipped, since {args[name]} {'exists' if there else 'does not exist'}"
            return Outcome(values={"cmd": args["command"], "stdout": text, "stdout_lines": [text], "rc": 0})
    if check:
        return Outcome(skipped=True, msg="a program would have run: skipped in check mode")
    began = datetime.datetime.now()
    rc, shown = _Terminal(system, args).to_the_end()
    ended = datetime.datetime.now()
    text = shown.decode("utf-8", "replace").rstrip("\r\n")
    values: Dict[str, Any] = {
        "cmd": args["command"], "rc": rc, "stdout": text, "stdout_lines": text.splitlines(), "start": str(began), "end": str(ended),
        "delta": str(ended - began),
    }
    return Outcome(changed=True, failed=rc != 0, msg="command exceeded timeout" if rc is None else "non-zero return code" if rc else "", values=values)


class _Terminal:
    """The program, its terminal, and the answers that are left."""

    def __init__(self, system: System, args: Args) -> None:
        self._system = system
        self._timeout = args["timeout"]
        self._answers = _answers(args["responses"])
        self._master, slave = os.openpty()
        if not args["echo"]:
            settings = termios.tcgetattr(slave)
            settings[tty.LFLAG] &= ~termios.ECHO
            termios.tcsetattr(slave, termios.TCSANOW, settings)
        try:
            self._process = _start(system, args, slave)
        finally:
            os.close(slave)
        self._shown = bytearray()
        self._unread = b""

    def to_the_end(self) -> Tuple[Optional[int], bytes]:
        """(exit code, or None where it was given up; what was on the terminal)."""
        self._system.stopper.started(self._process)
        try:
            return (self._wait() if self._talk() else None), bytes(self._shown)
        finally:
            self._end()

    def _talk(self) -> bool:
        """Until the program closes the terminal; False when no known question came in time."""
        heard = time.monotonic()
        while True:
            self._system.stopper.check()
            ready, _, _ = select.select([self._master], [], [], TICK)
            data = _read(self._master) if ready else None
            if data == b"" or (data is None and self._process.poll() is not None):
                return True
            if data:
                self._take(data)
            if self._answer():
                heard = time.monotonic()
            elif time.monotonic() - heard > self._timeout:
                return False

    def _take(self, data: bytes) -> None:
        self._unread = (self._unread + data)[-KEEP:]
        self._shown += data
        if len(self._shown) > KEEP:
            del self._shown[: len(self._shown) - KEEP]

    def _answer(self) -> bool:
        """To the question that stands first in what was printed since the last answer."""
        found = [(pattern.search(self._unread), pattern, answers) for pattern, answers in self._answers]
        asked = [(match.start(), match.end(), pattern, answers) for match, pattern, answers in found if match]
        if not asked:
            return False
        _, end, pattern, answers = min(asked, key=lambda one: one[0])
        self._unread = self._unread[end:]
        if not answers:
            question, output = (text.decode("utf-8", "replace") for text in (pattern.pattern, bytes(self._shown)))
            raise Failed(f"No remaining responses for '{question}', output was '{output}'")
        os.write(self._master, answers[0])
        if isinstance(answers, _Once):
            answers.pop(0)
        return True

    def _wait(self) -> Optional[int]:
        try:
            rc = self._process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            return None
        return rc if rc >= 0 else 128 - rc

    def _end(self) -> None:
        self._system.stopper.ended(self._process)
        if self._process.poll() is None:
            send(self._process, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE)
            send(self._process, signal.SIGKILL)
            self._process.wait()
        os.close(self._master)


class _Once(List[bytes]):
    """Answers that are used up."""


def _answers(responses: Dict[str, Any]) -> Answers:
    """A single answer is given as often as it is asked for."""
    found: Answers = []
    for question, answer in responses.items():
        lines = [f"{one}".rstrip("\n").encode("utf-8", "surrogateescape") + b"\n" for one in (answer if isinstance(answer, list) else [answer])]
        edited_text.pattern(question, "responses")
        found.append((re.compile(question.encode("utf-8", "surrogateescape"), re.DOTALL), _Once(lines) if isinstance(answer, list) else lines))
    return found


def _start(system: System, args: Args, slave: int) -> "subprocess.Popen[bytes]":
    """setsid makes the terminal that of the program, so that what opens /dev/tty finds it too."""
    argv = shlex.split(args["command"])
    folder = os.path.abspath(os.path.expanduser(args["chdir"])) if args["chdir"] else None
    program = argv[0] if "/" in argv[0] else system.which(argv[0])
    if program is None:
        raise Failed(f"program not found: {argv[0]} (looked in {system.environment['PATH']})", rc=2, cmd=args["command"])
    environment = dict(system.environment, TERM="dumb")
    try:
        return subprocess.Popen(["setsid", "--ctty", program, *argv[1:]], stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment, close_fds=True)
    except OSError as error:
        raise Failed(f"cannot run {args['command']}: {error}", rc=error.errno or 1, cmd=args["command"]) from None


def _read(master: int) -> bytes:
    try:
        return os.read(master, CHUNK)
    except OSError:  # what Linux says when the last one closed the terminal
        return b""
