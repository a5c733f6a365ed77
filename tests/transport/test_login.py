"""Which keys are offered, and what is said when none is taken."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nodectl.transport import credentials
from nodectl.transport.channel import Unreachable
from nodectl.transport.pool import Pool
from nodectl.wire.secret import Secret
from tests.transport.sshd import Sshd, make_key


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without keys: what lies in the home of whoever runs these tests must not matter."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def agent(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """An ssh-agent of this test; the value adds a key to it."""
    path = tmp_path / "agent.sock"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    while not path.exists():
        assert process.poll() is None
    yield lambda key: void(subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True))
    process.terminate()
    process.wait(5)


def void(_: object) -> None:
    return None


def auth_error(pool: Pool, target: object) -> Unreachable:
    with pytest.raises(Unreachable) as caught:
        pool.channel(target)  # type: ignore[arg-type]
    assert caught.value.why == "auth"
    return caught.value


def test_a_named_key_is_the_only_one_offered(sshd: Callable[..., object], pool: Pool, agent: Callable[[Path], None], tmp_path: Path) -> None:
    """D26: eight keys in the agent, three tries allowed."""
    for number in range(8):
        agent(make_key(tmp_path / f"key{number}"))
    with sshd("MaxAuthTries 3") as server:  # type: ignore[attr-defined]
        assert pool.channel(server.target()).alive
        assert "Failed publickey" not in server.log
        pool.reset("n1")
        error = auth_error(pool, replace(server.target(), key_file=""))
        assert "the server hung up after" in error.reason
        assert "agent:key0 (ssh-ed25519 SHA256:" in error.reason
        assert "ansible_ssh_private_key_file" in error.hint


def test_without_a_named_key_the_agent_and_the_default_files_serve(server: Sshd, pool: Pool, agent: Callable[[Path], None], home: Path) -> None:
    target = replace(server.target(), key_file="")
    error = auth_error(pool, target)
    assert "nothing to offer: no key, no agent, no password" in error.reason
    agent(server.key)
    assert pool.channel(target).alive
    pool.reset("n1")
    subprocess.run(["ssh-add", "-q", "-D"], check=True, capture_output=True)
    (home / ".ssh" / "id_ed25519").write_bytes(server.key.read_bytes())
    assert pool.channel(target).alive
    pool.reset("n1")


def test_a_refused_login_lists_what_was_offered(server: Sshd, pool: Pool, home: Path, tmp_path: Path) -> None:
    wrong = make_key(tmp_path / "wrong")
    error = auth_error(pool, replace(server.target(), key_file=str(wrong), user="root"))
    assert f"offered: {wrong} (ssh-ed25519 SHA256:" in error.reason
    assert "login refused for user root" in error.reason
    assert "authorized_keys" in error.hint


def test_an_agent_that_does_not_answer_is_left_aside(
    server: Sshd, pool: Pool, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "AGENT_WAIT", 0.3)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead"))
        dead.listen()
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "dead"))
        assert f"ssh-agent at {tmp_path}/dead: it does not answer" in auth_error(pool, replace(server.target(), key_file="")).reason
        (home / ".ssh" / "id_ed25519").write_bytes(server.key.read_bytes())
        assert pool.channel(replace(server.target(), key_file="")).alive
        pool.reset("n1")


@pytest.mark.parametrize(("content", "words"), [(None, "there is no such file"), ("nonsense", "not usable")])
def test_a_key_file_that_is_no_key(server: Sshd, pool: Pool, home: Path, tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "bad"
    if content:
        path.write_text(content)
    error = auth_error(pool, replace(server.target(), key_file=str(path)))
    assert words in error.reason
    assert str(path) in error.reason


def test_a_key_with_a_passphrase_is_taken_from_the_agent(server: Sshd, pool: Pool, agent: Callable[[Path], None], tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    for suffix in ("", ".pub"):
        locked.with_name(f"locked{suffix}").write_bytes(server.key.with_name(f"{server.key.name}{suffix}").read_bytes())
    locked.chmod(0o600)
    agent(locked)
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-f", str(locked)], check=True, capture_output=True)
    target = replace(server.target(), key_file=str(locked))
    assert pool.channel(target).alive
    pool.reset("n1")
    subprocess.run(["ssh-add", "-q", "-D"], check=True, capture_output=True)
    assert "it needs a passphrase: ssh-add it" in auth_error(pool, target).reason


def test_a_password_that_is_refused_is_not_shown(server: Sshd, pool: Pool, home: Path) -> None:
    target = replace(server.target(), key_file="", password=Secret("hunter2"))
    error = auth_error(pool, target)
    assert "offered: password; the server takes: publickey" in error.reason
    assert "hunter2" not in error.reason + error.hint
    assert os.environ["HOME"] == str(home)
