"""Descriptions, names and journals that are not as they should be: what cannot be launched on is left out with the reason, and nothing else is touched."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodectl.handoff.pool import pool_of
from nodectl.handoff.torchrun import torchrun
from nodectl.handoff.write import NotWritten, write_handoff
from nodectl.report.journal import Journal, read_journal
from nodectl.report.redact import Redactor
from nodectl.wire.event import Event
from nodectl.wire.secret import MASK, Secret
from tests.handoff.pool_events import check, node, start, verdict

GOOD = [node("n2"), verdict("n2")]

# what of n1's description is changed; words of the reason
USELESS: list[tuple[dict[str, Any], str]] = [
    ({"address": None}, "address is ''"), ({"address": ""}, "address is ''"), ({"address": 7}, "address is 7"), ({"address": "a b"}, "address is 'a b'"),
    ({"address": "a\nb"}, "address is"), ({"fabric_address": "10.0.0.1 slots=9\nevil"}, "fabric_address is"), ({"fabric_address": ["x"]}, "fabric_address is"),
    ({"nproc": 0}, "nproc is 0"), ({"nproc": -1}, "nproc is -1"), ({"nproc": "8"}, "nproc is '8'"), ({"nproc": 8.0}, "nproc is 8.0"), ({"nproc": True}, "nproc is True"),
    ({"nproc": None}, "nproc is None"), ({"nproc": 10**9}, "nproc is"), ({"gpus": -8}, "gpus is -8"), ({"gpus": "x"}, "gpus is"),
    ({"port": 0}, "port is 0"), ({"port": 65536}, "port is 65536"), ({"port": "22"}, "port is '22'"), ({"user": "a\nb"}, "user is"), ({"user": {"a": 1}}, "user is"),
    ({"torch_python": "py\nthon"}, "torch_python is"), ({"torch_python": 3.11}, "torch_python is 3.11"), ({"key_file": "k\x00"}, "key_file is"),
    ({"key_file": 'a"b'}, "holds a quote"), ({"ssh_options": "x"}, "ssh_options is 'x'"), ({"ssh_options": {"hostkeyalias": "a\nHost *"}}, "control character"),
    ({"env": ["A=1"]}, "env is"), ({"env": {"A": "1\nB=2"}}, "environment variable A holds a line break"), ({"env": {"-S": "x"}}, "'-S' is not a name"),
    ({"env": {"A B": "x"}}, "not a name"), ({"env": {"": "x"}}, "not a name"), ({"env": {"A": "\udcff"}}, "control character"), ({"interface": "eth0\n"}, "interface is"),
]


@pytest.mark.parametrize(("changes", "words"), USELESS, ids=[str(changes) for changes, _ in USELESS])
def test_a_node_that_no_launcher_can_use_is_left_out_and_the_others_go(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    """One such node once ended the run with a traceback, and nobody was handed off."""
    result = write_handoff([*start("n1", "n2"), node("n1", **changes), verdict("n1"), *GOOD], tmp_path)
    assert (result.hosts, result.world_size) == (("n2",), 8)
    (reason,) = json.loads((tmp_path / "excluded.json").read_text())["n1"]["reasons"]
    assert reason.startswith("it passed, but cannot be handed off: ")
    assert words in reason
    assert "n1" not in (tmp_path / "torchrun.sh").read_text()
    assert (tmp_path / "hostfile").read_text() == "10.0.0.2 slots=8\n"


BAD_NAMES = ["../../etc/x", "a/b", ".", "..", "-oProxyCommand=x", "a b", "a\nb", "*", "!n2", "n?", "a,b", 'a"b', "a'b", "$(id)", "`id`", "a;b", "a@b", "a#b", "a\\b", "a\x1b[2J"]
GOOD_NAMES = ["n1", "gpu-01.rack1.example.org", "10.0.0.1", "fe80::1", "node_1", "ünode", "a=b", "a~b", "a[1]", "a%b", "a+b"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_mean_something_else_in_a_file_or_on_a_line(name: str, tmp_path: Path) -> None:
    out = tmp_path / "inner" / "handoff"
    described = node("n1")
    result = write_handoff([*start("n2"), Event("node", 1.0, name, described.data), verdict(name), *GOOD], out)
    assert result.hosts == ("n2",)
    assert list(json.loads((out / "excluded.json").read_text())) == [name]
    assert [path for path in tmp_path.rglob("*") if path.is_file() and out not in path.parents] == []


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_names_that_an_inventory_takes(name: str, tmp_path: Path) -> None:
    result = write_handoff([Event("node", 1.0, name, node("n1").data), verdict(name)], tmp_path)
    assert result.hosts == (name,)
    assert (tmp_path / "env" / f"{name}.env").exists()


@pytest.mark.parametrize("word", ["@PYTHONS@", "@MASTER@", "@RUN@"])
def test_what_looks_like_a_mark_of_the_template_stays_what_it_is(word: str) -> None:
    pool = pool_of([Event("run.start", 0.0, "", {"run_id": word}), node("n1", torch_python=f"/opt/{word}/python"), verdict("n1")])
    text = torchrun(pool)
    assert f"pythons=(/opt/{word}/python)" in text
    assert f"Node pool of run {word}: 1 nodes" in text


def test_the_name_of_a_run_cannot_leave_its_comment() -> None:
    pool = pool_of([Event("run.start", 0.0, "", {"run_id": "x\nrm -rf /\n"}), *GOOD])
    assert [line for line in torchrun(pool).splitlines() if "rm -rf /" in line] == ["# Node pool of run x rm -rf / : 1 nodes, world size 8."]


# -- files


def test_texts_of_nodes_that_are_no_unicode_are_kept_as_escapes(tmp_path: Path) -> None:
    write_handoff([*start("n1"), verdict("n1", "fail", "it said \udcff"), check("n1", reason="\ud800"), *GOOD], tmp_path)
    assert json.loads((tmp_path / "excluded.json").read_text())["n1"]["reasons"] == ["it said \udcff"]
    assert json.loads((tmp_path / "evidence.json").read_text())["checks"]["n1"][0]["reason"] == "\ud800"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_evidence_is_json_for_every_reader(value: float, tmp_path: Path) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    write_handoff([*start("n1"), check("n1", value=value, floor=value), verdict("n1", "unknown", "odd"), *GOOD], tmp_path)
    found = json.loads((tmp_path / "evidence.json").read_text(), parse_constant=refuse)
    assert found["checks"]["n1"][0]["value"] == str(value)


@pytest.mark.parametrize("place", ["/dev/null/handoff", "/proc/nodectl/handoff"])
def test_a_folder_that_cannot_be_written_is_told(place: str) -> None:
    with pytest.raises(NotWritten, match=f"the handoff cannot be written: {Path(place).parent}"):
        write_handoff([*start("n2"), *GOOD], Path(place))


def test_a_handoff_that_is_cut_short_has_no_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torchrun.sh comes last: a disk that fills up leaves nothing that starts with half of its files."""
    write_handoff([*start("n2"), *GOOD], tmp_path)
    plain = Path.write_text
    written: list[str] = []

    def full(self: Path, *args: Any, **kwargs: Any) -> int:
        if len(written) == 4:
            raise OSError(28, "No space left on device", str(self))
        written.append(self.name)
        return plain(self, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(NotWritten, match="No space left on device"):
        write_handoff([*start("n2"), *GOOD], tmp_path)
    assert not (tmp_path / "torchrun.sh").exists()
    assert "torchrun.sh" not in written


def test_nodes_of_an_older_handoff_do_not_stay(tmp_path: Path) -> None:
    write_handoff([*start("n1", "n2"), node("n1"), verdict("n1"), *GOOD], tmp_path)
    write_handoff([*start("n1", "n2"), node("n1"), verdict("n1", "fail", "slow"), *GOOD], tmp_path)
    assert [path.name for path in (tmp_path / "env").iterdir()] == ["n2.env"]
    assert "n1" not in (tmp_path / "ssh_config").read_text()


# -- secrets


def test_no_secret_of_the_run_is_in_any_file(tmp_path: Path) -> None:
    """The handoff is made from the journal, and that is masked: whatever event a password came in."""
    password = "hunter22 with blanks"
    redactor = Redactor([Secret(password)])
    journal = Journal(tmp_path / "events.jsonl")
    events = [
        *start("n1", "n2", "n3"), node("n1", env={"TOKEN": password}), check("n1", reason=f"said {password}", raw=password, value=password), verdict("n1"),
        Event("task.end", 1.0, "n2", {"task": "t", "status": "failed", "result": {"msg": f"{password} is wrong", "stderr": password}}),
        Event("host.lost", 1.0, "n3", {"reason": f"after {password}", "hint": password}),
        verdict("n4", "fail", f"4: {password}"), *GOOD,
    ]
    for event in events:
        journal(redactor.event(event))
    journal.close()
    write_handoff(read_journal(tmp_path / "events.jsonl"), tmp_path / "handoff")
    texts = {path.name: path.read_text() for path in (tmp_path / "handoff").rglob("*") if path.is_file()}
    assert [name for name, text in texts.items() if "hunter22" in text] == []
    assert MASK in texts["excluded.json"]
    assert MASK in texts["evidence.json"]


def test_what_a_check_printed_raw_and_what_a_node_event_has_beside_stays_out(tmp_path: Path) -> None:
    write_handoff([*start("n2"), check("n2", raw="raw output"), node("n2", ansible_password="x9x9x9", become={"password": "x9x9x9"}), verdict("n2")], tmp_path)
    texts = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert "raw output" not in texts
    assert "x9x9x9" not in texts


# -- any journal

VALUES = st.none() | st.booleans() | st.integers(-3, 70000) | st.floats() | st.text(max_size=5) | st.lists(st.text(max_size=3), max_size=2) | st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)
KEYS = ["address", "fabric_address", "nproc", "gpus", "port", "user", "key_file", "torch_python", "connection", "backend", "ssh_options", "env", "verdict", "reasons", "reason", "name", "result"]
KINDS = ["node", "verdict", "check", "host.lost", "host.unreachable", "host.stopped", "task.end", "play.start", "run.start", "from.the.future"]
EVENTS = st.lists(st.builds(Event, st.sampled_from(KINDS), st.just(1.0), st.sampled_from(["n1", "n3", ""]), st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5)), max_size=8)


@settings(deadline=None, max_examples=40)
@given(EVENTS)
def test_any_events_leave_the_good_node_and_hand_off_only_what_passed(tmp_path_factory: pytest.TempPathFactory, events: list[Event]) -> None:
    out = tmp_path_factory.mktemp("handoff")
    result = write_handoff([*start("n2"), *events, *GOOD], out)
    assert "n2" in result.hosts
    assert set(result.hosts) & set(result.excluded) == set()
    assert result.world_size >= 8
    last = {event.host: event.data.get("verdict") for event in events if event.kind == "verdict"}
    assert all(last.get(host) == "pass" for host in result.hosts if host != "n2")


def test_a_verdict_about_nobody_is_nobodys(tmp_path: Path) -> None:
    result = write_handoff([*start("n2"), verdict(""), node(""), *GOOD], tmp_path)
    assert (result.hosts, result.excluded) == (("n2",), {})
