"""Host keys: what is known, what is not, what changed, and the command that accepts it. The commands shown are run here."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nodectl.transport.channel import Target, Unreachable
from nodectl.transport.known_hosts import HostKey, KnownHosts, Refused, matches, read
from nodectl.transport.pool import Pool
from tests.transport.conftest import FAST
from tests.transport.sshd import Sshd, make_key


def fingerprint(key: Path) -> str:
    shown = subprocess.run(["ssh-keygen", "-lf", f"{key}.pub"], capture_output=True, text=True, check=True)
    return shown.stdout.split()[1]


def refusal(pool: Pool, target: Target) -> Unreachable:
    with pytest.raises(Unreachable) as caught:
        pool.channel(target)
    assert caught.value.why == "host_key"
    return caught.value


def accept(hint: str) -> None:
    """Do as the person does: paste the command from the last line."""
    subprocess.run(["sh", "-c", hint.rsplit("\n", 1)[1]], check=True, capture_output=True)


def test_an_unknown_key_is_refused_with_fingerprint_and_command(sshd: Callable[..., object], pool: Pool) -> None:
    with sshd() as server:  # type: ignore[attr-defined]
        server.known_hosts.unlink()
        error = refusal(pool, server.target())
        assert error.reason.startswith(f"n1 (root@127.0.0.1:{server.port}): its host key is not known: ssh-ed25519 {fingerprint(server.host_keys[0])}")
        assert str(server.known_hosts) in error.reason
        assert "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub" in error.hint
        assert "Accepted publickey" not in server.log
        accept(error.hint)
        assert pool.channel(server.target()).alive
        pool.reset("n1")


@pytest.mark.parametrize("bare", [False, True], ids=["with its port", "under the bare address"])
def test_a_changed_key_is_refused_with_both_fingerprints_and_the_place(sshd: Callable[..., object], pool: Pool, tmp_path: Path, bare: bool) -> None:
    old = make_key(tmp_path / "old")
    with sshd() as server:  # type: ignore[attr-defined]
        server.trust(old, "127.0.0.1" if bare else "")
        server.known_hosts.write_text("# our nodes\n" + server.known_hosts.read_text())
        error = refusal(pool, server.target())
        assert f"known is ssh-ed25519 {fingerprint(old)} ({server.known_hosts}:2)" in error.reason
        assert f"it showed ssh-ed25519 {fingerprint(server.host_keys[0])}" in error.reason
        assert "CHANGED" in error.reason
        assert "somebody may stand between" in error.hint
        accept(error.hint)
        assert fingerprint(old) not in server.known_hosts.read_text()
        assert pool.channel(server.target()).alive
        pool.reset("n1")


def test_the_type_that_is_known_is_asked_for(sshd: Callable[..., object], pool: Pool) -> None:
    with sshd(key_kinds=["ed25519", "ecdsa", "rsa"]) as server:  # type: ignore[attr-defined]
        for key in server.host_keys:
            server.trust(key)
            assert pool.channel(server.target(key.name)).alive, key
            pool.reset(key.name)


def test_hashed_names_are_found(sshd: Callable[..., object], pool: Pool) -> None:
    with sshd() as server:  # type: ignore[attr-defined]
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(server.known_hosts)], check=True, capture_output=True)
        assert server.known_hosts.read_text().startswith("|1|")
        assert pool.channel(server.target()).alive
        pool.reset("n1")


def test_accept_new_only_where_the_user_wrote_it(sshd: Callable[..., object], packed: bytes, tmp_path: Path) -> None:
    warned: list[str] = []
    pool = Pool(FAST, packed=packed, warn=warned.append)
    with sshd() as server:  # type: ignore[attr-defined]
        server.known_hosts.write_text("# no end of line")
        assert "StrictHostKeyChecking=no is not honoured" in refusal(pool, server.target(stricthostkeychecking="no")).reason
        new = server.target(stricthostkeychecking="accept-new")
        assert pool.channel(new).alive
        pool.reset("n1")
        assert pool.channel(server.target()).alive
        assert len(warned) == 1
        assert fingerprint(server.host_keys[0]) in warned[0]
        pool.reset("n1")
        server.trust(make_key(tmp_path / "other"))
        assert "CHANGED" in refusal(pool, new).reason
        forgetful = server.target(stricthostkeychecking="accept-new", userknownhostsfile="/dev/null")
        assert "no file to remember it" in refusal(pool, forgetful).reason
    pool.close()


def test_known_hosts_of_the_pool_and_host_key_alias(sshd: Callable[..., object], packed: bytes, tmp_path: Path) -> None:
    with sshd() as server:  # type: ignore[attr-defined]
        server.trust(server.host_keys[0], "gpu-7")
        pool = Pool(FAST, known_hosts=server.known_hosts, packed=packed)
        options = {"configfile": "/dev/null", "globalknownhostsfile": "none"}
        target = Target("n1", "127.0.0.1", server.port, key_file=str(server.key), options=options)
        refusal(pool, target)
        assert pool.channel(Target("n1", "127.0.0.1", server.port, key_file=str(server.key), options={**options, "hostkeyalias": "gpu-7"})).alive
        pool.close()


A, B = HostKey("ssh-ed25519", b"a" * 51), HostKey("ssh-ed25519", b"b" * 51)
TEXT_A = "ssh-ed25519 " + "YWFh" * 17


MATCHES = [
    ("10.0.0.7", "10.0.0.7", True),
    ("n1,10.0.0.7", "10.0.0.7", True),
    ("10.0.0.7", "10.0.0.70", False),
    ("[10.0.0.7]:2222", "[10.0.0.7]:2222", True),
    ("[10.0.0.7]:2222", "10.0.0.7", False),
    ("[10.0.0.*]:2222", "[10.0.0.7]:2222", True),
    ("10.0.0.?", "10.0.0.7", True),
    ("*.rack1,!bad.rack1", "bad.rack1", False),
    ("*.rack1,!bad.rack1", "good.rack1", True),
    ("GPU1", "gpu1", True),
    ("[fe80::1]:22", "[fe80::1]:22", True),
    ("|1|broken", "n1", False),
]


@pytest.mark.parametrize(("names", "name", "expected"), MATCHES)
def test_names(names: str, name: str, expected: bool) -> None:
    assert matches(names, name) is expected


def test_lines_that_are_no_keys_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_bytes(f"\n# note\nbroken\nn1 {TEXT_A}\n@cert-authority * {TEXT_A}\nn2 ssh-ed25519 %%%\n\xff\xfe\n@revoked n3 {TEXT_A} why\n".encode("latin-1"))
    assert [(entry.line, entry.names, entry.revoked) for entry in read(file)] == [(4, "n1", False), (8, "n3", True)]
    assert list(read(tmp_path / "absent")) == []


@pytest.mark.parametrize(
    ("text", "key", "problem"),
    [
        (f"n1 {TEXT_A}", A, ""),
        (f"n1 {TEXT_A}", B, "CHANGED"),
        (f"n1 {TEXT_A}", HostKey("ssh-rsa", b"x"), "CHANGED"),
        (f"n2 {TEXT_A}", A, "not known"),
        (f"@revoked n1 {TEXT_A}\nn1 {TEXT_A}", A, "revoked"),
        (f"@revoked n1 {TEXT_A}", B, "not known"),
        (f"@cert-authority n1 {TEXT_A}", A, "not known"),
    ],
)
def test_verdicts(tmp_path: Path, text: str, key: HostKey, problem: str) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(text + "\n")
    if not problem:
        assert KnownHosts([file]).verify("n1", 22, key) == ""
        return
    with pytest.raises(Refused, match=problem):
        KnownHosts([file]).verify("n1", 22, key)


def test_a_file_that_cannot_be_read_is_not_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be read"):
        KnownHosts([tmp_path]).verify("n1", 22, A)


def test_a_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "new" / "known_hosts"
    assert "accepted on first contact" in KnownHosts([file], "accept-new").verify("n1", 2222, A)
    assert file.read_text() == f"[n1]:2222 {TEXT_A}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_the_shared_server_is_known(server: Sshd) -> None:
    assert KnownHosts([server.known_hosts]).types("127.0.0.1", server.port) == ["ssh-ed25519"]
