"""Talks to a running qemu: its control socket (QMP) and the serial line of its guest. Every wait is bounded."""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodectl.lab.problem import LabProblem

# qemu answers at once; savevm of 1 GiB took 0.5 s, and a machine under load was seen to need many times that.
ANSWER_S = 60.0
CHUNK = 65536
# Ctrl-U: a slow guest may have lost the end of a line that was typed before; what is left of it must not stand before the next one.
CLEAR = "\x15"
# A booting guest takes tens of seconds to its shell.
AGAIN_S = 1.0


class Monitor:
    """The control socket of one qemu. Use it as a context: a socket serves one client at a time."""

    def __init__(self, path: Path, timeout: float = ANSWER_S) -> None:
        self._path = path
        self._timeout = timeout

    def __enter__(self) -> Monitor:
        self._socket = _connected(self._path, self._timeout)
        self._file = self._socket.makefile("rwb")
        self._line()
        self.run("qmp_capabilities")
        return self

    def __exit__(self, *_exc: object) -> None:
        self._file.close()
        self._socket.close()

    def run(self, command: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """What qemu returns. Raises LabProblem with its words when it refuses, or does not answer."""
        self._file.write(json.dumps({"execute": command, "arguments": dict(arguments or {})}).encode() + b"\n")
        self._file.flush()
        while True:
            said = self._line()
            if "error" in said:
                raise LabProblem(f"qemu refused {command}: {said['error'].get('desc', said['error'])}")
            if "return" in said:
                return said["return"]

    def human(self, line: str) -> str:
        """A command of the human monitor, for what QMP lacks (savevm). Raises LabProblem with what it answers: silence is success."""
        answer = str(self.run("human-monitor-command", {"command-line": line})).strip()
        if answer:
            raise LabProblem(f"qemu said to {line!r}: {answer}")
        return answer

    def _line(self) -> dict[str, Any]:
        try:
            text = self._file.readline()
        except TimeoutError:
            raise LabProblem(f"qemu at {self._path} did not answer within {self._timeout:g} s") from None
        if not text:
            raise LabProblem(f"qemu at {self._path} ended while it was asked")
        found = json.loads(text)
        return found if isinstance(found, dict) else {}


def await_shell(path: Path, timeout: float) -> None:
    """Waits for the root shell on a guest's serial line. What is typed before it is there goes nowhere, so it is typed again and again."""
    word = secrets.token_hex(4)
    deadline = time.monotonic() + timeout
    with _connected(path, timeout) as serial:
        serial.settimeout(AGAIN_S)
        seen = b""
        while time.monotonic() < deadline:
            serial.sendall(f"{CLEAR}echo NODE''CTL-{word}\n".encode())
            try:
                seen += serial.recv(CHUNK)
            except TimeoutError:
                continue
            if f"NODECTL-{word}".encode() in seen:
                return
            time.sleep(AGAIN_S)
    raise LabProblem(f"a guest showed no shell within {timeout:g} s; its serial line showed: {seen.decode(errors='replace')[-500:] or 'nothing'}")


def type_line(path: Path, line: str, timeout: float) -> str:
    """Types a line at the root shell on a guest's serial line and gives back what it printed. Raises LabProblem when it fails or hangs.

    The end is marked by a word that the shell puts together, so that its echo is not taken for it.
    """
    word = secrets.token_hex(4)
    text = f"{CLEAR}{line}; echo NODE''CTL-{word}-$?\n"
    deadline = time.monotonic() + timeout
    with _connected(path, timeout) as serial:
        serial.sendall(text.encode())
        seen = b""
        while time.monotonic() < deadline:
            serial.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                chunk = serial.recv(CHUNK)
            except TimeoutError:
                break
            if not chunk:
                raise LabProblem(f"the guest's serial line {path} was closed while {line!r} ran")
            seen += chunk
            before, mark, after = seen.partition(f"NODECTL-{word}-".encode())
            if mark and b"\n" in after:
                return _judged(line, before.decode(errors="replace"), after.split(b"\n")[0].strip().decode())
    shown = seen.decode(errors="replace")[-500:]
    raise LabProblem(f"a guest did not end {line!r} within {timeout:g} s; its serial line showed: {shown or 'nothing'}")


def _judged(line: str, output: str, code: str) -> str:
    if code != "0":
        raise LabProblem(f"a guest answered {line!r} with exit code {code}: {output[-500:]}")
    return output


def _connected(path: Path, timeout: float) -> socket.socket:
    """Raises LabProblem when nobody listens there within ``timeout``."""
    deadline = time.monotonic() + timeout
    while True:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(timeout)
        try:
            _connect(client, path)
            return client
        except OSError as error:
            client.close()
            if time.monotonic() > deadline:
                raise LabProblem(f"no qemu listens at {path} ({error.strerror}): it has ended, or never started") from error
        time.sleep(0.1)


def _connect(client: socket.socket, path: Path) -> None:
    """Through the folder's descriptor: a socket's name may have 107 bytes, and a lab's folder may lie deep."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        client.connect(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
