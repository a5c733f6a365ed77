"""One command on a node through the login alone, without an agent: what works where there is no Python yet."""

from __future__ import annotations

import time
from typing import NamedTuple

from nodectl.transport.become import Sudo
from nodectl.transport.channel import BecomeTarget, Lost, Ran
from nodectl.transport.line import Line

# Kept of each stream: as much as an agent keeps of a program's output. Of more than that, the first half and the last one.
KEEP = 1024 * 1024
# How long one read waits: only sets how soon the end of the time is seen.
READ_WAIT = 1.0
# How long we wait for the exit status of a process that closed its streams.
STATUS_WAIT = 2.0
# sudo asks before the command can print; after so much of it nothing is a question of sudo's any more (bytes).
ASKING = 32 * 1024


class Order(NamedTuple):
    argv: list[str]
    sudo: Sudo | None = None


def order(command: str, executable: str, become: BecomeTarget | None) -> Order:
    """By /bin/sh, or another shell; as the login, or as who it becomes."""
    argv = [executable or "/bin/sh", "-c", command]
    sudo = Sudo(become) if become else None
    return Order(sudo.argv(argv) if sudo else argv, sudo)


class _Kept:
    def __init__(self) -> None:
        self.head, self.tail, self.dropped = b"", b"", 0

    def add(self, data: bytes) -> None:
        room = KEEP // 2 - len(self.head)
        self.head += data[:room] if room > 0 else b""
        self.tail += data[max(room, 0) :]
        over = len(self.tail) - KEEP // 2
        if over > 0:
            self.dropped += over
            self.tail = self.tail[over:]


def run(line: Line, given: Order, who: str, seconds: float) -> Ran:
    """To the end of the command. Raises Lost when the line broke or the time passed, Unreachable when sudo says no."""
    end = time.monotonic() + seconds
    out, err = _Kept(), _Kept()
    asks = _asks(given)
    try:
        if not asks:
            line.hang_up()
        while True:
            chunk = line.read(READ_WAIT)
            if asks and chunk.err and len(err.head) < ASKING and _asked(given, chunk.err, line, end):
                line.hang_up()
            out.add(chunk.out)
            err.add(chunk.err)
            if chunk.ended:
                return _ran(line, given, out, err)
            if time.monotonic() > end:
                raise Lost(f"{who}: the command did not end within {seconds:g} s", "whether it goes on there is not known: there is no agent that could tell")
    except (OSError, EOFError) as error:
        raise Lost(f"{who}: the connection broke during a command ({str(error) or type(error).__name__})") from None
    finally:
        line.discard()


def _asks(given: Order) -> bool:
    return given.sudo is not None and given.sudo.become.password is not None


def _asked(given: Order, err: bytes, line: Line, end: float) -> bool:
    """Answers sudo's question; True when it was asked. Raises Unreachable where it asks again. What is typed goes to sudo and to nobody else."""
    sudo = given.sudo
    if sudo is None or sudo.become.password is None or not sudo.asked(err[:ASKING]):
        return False
    line.write(sudo.become.password.reveal().encode() + b"\n", max(0.1, end - time.monotonic()))
    return True


def _ran(line: Line, given: Order, out: _Kept, err: _Kept) -> Ran:
    rc = line.status(STATUS_WAIT)
    text = err.head + err.tail
    if given.sudo and rc:
        said = text.decode("utf-8", "replace").replace(given.sudo.prompt, "").strip()
        refused = given.sudo.refused(said) if said.startswith("sudo:") else None
        if refused and not out.head:
            raise refused
        text = text.replace(given.sudo.prompt.encode(), b"")
    return Ran(-1 if rc is None else rc, out.head + out.tail, text, out.dropped + err.dropped)
