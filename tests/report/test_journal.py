"""The journal survives what processes do: threads, torn lines, secrets, odd texts."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodectl.report.fold import fold
from nodectl.report.journal import BadJournal, Journal, JournalLost, read_journal
from nodectl.report.redact import Redactor
from nodectl.wire.event import Event
from nodectl.wire.secret import MASK, Secret

JSON = st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


def write(path: Path, *events: Event) -> Path:
    journal = Journal(path)
    for event in events:
        journal(event)
    journal.close()
    journal.close()  # idempotent
    return path


# No deadline: writing and reading a file takes what a busy machine lets it.
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(kind=st.text(), host=st.text(), value=JSON)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, kind: str, host: str, value: Any) -> None:
    event = Event(kind, 1.25, host, {"value": value})
    path = tmp_path_factory.mktemp("journal") / "events.jsonl"
    assert read_journal(write(path, event)) == [event]


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    assert write(tmp_path / "j", Event("x", 1.0)).stat().st_mode & 0o777 == 0o600


def test_a_full_disk_ends_the_run_with_the_reason() -> None:
    journal = Journal(Path("/dev/full"))
    with pytest.raises(JournalLost, match="/dev/full cannot be written: No space left on device"):
        journal(Event("a", 1.0))


def test_appends_to_what_is_there(tmp_path: Path) -> None:
    path = write(tmp_path / "j", Event("a", 1.0))
    assert [event.kind for event in read_journal(write(path, Event("b", 2.0)))] == ["a", "b"]


def test_lines_of_threads_never_mix(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")

    def emit(host: str) -> None:
        for number in range(100):
            journal(Event("progress", float(number), host, {"text": host * 500}))

    threads = [threading.Thread(target=emit, args=(f"n{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    events = read_journal(tmp_path / "j")
    assert len(events) == 400
    for i in range(4):
        assert [event.at for event in events if event.host == f"n{i}"] == [float(n) for n in range(100)]


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "j", Event("a", 1.0), Event("b", 2.0))
    path.write_bytes(path.read_bytes()[:-9])
    assert [event.kind for event in read_journal(path)] == ["a"]


@pytest.mark.parametrize("line", ["nonsense", "[]", "{}", '{"kind":"a","at":"soon","host":""}'])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "j"
    path.write_text(f'{{"kind":"a","at":1,"host":""}}\n{line}\n{{"kind":"b","at":2,"host":""}}\n')
    with pytest.raises(BadJournal, match=r"j:2: not an event"):
        read_journal(path)


def test_types_that_ought_not_be_there_do_not_end_a_run(tmp_path: Path) -> None:
    path = write(tmp_path / "j", Event("a", 1.0, "", {"path": Path("/x"), "set": {"b", "a"}, "secret": Secret("hunter22")}))
    assert read_journal(path)[0].data == {"path": "/x", "set": ["a", "b"], "secret": MASK}
    assert "hunter22" not in path.read_text()


REDACTED = [
    ("the password is hunter22!", f"the password is {MASK}!"),
    ({"hunter22": ["a", {"b": "xhunter22x"}]}, {MASK: ["a", {"b": f"x{MASK}x"}]}),
    (Secret("other"), MASK),
    (("a", "hunter22-long"), ["a", MASK]),
    (42, 42),
    (None, None),
    ("ab is short", "ab is short"),
]


@pytest.mark.parametrize(("value", "expected"), REDACTED)
def test_redactor(value: Any, expected: Any) -> None:
    redactor = Redactor([Secret("hunter22"), Secret("hunter22-long"), Secret("ab"), Secret("")])
    redactor.add(None)
    assert redactor.value(value) == expected


# secrets, a text in which they come, what is left of it
TOLD: list[tuple[list[str], str, str]] = [
    (['p"w\\x'], json.dumps({"password": 'p"w\\x'}), '{"password": "********"}'),
    (["pÿß!"], json.dumps(["pÿß!"]), '["********"]'),
    (["it's me"], repr(["it's \"me\"", "it's me"]), """['it\\'s "me"', "********"]"""),
    (["it's me"], "echo 'it'\"'\"'s me'", "echo ********"),
    (["a b&c/d"], "https://x/?p=a%20b%26c%2Fd", "https://x/?p=********"),
    (["first line\nsecond line"], "it printed second line only", "it printed ******** only"),
    (["abcdef", "defghi"], "xabcdefghix", "x********x"),
    (["aaaa"], "aaaaaaaa aaa", "******** aaa"),
    (["hunter22", "hunter22-long"], "hunter22-long hunter22", "******** ********"),
    (["****"], "a **** b ********", "a ******** b ********"),
    (["secret12"], "SECRET12 secret1 secret12x", "SECRET12 secret1 ********x"),
    (["müller12"], "m\\u00fcller12 müller12", "******** ********"),
]


@pytest.mark.parametrize(("secrets", "text", "left"), TOLD, ids=[text[:40] for _, text, _ in TOLD])
def test_a_secret_is_known_in_any_dress(secrets: list[str], text: str, left: str) -> None:
    redactor = Redactor(map(Secret, secrets))
    assert redactor.text(text) == left
    assert redactor.text(left) == left


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text("abcd", min_size=4, max_size=8), max_size=3), st.text("abcd", max_size=30))
def test_no_known_secret_is_left_and_nothing_else_is_lost(secrets: list[str], text: str) -> None:
    shown = Redactor(map(Secret, secrets)).text(text)
    assert not any(secret in shown for secret in secrets)
    covered = [False] * len(text)
    for secret in secrets:
        for place in range(len(text)):
            if text.startswith(secret, place):
                covered[place : place + len(secret)] = [True] * len(secret)
    assert shown.replace(MASK, "") == "".join(char for char, hidden in zip(text, covered, strict=True) if not hidden)


@pytest.mark.parametrize(("secret", "value", "shown"), [("12345678", 12345678, MASK), ("12345678", 1234567, 1234567), ("1234", 1234, 1234), ("123456", 123456.0, 123456.0)])
def test_a_password_of_digits_that_became_a_number(secret: str, value: Any, shown: Any) -> None:
    assert Redactor([Secret(secret)]).value({"a": [value]}) == {"a": [shown]}


@pytest.mark.parametrize("password", ["failed", "changed", "pass", "verdict", "status", "reason", "lost"])
def test_a_password_that_is_one_of_our_words_changes_no_outcome(password: str) -> None:
    """The exit code is made from the journal: a masked `failed` would have been a success."""
    redactor = Redactor([Secret(password)])
    events = [
        Event("run.start", 1.0, "", {"command": "bootstrap"}),
        Event("task.end", 1.0, "n1", {"task": "t", "status": "failed", "result": {"msg": f"my {password}"}}),
        Event("verdict", 1.0, "n2", {"verdict": "pass", "reasons": []}),
        Event("host.lost", 1.0, "n3", {"reason": f"said {password}"}),
    ]
    plain, masked = fold(events), fold(map(redactor.event, events))
    assert {name: (host.status, host.verdict) for name, host in masked.hosts.items()} == {name: (host.status, host.verdict) for name, host in plain.hosts.items()}
    assert masked.exit_code == plain.exit_code
    assert password not in masked.hosts["n3"].reason


def test_redacted_event_stays_json() -> None:
    event = Redactor([Secret("1234")]).event(Event("task.end", 1.0, "n1", {"pid": 1234, "text": '"1234"'}))
    assert json.loads(json.dumps(event.to_json()))["pid"] == 1234
    assert event.data["text"] == f'"{MASK}"'
