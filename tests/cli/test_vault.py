"""nodectl vault, and runs that need a vault: as a person uses them, and with ansible-vault on the other side."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nodectl.cli.main import run
from nodectl.lang.vault import Vault, encrypt, is_encrypted
from nodectl.wire.secret import Secret

pytestmark = pytest.mark.servers

CLEAR = "db_password: hunter2-long\n"
PASSWORD = Secret("sesam")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_VAULT_IDENTITY_LIST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pw").write_text("sesam\n")
    (tmp_path / "v.yml").write_text(CLEAR)
    return tmp_path


def sealed(path: Path, text: str = CLEAR) -> None:
    path.write_text(encrypt(text.encode(), PASSWORD))


def opened(path: Path) -> str:
    return Vault({"default": [PASSWORD]}).text(path.read_text())


def ansible_vault(*argv: str) -> str:
    words = [sys.executable, "-m", "ansible.cli.vault", *argv, "--vault-password-file", "pw"]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout


def test_ansible_vault_and_nodectl_vault_read_each_other(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "v.yml").chmod(0o640)
    assert run(["vault", "encrypt", "v.yml", "--vault-password-file", "pw"]) == 0
    assert stat.S_IMODE((place / "v.yml").stat().st_mode) == 0o640
    assert ansible_vault("view", "v.yml") == CLEAR
    (place / "w.yml").write_text(CLEAR)
    ansible_vault("encrypt", "w.yml")
    capsys.readouterr()
    assert run(["vault", "view", "v.yml", "w.yml", "--vault-password-file", "pw"]) == 0
    assert capsys.readouterr().out == CLEAR * 2
    assert run(["vault", "decrypt", "w.yml", "--vault-password-file", "pw"]) == 0
    assert (place / "w.yml").read_text() == CLEAR
    assert sorted(path.name for path in place.iterdir()) == ["pw", "v.yml", "w.yml"]


def test_a_new_password(place: Path) -> None:
    sealed(place / "v.yml")
    (place / "new").write_text("other")
    assert run(["vault", "rekey", "v.yml", "--vault-password-file", "pw", "--new-vault-id", "prod@new"]) == 0
    assert Vault({"prod": [Secret("other")]}).text((place / "v.yml").read_text()) == CLEAR


def test_encrypt_string_is_a_line_of_yaml(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["vault", "encrypt-string", "hunter2", "-n", "token", "--vault-id", "prod@pw"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("token: !vault |\n  $ANSIBLE_VAULT;1.2;AES256;prod\n  ")
    (place / "hosts.yaml").write_text(f"all:\n  hosts: {{n1: {{}}}}\n  vars:\n    {out.replace(chr(10), chr(10) + '    ')}\n")
    assert run(["inventory", "-i", "hosts.yaml", "--host", "n1", "--vault-password-file", "pw"]) == 0
    assert capsys.readouterr().out == '{\n    "token": "********"\n}\n'


EDITORS = [("sed -i s/hunter2/hunter3/", 0, CLEAR.replace("2", "3")), ("true", 0, CLEAR), ("false", 1, CLEAR)]


@pytest.mark.parametrize(("editor", "code", "left"), EDITORS, ids=[editor for editor, *_ in EDITORS])
def test_edit(editor: str, code: int, left: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", editor)
    monkeypatch.delenv("VISUAL", raising=False)
    sealed(place / "v.yml")
    before = (place / "v.yml").read_text()
    assert run(["vault", "edit", "v.yml", "--vault-password-file", "pw"]) == code
    assert opened(place / "v.yml") == left
    assert (before == (place / "v.yml").read_text()) is (left == CLEAR)
    assert not list(Path("/dev/shm").glob("nodectl-vault-*"))


WRONG = [
    ("vault encrypt v.yml", "no vault password was given"), ("vault view v.yml --vault-password-file pw", "v.yml is not encrypted"),
    ("vault decrypt none.yml --vault-password-file pw", "none.yml: No such file"), ("vault view s.yml --vault-password-file other", "does not open it"),
    ("vault encrypt v.yml s.yml --vault-password-file pw", "s.yml is encrypted already"), ("vault rekey s.yml --vault-password-file pw", "--new-vault-id"),
    ("vault view s.yml --vault-password-file empty", "it is empty"), ("vault view s.yml --vault-password-file gone", "No such file"),
    ("vault view s.yml --vault-id x@fails", "ended with status 3"), ("vault encrypt v.yml --vault-id a@pw --vault-id b@pw", "say which"),
    ("vault encrypt v.yml --vault-id a@pw --encrypt-vault-id b", "no password with the label 'b'"),
    ("check -i hosts.yaml --vault-password-file other", "does not open it"),
]


@pytest.mark.parametrize(("line", "word"), WRONG, ids=[line for line, _ in WRONG])
def test_a_mistake_is_told_and_nothing_is_touched(line: str, word: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sealed(place / "s.yml")
    (place / "other").write_text("not it")
    (place / "empty").write_text("\n")
    (place / "fails").write_text("#!/bin/sh\nexit 3\n")
    (place / "fails").chmod(0o700)
    (place / "hosts.yaml").write_text("all: {hosts: {n1: {}}}\n")
    (place / "group_vars").mkdir()
    sealed(place / "group_vars" / "all.yml")
    before = {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}
    assert run(line.split()) == 1
    said = capsys.readouterr()
    assert word in said.err + said.out
    assert "Traceback" not in said.err
    assert "hunter2" not in said.err + said.out
    assert {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()} == before


SOURCES = [["--vault-password-file", "pw"], ["--vault-id", "prod@pw"], ["--vault-id", "pw"], ["--vault-id", "prod@ask-client"], []]


@pytest.mark.parametrize("source", SOURCES, ids=" ".join)
def test_a_run_uses_what_is_encrypted_and_shows_none_of_it(
    source: list[str], place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not source:
        monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(place / "pw"))
    (place / "ask-client").write_text('#!/bin/sh\n[ "$1 $2" = "--vault-id prod" ] && echo sesam\n')
    (place / "ask-client").chmod(0o700)
    (place / "hosts.yaml").write_text(f"all: {{hosts: {{n1: {{ansible_connection: local, ansible_python_interpreter: {sys.executable}}}}}}}\n")
    (place / "group_vars").mkdir()
    sealed(place / "group_vars" / "all.yml")
    sealed(place / "later.yml", "late: hunter4-long\n")
    sealed(place / "tasks.yml", "- command: echo {{ db_password }} {{ late }}\n  changed_when: false\n")
    sealed(place / "key.txt", "hunter5-long\n")
    sealed(place / "conf.j2", "password = {{ db_password }}\nhunter6-long\n")
    tasks = ["include_vars: later.yml", "include_tasks: tasks.yml", "copy: {src: key.txt, dest: HERE/key.out, mode: '0600'}", "template: {src: conf.j2, dest: HERE/conf.out}"]
    lines = "".join(f"    - {task}\n" for task in tasks).replace("HERE", str(place))
    (place / "play.yml").write_text(f"- hosts: all\n  gather_facts: false\n  tasks:\n{lines}")
    assert run(["run", "play.yml", "-i", "hosts.yaml", "-vvv", "--diff", "--run-dir", "r", *source]) == 0
    assert (place / "key.out").read_text() == "hunter5-long\n"
    assert (place / "conf.out").read_text() == "password = hunter2-long\nhunter6-long\n"
    said = capsys.readouterr()
    shown = said.out + said.err + "".join(path.read_text() for path in (place / "r").rglob("*") if path.is_file())
    assert [word for word in ("hunter2", "hunter4", "hunter5", "hunter6", "sesam") if word in shown] == []
    assert is_encrypted((place / "key.txt").read_text())
