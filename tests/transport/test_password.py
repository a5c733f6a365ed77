"""Password logins and second factors, against paramiko's own server: a real sshd would need an account with a password on this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest
from paramiko.common import AUTH_FAILED, AUTH_PARTIALLY_SUCCESSFUL, AUTH_SUCCESSFUL

from nodectl.transport.channel import Target, Unreachable
from nodectl.transport.dial import Over
from nodectl.transport.gate import Gates
from nodectl.transport.route import Router
from nodectl.transport.ssh import Dialer, Link
from nodectl.wire.secret import Secret
from tests.transport.sshd import make_key

PASSWORD = "s\u00e9same"


class Rules(paramiko.ServerInterface):
    """``methods`` have to succeed one after the other; ``seen`` records what was tried."""

    def __init__(self, methods: Sequence[str], answer: bool = True) -> None:
        self.left = list(methods)
        self.answer = answer
        self.seen: list[str] = []

    def get_allowed_auths(self, username: str) -> str:
        return ",".join(self.left[:1] or ["none"])

    def _judge(self, method: str, right: bool) -> int:
        self.seen.append(method)
        if not right or self.left[:1] != [method]:
            return AUTH_FAILED
        self.left.pop(0)
        return AUTH_PARTIALLY_SUCCESSFUL if self.left else AUTH_SUCCESSFUL

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return self._judge("publickey", self.answer)

    def check_auth_password(self, username: str, password: str) -> int:
        return self._judge("password", password == PASSWORD)

    def check_auth_interactive(self, username: str, submethods: str) -> int | paramiko.server.InteractiveQuery:
        self.seen.append("asked")
        return paramiko.server.InteractiveQuery("", "", ("Password: ", False)) if self.left[:1] == ["keyboard-interactive"] else AUTH_FAILED

    def check_auth_interactive_response(self, responses: list[str]) -> int:
        return self._judge("keyboard-interactive", list(responses) == [PASSWORD])


@contextmanager
def serving(folder: Path, rules: Rules) -> Iterator[Target]:
    """A server for one login; the value is how to get there."""
    host_key = make_key(folder / "host")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        transports: list[paramiko.Transport] = []

        def serve() -> None:
            connection, _ = listener.accept()
            transport = paramiko.Transport(connection)
            transports.append(transport)
            transport.set_log_channel("nodectl.paramiko")
            transport.add_server_key(paramiko.Ed25519Key.from_private_key_file(str(host_key)))
            transport.start_server(event=threading.Event(), server=rules)

        threading.Thread(target=serve, daemon=True).start()
        port = listener.getsockname()[1]
        public = host_key.with_name("host.pub").read_text().split()
        (folder / "known").write_text(f"[127.0.0.1]:{port} {public[0]} {public[1]}\n")
        options = {"configfile": "/dev/null", "globalknownhostsfile": "none", "userknownhostsfile": str(folder / "known")}
        yield Target("n1", "127.0.0.1", port, "ops", options=options)
        for transport in transports:
            transport.close()


@pytest.fixture(autouse=True)
def no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def dial(target: Target) -> Link:
    return Dialer(Router().route(target), Gates(), 10.0, print, Over()).dial()


LOGINS = {
    "password": (["password"], False, ["password"]),
    "keyboard-interactive": (["keyboard-interactive"], False, ["asked", "keyboard-interactive"]),
    "key, then password": (["publickey", "password"], True, ["publickey", "password"]),
    "password, then key": (["password", "publickey"], True, ["publickey", "password", "publickey"]),
    "key, then the password where it is asked for": (["publickey", "keyboard-interactive"], True, ["publickey", "asked", "keyboard-interactive"]),
}


@pytest.mark.parametrize(("methods", "with_key", "seen"), LOGINS.values(), ids=LOGINS.keys())
def test_logins_that_succeed(tmp_path: Path, methods: list[str], with_key: bool, seen: list[str]) -> None:
    rules = Rules(methods)
    with serving(tmp_path, rules) as target:
        key = str(make_key(tmp_path / "key")) if with_key else ""
        link = dial(replace(target, password=Secret(PASSWORD), key_file=key))
        assert link.alive
        link.close()
        assert not link.alive
    assert [word for word in rules.seen if word in seen] == seen


REFUSED = {
    "wrong password": (["password"], "wrong", False, "offered: password"),
    "key alone is not enough": (["publickey", "password"], None, True, "the server takes: password"),
    "password alone is not enough": (["password", "publickey"], PASSWORD, False, "the server takes: publickey"),
    "one key is not two": (["publickey", "publickey"], None, True, "the server takes: publickey"),
    "second factor wrong": (["publickey", "password"], "wrong", True, "password"),
}


@pytest.mark.parametrize(("methods", "password", "with_key", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_logins_that_are_refused(tmp_path: Path, methods: list[str], password: str | None, with_key: bool, words: str) -> None:
    rules = Rules(methods)
    with serving(tmp_path, rules) as target:
        key = str(make_key(tmp_path / "key")) if with_key else ""
        with pytest.raises(Unreachable) as caught:
            dial(replace(target, password=Secret(password) if password else None, key_file=key))
    assert caught.value.why == "auth"
    assert words in caught.value.reason
    assert "n1 (ops@127.0.0.1:" in caught.value.reason
    assert "wrong" not in caught.value.reason
    assert rules.seen.count("password") <= 1, "a wrong password is tried once: accounts get locked"
