"""Becoming another user. The sudo of most of these tests is a program of a page that behaves as sudo 1.9 does, first in the session's PATH:
no user is made on this machine. Real sudo with real users is a matter of the lab's tests."""

from __future__ import annotations

import os
import pwd
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nodectl.transport.become import Sudo
from nodectl.transport.channel import BecomeTarget, Limits, Target, Unreachable
from nodectl.transport.pool import Pool
from nodectl.wire.secret import Secret
from nodectl.wire.step import Step
from tests.transport.conftest import FAST
from tests.transport.fake_agent import write_script
from tests.transport.sshd import Sshd

PASSWORD = "correct horse $battery 'staple\u00e9"

FAKE_SUDO = r'''#!/usr/bin/env python3
import os, sys, time
args = sys.argv[1:]
folder = os.path.dirname(os.path.abspath(sys.argv[0]))
mode = open(folder + "/mode").read()
with open(folder + "/seen", "a") as seen:
    seen.write(repr(args) + "\n")
if mode == "requiretty":
    sys.exit("sudo: sorry, you must have a tty to run sudo")
if mode == "not allowed":
    sys.exit("ops is not in the sudoers file.")
if mode == "absent python":
    sys.exit("sudo: python3: command not found")
if mode == "own question":
    sys.stderr.write("Verification code: "); sys.stderr.flush(); sys.stdin.readline(); sys.exit(1)
if mode != "nopasswd":
    if "-n" in args:
        sys.exit("sudo: a password is required")
    prompt = args[args.index("-p") + 1]
    sys.stderr.write("We trust you have received the usual lecture.\n\n")
    time.sleep(0.5 if mode == "slow" else 0)
    for _ in range(3):
        sys.stderr.write(prompt); sys.stderr.flush()
        if sys.stdin.buffer.raw.readline().decode() == open(folder + "/password").read() + "\n":
            break
        sys.stderr.write("Sorry, try again.\n")
    else:
        sys.exit("sudo: 3 incorrect password attempts")
command = args[args.index("--") + 1:]
os.environ["SUDO_USER"] = "ops"
os.execvp(command[0], command)
'''


@pytest.fixture
def sudo(tmp_path: Path, sshd: Callable[..., object]) -> Callable[..., object]:
    """``with sudo("slow") as server``: an sshd whose sessions find our sudo first; ``more`` is further configuration."""
    folder = tmp_path / "bin"
    folder.mkdir()
    write_script(folder / "sudo", FAKE_SUDO)
    (folder / "password").write_text(PASSWORD)

    def start(mode: str, more: str = "") -> object:
        (folder / "mode").write_text(mode)
        return sshd(f"SetEnv PATH={folder}:{os.environ['PATH']}\n{more}")

    return start


def become(password: str | None) -> BecomeTarget:
    return BecomeTarget("root", password=Secret(password) if password is not None else None)


@pytest.mark.parametrize(("mode", "password"), [("nopasswd", None), ("nopasswd", PASSWORD), ("asks", PASSWORD), ("slow", PASSWORD)])
def test_sudo_starts_the_agent(sudo: Callable[..., object], pool: Pool, tmp_path: Path, mode: str, password: str | None) -> None:
    with sudo(mode) as server:  # type: ignore[attr-defined]
        channel = pool.channel(server.target(), become(password))
        seen = channel.submit(Step(1, "echo", {})).result(5).values
        assert seen["env"]["SUDO_USER"] == "ops"
        assert PASSWORD not in repr(seen)
        assert PASSWORD not in (tmp_path / "bin" / "seen").read_text()
        # The account's own agent runs beside it, over the same login.
        assert pool.channel(server.target()).submit(Step(1, "echo", {})).result(5).values["env"].get("SUDO_USER") is None
        assert server.log.count("Accepted publickey") == 1


def test_max_sessions_leads_to_a_second_login(sudo: Callable[..., object], pool: Pool) -> None:
    """D74: hardened nodes allow one session per connection."""
    with sudo("nopasswd", "MaxSessions 1") as server:  # type: ignore[attr-defined]
        first = pool.channel(server.target())
        second = pool.channel(server.target(), become(None))
        assert second.submit(Step(1, "echo", {})).result(5).values["env"]["SUDO_USER"] == "ops"
        assert first.submit(Step(1, "echo", {})).result(5).failed is False
        assert server.log.count("Accepted publickey") == 2
        pool.reset("n1")


def test_max_sessions_0_is_said(sshd: Callable[..., object], pool: Pool) -> None:
    with sshd("MaxSessions 0") as server, pytest.raises(Unreachable, match="opens no session"):  # type: ignore[attr-defined]
        pool.channel(server.target())


REFUSALS = {
    "wrong password": ("asks", "wrong", "sudo password rejected", "ansible_become_password"),
    "no password": ("asks", None, "sudo needs a password", "-K"),
    "requiretty": ("requiretty", None, "sudo demands a terminal", "!requiretty"),
    "not in sudoers": ("not allowed", PASSWORD, "may not use sudo", "/etc/sudoers.d/"),
    "another question": ("own question", PASSWORD, "sudo did not answer in time", "Verification code:"),
}


@pytest.mark.parametrize(("mode", "password", "reason", "hint"), REFUSALS.values(), ids=REFUSALS.keys())
def test_sudo_refusals_say_what_to_do(
    sudo: Callable[..., object], packed: bytes, mode: str, password: str | None, reason: str, hint: str
) -> None:
    pool = Pool(Limits(start=3.0 if mode == "own question" else 20.0), packed=packed)
    begin = time.monotonic()
    with sudo(mode) as server:  # type: ignore[attr-defined]
        with pytest.raises(Unreachable) as caught:
            pool.channel(server.target(), become(password))
        pool.close()
    assert caught.value.why == "sudo"
    assert caught.value.reason.startswith("n1: ")
    assert reason in caught.value.reason
    assert hint in caught.value.hint
    assert "[nodectl-" not in caught.value.reason + caught.value.hint
    assert time.monotonic() - begin < 10  # at once, and not at the end of Limits.start


def test_a_wrong_password_is_given_once(sudo: Callable[..., object], pool: Pool, tmp_path: Path) -> None:
    with sudo("asks") as server, pytest.raises(Unreachable):  # type: ignore[attr-defined]
        pool.channel(server.target(), become("wrong"))
    assert len((tmp_path / "bin" / "seen").read_text().splitlines()) == 1


def test_python_missing_behind_sudo_is_about_python(sudo: Callable[..., object], pool: Pool) -> None:
    with sudo("absent python") as server, pytest.raises(Unreachable) as caught:  # type: ignore[attr-defined]
        pool.channel(server.target(), become(None))
    assert caught.value.why == "python"


def test_without_sudo_on_the_node(tmp_path: Path, sshd: Callable[..., object], pool: Pool) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("env", "sh"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    with sshd(f"SetEnv PATH={tmp_path / 'bin'}") as server, pytest.raises(Unreachable) as caught:  # type: ignore[attr-defined]
        pool.channel(server.target(), become(None))
    assert (caught.value.why, caught.value.reason) == ("sudo", "n1: sudo is not installed")


def test_other_methods_are_refused(server: Sshd, pool: Pool) -> None:
    with pytest.raises(Unreachable, match="become method 'su' is not supported"):
        pool.channel(server.target(), BecomeTarget("root", method="su"))


def test_the_password_waits_for_the_prompt() -> None:
    sudo = Sudo(become("secret"))
    half = len(sudo.prompt) // 2
    assert not sudo.asked(b"lecture\n" + sudo.prompt[:half].encode())
    assert sudo.asked(sudo.prompt[half:].encode())
    assert not sudo.asked(b"")
    with pytest.raises(Unreachable, match="rejected"):
        sudo.asked(b"\nSorry, try again.\n" + sudo.prompt.encode())
    assert "secret" not in repr(sudo)
    assert "secret" not in " ".join(sudo.argv(["python3"]))
    assert Sudo(become("x")).prompt != sudo.prompt


@pytest.mark.skipif(not shutil.which("sudo") or os.getuid() != 0, reason="needs sudo and root: apt-get install sudo")
def test_real_sudo_to_an_account_that_every_debian_has(packed: bytes) -> None:
    pool = Pool(FAST, packed=packed)
    channel = pool.channel(Target("here", "localhost", connection="local"), BecomeTarget("nobody"))
    assert channel.facts["uid"] == pwd.getpwnam("nobody").pw_uid
    pool.close()
