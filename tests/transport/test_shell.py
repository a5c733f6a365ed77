"""One command without an agent: exit status, both streams whole or counted, time, and the password for sudo."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from nodectl.transport import shell
from nodectl.transport.channel import BecomeTarget, Lost, Ran, Target, Unreachable
from nodectl.transport.line import Chunk
from nodectl.transport.pool import Pool
from nodectl.wire.secret import Secret
from tests.transport.conftest import FAST
from tests.transport.sshd import Sshd

HERE = Target("here", "", connection="local")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    made = Pool(FAST)
    yield made
    made.close()


# what is run, and what comes back
COMMANDS = [
    ("echo out; echo err >&2; exit 3", Ran(3, b"out\n", b"err\n")),
    ("printf x", Ran(0, b"x", b"")),
    ("printf 'a\\000b\\377\\376'", Ran(0, b"a\0b\xff\xfe", b"")),
    ("true", Ran(0, b"", b"")),
    ("cat", Ran(0, b"", b"")),
    ("no-such-program-of-a-test 2>/dev/null", Ran(127, b"", b"")),
]


@pytest.mark.parametrize(("command", "ran"), COMMANDS, ids=[command[0][:20] for command in COMMANDS])
def test_what_it_printed_and_how_it_ended(pool: Pool, command: str, ran: Ran) -> None:
    assert pool.raw(HERE, None, command, "", 20) == ran


def test_another_shell(pool: Pool) -> None:
    assert pool.raw(HERE, None, 'printf %s "${BASH_VERSION:+bash}"', "/bin/bash", 20).stdout == b"bash"


def test_three_megabytes_on_both_streams_are_counted_where_they_are_left_out(pool: Pool) -> None:
    each = 3_000_000
    ran = pool.raw(HERE, None, f"head -c {each} /dev/zero; head -c {each} /dev/zero | tr '\\000' x >&2; exit 5", "", 30)
    assert (ran.rc, len(ran.stdout), len(ran.stderr)) == (5, shell.KEEP, shell.KEEP)
    assert ran.dropped == 2 * (each - shell.KEEP)


def test_time_passes(pool: Pool) -> None:
    begin = time.monotonic()
    with pytest.raises(Lost, match="did not end within 0.2 s"):
        pool.raw(HERE, None, "sleep 30", "", 0.2)
    assert time.monotonic() - begin < 10


def test_over_ssh_without_python(server: Sshd) -> None:
    """On the connection that is there; an agent may follow on it."""
    pool = Pool(FAST)
    try:
        target = server.target("bare")
        before = server.log.count("Accepted publickey")
        assert pool.raw(target, None, "echo over ssh; exit 4", "", 20) == Ran(4, b"over ssh\n", b"")
        assert pool.raw(target, None, "echo again", "", 20).stdout == b"again\n"
        assert pool.channel(target).alive
        assert server.log.count("Accepted publickey") == before + 1
    finally:
        pool.close()


class Asking:
    """A line on which sudo asks, and then the command speaks."""

    def __init__(self, prompt: str, answers: list[Chunk], status: int) -> None:
        self._said = [Chunk(err=prompt.encode()), *answers, Chunk(ended=True)]
        self._status = status
        self.written = b""
        self.hung_up = False

    def read(self, timeout: float) -> Chunk:
        return self._said.pop(0)

    def write(self, data: bytes, timeout: float) -> None:
        self.written += data

    def status(self, timeout: float) -> int:
        return self._status

    def hang_up(self) -> None:
        self.hung_up = True

    def discard(self) -> None:
        """Nothing is held."""

    def abort(self) -> None:
        """Nothing is held."""


def test_sudo_is_given_the_password_once_and_its_question_is_no_output() -> None:
    given = shell.order("id", "", BecomeTarget(password=Secret("pass word")))
    assert given.sudo is not None
    line = Asking(given.sudo.prompt, [Chunk(out=b"uid=0\n", err=b"warned\n")], 1)
    assert shell.run(line, given, "n1", 5) == Ran(1, b"uid=0\n", b"warned\n")
    assert (line.written, line.hung_up) == (b"pass word\n", True)


def test_a_wrong_password_is_said() -> None:
    given = shell.order("id", "", BecomeTarget(password=Secret("wrong")))
    assert given.sudo is not None
    line = Asking(given.sudo.prompt, [Chunk(err=f"Sorry, try again.\n{given.sudo.prompt}".encode())], 1)
    with pytest.raises(Unreachable, match="sudo"):
        shell.run(line, given, "n1", 5)
