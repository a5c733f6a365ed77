"""Secrets of an inventory, and of -e, in what is shown and in what is written down."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from nodectl.cli.main import run

SECRETS = ("Hunter-2a", "tok-3b7c9d", "sk-9f8e7d")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "hosts.yaml").write_text(
        f"all:\n  hosts:\n    here: {{ansible_connection: local, ansible_python_interpreter: {sys.executable}}}\n"
        "  vars:\n    db_password: Hunter-2a\n    s3: {user: me, secret_key: sk-9f8e7d}\n    token_file: /etc/token\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("option", [["--list"], ["--host", "here"]])
def test_an_inventory_is_shown_without_its_secrets(option: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inventory", "-i", "hosts.yaml", *option]) == 0
    out = capsys.readouterr().out
    assert not [secret for secret in SECRETS if secret in out]
    data = json.loads(out)
    shown = data["_meta"]["hostvars"]["here"] if option == ["--list"] else data
    assert (shown["db_password"], shown["s3"], shown["token_file"]) == ("********", {"user": "me", "secret_key": "********"}, "/etc/token")


def test_no_secret_that_a_program_prints_reaches_the_journal(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "echo {{ db_password }} {{ s3.secret_key }} {{ hf_token }}"
    (place / "play.yml").write_text(f"- hosts: all\n  gather_facts: false\n  tasks:\n    - {{command: '{said}', register: out}}\n    - {{debug: {{var: out}}}}\n")
    assert run(["run", "play.yml", "-i", "hosts.yaml", "-e", "hf_token=tok-3b7c9d", "--run-dir", "r", "-vv"]) == 0
    texts = [capsys.readouterr().out, *((place / "r" / name).read_text() for name in ("events.jsonl", "report.json"))]
    assert [secret for secret in SECRETS for text in texts if secret in text] == []
    assert "********" in texts[0]
