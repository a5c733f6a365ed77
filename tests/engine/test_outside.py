"""Lookups that reach outside the files: programs, the network, passwords, the inventory, the moment."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from nodectl.engine import outside
from nodectl.engine.outside import output
from tests.engine.playing import INVENTORY, ONE, Played, play

PLAY = "- hosts: all\n  gather_facts: false\n  tasks:\n"


def shown(folder: Path, expression: str, inventory: str = ONE, **options: Any) -> Any:
    played = played_with(folder, expression, inventory, **options)
    return played.shown("h1")[0][1]


def played_with(folder: Path, expression: str, inventory: str = ONE, **options: Any) -> Played:
    return play(folder, PLAY + f"    - debug: {{msg: \"{{{{ {expression} }}}}\"}}\n", inventory=inventory, **options)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("lookup('pipe', 'echo a; echo b')", "a\nb"), ("query('lines', 'echo a; echo b')", ["a", "b"]), ("lookup('pipe', 'basename $PWD')", "FOLDER"),
        ("query('inventory_hostnames', 'all')", ["h1", "h2"]), ("query('inventory_hostnames', 'all:!h1')", ["h2"]),
        ("query('inventory_hostnames', 'nowhere')", []), ("now(fmt='%Y') | int > 2000", True), ("now(utc=true).year > 2000", True),
        ("'%Y' | strftime | int > 2000", True), ("lookup('ansible.builtin.pipe', 'printf x')", "x"),
    ],
)  # fmt: skip
def test_what_templates_are_told(tmp_path: Path, expression: str, value: Any) -> None:
    assert shown(tmp_path, expression, INVENTORY) == (tmp_path.name if value == "FOLDER" else value)


def test_with_loops(tmp_path: Path) -> None:
    text = "    - {debug: {msg: '{{ item }}'}, with_lines: 'echo a; echo b'}\n    - {debug: {msg: '{{ item }}'}, with_inventory_hostnames: 'all:!h1'}\n"
    played = play(tmp_path, PLAY + text, inventory=INVENTORY)
    assert [value for _, value in played.shown("h1")] == [["a", "b"], ["h2"]]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("lookup('pipe', 'echo why >&2; exit 3')", "ended with 3: why"), ("lookup('pipe', 'sleep 9')", "did not end"), ("lookup('url', 'nonsense')", "is no address"),
        ("lookup('url', 'http://127.0.0.1:1/')", "refused"), ("lookup('password', 'f chars=')", "no characters"), ("lookup('config', 'X')", "not available"),
        ("lookup('password', 'f encrypt=rot13')", "no hash named"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_a_failed_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expression: str, said: str) -> None:
    monkeypatch.setattr(outside, "LIMIT", 0.5)
    played = played_with(tmp_path, expression)
    assert played.of("h1") == ["debug: failed"]
    assert said in played.kinds("task.end")[0].data["result"]["msg"]


@pytest.fixture
def server() -> Iterator[str]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path != "/404" else 404)
            self.end_headers()
            self.wfile.write(f"one\n{self.headers.get('Authorization', '-')} {self.headers.get('X-A', '-')}".encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    http = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    http.server_close()


def test_what_an_address_answers(tmp_path: Path, server: str) -> None:
    assert shown(tmp_path, f"query('url', '{server}/', headers={{'X-A': 'b'}})") == ["one", "- b"]
    assert shown(tmp_path, f"lookup('url', '{server}/', split_lines=false, username='u', password='p')") == "one\nBasic dTpw -"
    assert played_with(tmp_path, f"lookup('url', '{server}/404')").of("h1") == ["debug: failed"]


def test_a_password_is_made_once_kept_for_its_owner_and_never_shown(tmp_path: Path) -> None:
    task = "    - {set_fact: {a: \"{{ lookup('password', 'deep/pw length=12 chars=digits') }}\"}}\n    - {debug: {msg: \"{{ a }} {{ a | length }}\"}}\n"
    played = play(tmp_path, PLAY + task, inventory=INVENTORY)
    path = tmp_path / "deep/pw"
    password = path.read_text().strip()
    assert (len(password), password.isdigit(), stat.S_IMODE(path.stat().st_mode)) == (12, True, 0o600)
    assert not any(password in str(event.data) for event in played.events)
    assert played.of("h2") == played.of("h1")
    play(tmp_path, PLAY + task, inventory=INVENTORY)
    assert path.read_text().strip() == password


def test_a_hash_of_a_kept_password_stays_the_same(tmp_path: Path) -> None:
    first, second = (shown(tmp_path, "lookup('password', 'pw encrypt=sha256_crypt') | string | length") for _ in range(2))
    assert first == second
    assert " salt=" in (tmp_path / "pw").read_text()


@pytest.mark.parametrize(("expression", "options"), [("lookup('password', '/dev/null') is string", {}), ("lookup('password', 'pw') is string", {"check": True})])
def test_nothing_is_kept_where_nothing_may_be(tmp_path: Path, expression: str, options: dict[str, Any]) -> None:
    shown(tmp_path, expression, **options)
    assert not (tmp_path / "pw").exists()


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="cannot be run"):
        output(["/no/such/program"])
