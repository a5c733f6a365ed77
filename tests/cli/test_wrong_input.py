"""Every command with everything that can be wrong with what it is given: exit code 1, one text that says what and what to do, nothing touched, no traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from nodectl.cli.hide import VALUED, hidden_argv
from nodectl.cli.main import COMMANDS, cli, run
from nodectl.diagnostics.codes import CODES
from nodectl.engine.catalogue import names

ROOT = Path(__file__).parents[2]
LOCAL = f"{{ansible_connection: local, ansible_python_interpreter: {sys.executable}}}"
# Files that cases speak of by name. None: a folder.
FILES: dict[str, bytes | None] = {
    "hosts.yaml": f"all:\n  hosts:\n    here: {LOCAL}\n  children:\n    gpu: {{hosts: {{here: {{}}}}}}\n".encode(),
    "play.yml": b"- hosts: gpu\n  gather_facts: false\n  tasks:\n    - {name: one, command: echo hi, tags: [x], changed_when: false}\n",
    "folder": None, "empty.yaml": b"", "latin.yml": b"- hosts: \xfc\n", "binary.yml": b"\x00\x01\x02", "torn.yml": b"- hosts: [all\n", "text.yml": b"just text\n",
    "list.yml": b"- a\n- b\n", "vars.yml": b"a: 1\nb: [x, y]\n", "nohosts.yaml": b"all: {children: {gpu: {}}}\n", "toml.toml": b"[[step]]\nkind = 'nope'\n",
    "loop.yml": b"- import_playbook: loop.yml\n", "pass": b"hunter22\n", "nopass": b"", "run/events.jsonl": b'{"kind":"run.start","at":1,"host":"","command":"run"}\n',
    "half/events.jsonl": b'{"kind":"run.start","at":1,"host":"","command":"run","run_id":"half"}\n{"kind":"play.start","at":1,"host":"","hosts":["n1"]}\n{"kind":"ta',
    "torn/events.jsonl": b'{"kind":"run.start","at":1,"host":""}\nnonsense\n{"kind":"x","at":1,"host":""}\n', "void/events.jsonl": b"", "odd/events.jsonl/x": b"",
    "proven/events.jsonl": b'{"kind":"run.start","at":1,"host":"","command":"verify"}\n{"kind":"verdict","at":1,"host":"n1","verdict":"fail","reasons":["slow"]}\n{"kind":"ta',
    "onlytorn/events.jsonl": b'{"kind":"run.st', "bare": None,
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUN = ["run", "play.yml", "-i", "hosts.yaml"]
# command line; words of what is said, all of them
WRONG: list[tuple[list[str], list[str]]] = [
    # playbooks
    (["run", "missing.yml", "-i", "hosts.yaml"], ["E109", "missing.yml"]),
    (["run", "folder", "-i", "hosts.yaml"], ["E109", "folder"]),
    (["run", "latin.yml", "-i", "hosts.yaml"], ["E109", "latin.yml", "UTF-8"]),
    (["run", "binary.yml", "-i", "hosts.yaml"], ["binary.yml"]),
    (["run", "torn.yml", "-i", "hosts.yaml"], ["E101", "torn.yml:"]),
    (["run", "text.yml", "-i", "hosts.yaml"], ["E201", "text.yml"]),
    (["run", "empty.yaml", "-i", "hosts.yaml"], ["E201", "empty.yaml", "no play"]),
    (["run", "loop.yml", "-i", "hosts.yaml"], ["loop.yml"]),
    (["plan", "missing.yml", "-i", "hosts.yaml"], ["E109", "missing.yml"]),
    (["check", "missing.yml", "torn.yml", "-i", "hosts.yaml"], ["missing.yml", "torn.yml:"]),
    (["bootstrap", "hosts.yaml", "--playbook", "missing.yml"], ["E109", "missing.yml"]),
    # inventories
    (["run", "play.yml", "-i", "missing.yaml"], ["missing.yaml"]),
    (["run", "play.yml", "-i", "bare"], ["bare"]),
    (["run", "play.yml", "-i", "empty.yaml"], ["empty.yaml"]),
    (["run", "play.yml", "-i", "nohosts.yaml"], ["E311", "no hosts"]),
    (["run", "play.yml", "-i", "latin.yml"], ["latin.yml", "UTF-8"]),
    (["run", "play.yml", "-i", "torn.yml"], ["E101", "torn.yml:"]),
    (["run", "play.yml", "-i", ","], ["host"]),
    (["run", "play.yml", "-i", ""], ["host"]),
    (["run", "play.yml", "-i", "n1,,"], ["gpu"]),
    (["run", "play.yml"], ["Missing option", "-i"]),
    (["bootstrap", "missing.yaml"], ["missing.yaml"]),
    (["verify", "missing.yaml"], ["missing.yaml"]),
    (["verify", "nohosts.yaml"], ["E311", "no hosts"]),
    (["ping", "-i", "missing.yaml"], ["missing.yaml"]),
    (["ping", "-i", "nohosts.yaml"], ["no hosts"]),
    (["facts", "-i", "missing.yaml"], ["missing.yaml"]),
    (["inventory", "-i", "missing.yaml"], ["missing.yaml"]),
    (["inventory", "-i", "hosts.yaml", "--host", "her"], ["E304", "her", "here"]),
    (["inventory", "-i", "hosts.yaml", "--graph", "--host", "here"], ["exclude each other"]),
    # patterns
    (["ping", "gpus", "-i", "hosts.yaml"], ["E304", "gpus", "gpu"]),
    (["facts", "gpus", "-i", "hosts.yaml"], ["E304", "gpus"]),
    ([*RUN, "-l", "hree"], ["E304", "hree"]),
    ([*RUN, "-l", "~["], ["E305"]),
    ([*RUN, "-l", "all:!here"], ["E304", "leaves no host"]),
    ([*RUN, "-l", "@missing.txt"], ["missing.txt"]),
    (["verify", "hosts.yaml", "-l", "nope"], ["E304", "nope"]),
    (["bootstrap", "hosts.yaml", "-l", "nope"], ["E304", "nope"]),
    # -e
    ([*RUN, "-e", "novalue"], ["E404", "NAME=VALUE"]),
    ([*RUN, "-e", "1a=b"], ["E404", "NAME=VALUE"]),
    ([*RUN, "-e", "a='open"], ["E404", "close the quotes"]),
    ([*RUN, "-e", '{"a": '], ["E404", "looks like JSON but is not"]),
    ([*RUN, "-e", "@missing.yml"], ["E109", "missing.yml"]),
    ([*RUN, "-e", "@folder"], ["E109", "folder"]),
    ([*RUN, "-e", "@list.yml"], ["list.yml"]),
    ([*RUN, "-e", "@torn.yml"], ["E101", "torn.yml:"]),
    ([*RUN, "-e", "@latin.yml"], ["latin.yml"]),
    ([*RUN, "-e", "@"], ["E109"]),
    ([*RUN, "-e", "a"], ["E404"]),
    ([*RUN, "-e", "[1, 2]"], ["E404"]),
    ([*RUN, "-e"], ["requires an argument"]),
    # options of the run
    ([*RUN, "--tags", "y"], ["E401", "y"]),
    ([*RUN, "--skip-tags", "y"], ["E401", "y"]),
    ([*RUN, "--start-at-task", "two"], ["two"]),
    ([*RUN, "--forks", "0"], ["--forks", "0"]),
    ([*RUN, "--forks", "many"], ["--forks", "many"]),
    ([*RUN, "-T", "0"], ["--timeout", "0"]),
    ([*RUN, "-T", "nan"], ["--timeout", "nan"]),
    ([*RUN, "--format", "xml"], ["--format", "xml"]),
    ([*RUN, "--become-password-file", "missing"], ["E405", "missing"]),
    ([*RUN, "--become-password-file", "folder"], ["E405", "folder"]),
    ([*RUN, "--become-password-file", "nopass"], ["E405", "is empty"]),
    ([*RUN, "--run-dir", "run"], ["E406", "holds a run already"]),
    ([*RUN, "--run-dir", "pass"], ["E406", "pass"]),
    ([*RUN, "--run-dir", "/proc/x/y"], ["E406", "cannot be made"]),
    ([*RUN, "--run-dir", "/dev/null/x"], ["E406", "cannot be made"]),
    ([*RUN, "--nonsense"], ["--nonsense"]),
    ([*RUN, "extra"], ["extra"]),
    (["bootstrap", "hosts.yaml", "--suite", "prefligt"], ["E407", "preflight"]),
    (["verify", "hosts.yaml", "--suite", "missing.toml"], ["E407", "missing.toml"]),
    (["verify", "hosts.yaml", "--suite", "toml.toml"], ["E407", "unknown kind 'nope'"]),
    (["verify", "hosts.yaml", "--suite", ""], ["E407"]),
    # runs of the past
    (["report"], ["Missing argument"]),
    (["report", "missing"], ["does not exist"]),
    (["report", "pass"], ["is a file"]),
    (["report", "bare"], ["E406", "no events.jsonl", ".nodectl/runs/latest"]),
    (["report", "void"], ["E406", "is empty"]),
    (["report", "onlytorn"], ["E406", "is empty"]),
    (["report", "torn"], ["E406", "events.jsonl:2"]),
    (["report", "odd"], ["E406", "odd/events.jsonl", "directory"]),
    (["handoff"], ["Missing argument"]),
    (["handoff", "missing"], ["does not exist"]),
    (["handoff", "bare"], ["E406", "no events.jsonl"]),
    (["handoff", "torn"], ["E406", "events.jsonl:2"]),
    (["handoff", "void"], ["E406", "is empty"]),
    (["handoff", "run"], ["E406", "this run verified nothing"]),
    (["handoff", "half"], ["E406", "this run verified nothing"]),
    (["handoff", "proven", "--out", "pass"], ["E406", "cannot be written", "pass"]),
    (["handoff", "proven", "--out", "/proc/x"], ["E406", "cannot be written"]),
    # words
    (["doc", "comand"], ["there is no module 'comand'", "did you mean 'command'?"]),
    (["doc", "zzz"], ["nodectl doc lists them all"]),
    (["doc", "--all", "--out", "pass"], ["pass"]),
    (["doc", "--all", "--out", "/proc/x"], ["/proc/x"]),
    (["explain", "E99"], ["there is no code 'E99'"]),
    (["nonsense"], ["nonsense"]),
    (["bootstrp"], ["bootstrp"]),
    (["lab", "nonsense"], ["nonsense"]),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "words"), WRONG, ids=[" ".join(argv) for argv, _ in WRONG])
def test_wrong_input(argv: list[str], words: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert [word for word in words if word not in said.err] == []
    assert "Traceback" not in said.err
    assert not re.search(r"\bErrno\b|<class|object at 0x", said.err)
    assert not (place / ".nodectl").exists() or not list((place / ".nodectl").rglob("crash-*"))
    assert not (place / ".nodectl" / "runs").exists()


# command line; words of standard output
RIGHT: list[tuple[list[str], list[str]]] = [
    (RUN, ["here : ok=1 changed=0", "exit code 0"]),
    ([*RUN, "--list-tasks"], ["one  TAGS: [x]"]),
    ([*RUN, "--list-hosts"], ["hosts (1):", "here"]),
    ([*RUN, "--list-hosts", "-l", "gpu"], ["here"]),
    ([*RUN, "--syntax-check"], ["play.yml: no mistakes found"]),
    ([*RUN, "--tags", "x"], ["ok=1"]),
    ([*RUN, "--tags", "all"], ["ok=1"]),
    ([*RUN, "--skip-tags", "x"], ["ok=0"]),
    ([*RUN, "-e", "a=1 b=2", "-e", '{"c": [1]}', "-e", "@vars.yml", "--syntax-check"], ["no mistakes found"]),
    ([*RUN, "-e", "", "--syntax-check"], ["no mistakes found"]),
    ([*RUN, "-e", '{"a": {}}', "--syntax-check"], ["no mistakes found"]),
    ([*RUN, "-e", " {}", "--syntax-check"], ["no mistakes found"]),
    (["plan", "play.yml", "-i", "hosts.yaml"], ["skipped=1", "nothing was changed"]),
    (["check", "play.yml", "-i", "hosts.yaml"], ["play.yml: no mistakes found"]),
    (["ping", "-i", "hosts.yaml"], ["here | SUCCESS => pong"]),
    (["inventory", "-i", "hosts.yaml"], ['"_meta"', '"here"']),
    (["inventory", "-i", "hosts.yaml", "--graph"], ["@all:", "|--@gpu:", "here"]),
    (["inventory", "-i", "hosts.yaml", "--host", "here"], ['"ansible_connection": "local"']),
    (["inventory", "-i", "a,b,", "-l", "b"], ['"b"']),
    (["report", "run"], ["exit code 0: done", "the journal has no end"]),
    (["report", "half"], ["n1", "the journal has no end"]),
    (["report", "half", "--json"], ['"complete": false', '"n1"']),
    (["report", "half", "--log", "-vv", "-D"], ["PLAY"]),
    (["handoff", "proven"], ["handed off: no node (world size 0)"]),
    (["handoff", "proven", "--out", "new/deep/folder"], ["new/deep/folder"]),
    (["doc"], ["copy", "scratch_disks"]),
    (["doc", "ansible.builtin.copy"], ["# ", "| `dest`"]),
    (["explain"], ["E101", "E407"]),
    (["explain", "e101"], ["# E101"]),
    (["lab", "--help"], ["fault", "lift"]),
    (["lab", "fault"], ["HOST slow-link"]),
]


@pytest.mark.parametrize(("argv", "words"), RIGHT, ids=[" ".join(argv) for argv, _ in RIGHT])
def test_right_input(argv: list[str], words: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == 0, capsys.readouterr().err
    said = capsys.readouterr()
    assert [word for word in words if word not in said.out] == []
    assert said.err == ""


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_explained(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", code]) == 0
    assert capsys.readouterr().out == (ROOT / "docs" / "errors" / f"{code}.md").read_text("utf-8")


@pytest.mark.parametrize("name", names())
def test_every_module_has_its_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doc", name]) == 0
    page = capsys.readouterr().out
    assert page.startswith(f"# {name}\n")
    assert page.endswith("\n")
    assert "object at 0x" not in page


# -- formats

MISTAKES = b"- hosts: gppu\n  tasks:\n    - {command: echo, whem: x}\n    - {copy: {dest: /x, contnt: y}}\n"


def mistakes(place: Path, form: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    (place / "bad.yml").write_bytes(MISTAKES)
    assert run(["run", "bad.yml", "-i", "hosts.yaml", "--format", form]) == 1
    said = capsys.readouterr()
    return said.out, said.err


def test_machines_read_json_on_standard_output(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = mistakes(place, "json", capsys)
    found = json.loads(out)
    listed = found["diagnostics"] if isinstance(found, dict) else found
    assert err == ""
    assert {"gppu", "whem", "contnt"} <= {word for word in ("gppu", "whem", "contnt") if any(word in one["message"] for one in listed)}
    assert all(one["code"] in CODES for one in listed)


def test_github_gets_one_command_per_mistake(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = mistakes(place, "github", capsys)
    lines = out.splitlines()
    assert err == ""
    assert len(lines) >= 3
    assert all(re.match(r"::(error|warning) file=bad\.yml,line=\d+,col(umn)?=\d+", line) for line in lines), lines


def test_people_read_all_of_it_on_standard_error(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = mistakes(place, "human", capsys)
    assert out == ""
    for line, word in ((1, "gppu"), (3, "whem"), (4, "contnt")):
        assert f"bad.yml:{line}:" in err
        assert word in err
    assert err.count("^") >= 3
    assert "4 mistakes found; no node was touched." in err


# -- terminals


def on_terminal(argv: list[str], place: Path, **environment: str) -> str:
    """What a terminal would get; one of 100 columns."""
    pid, master = os.forkpty()
    if pid == 0:
        os.chdir(place)
        os.environ.update({"TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": str(ROOT), **environment})
        os.execv(sys.executable, [sys.executable, "-m", "nodectl", *argv])
    read = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        read += piece
    os.waitpid(pid, 0)
    os.close(master)
    return read.decode()


@pytest.mark.parametrize(("environment", "colour"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)], ids=["plain", "NO_COLOR", "dumb"])
def test_colours_are_for_terminals_that_want_them(environment: dict[str, str], colour: bool, place: Path) -> None:
    said = on_terminal(["report", "half"], place, **environment)
    assert "PLAY RECAP" in said
    assert bool(re.search("\x1b\\[[0-9;]*3[0-9]m", said)) is colour


def test_a_file_gets_neither_colours_nor_a_width(place: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "nodectl", "report", "half"], cwd=place, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT), "FORCE_COLOR": ""})
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


# -- what is written down of a command line

SECRET = "hunter22"
ARGV: list[list[str]] = [
    ["-e", f"p={SECRET}"], [f"-ep={SECRET}"], ["--extra-vars", f"p={SECRET}"], [f"--extra-vars=p={SECRET}"], ["-be", f"p={SECRET}"], [f"-bep={SECRET}"], ["-vvCDe", f"p={SECRET}"],
    ["-e", f"a=1 p={SECRET}"], ["-e", f'{{"p": "{SECRET}"}}'], ["-l", "gpu", "-e", f"p={SECRET}"], ["-lgpu", "-e", f"p={SECRET}"], ["-e", "a=1", "-e", f"p={SECRET}"],
    ["-e", "-e", "-e", f"p={SECRET}"], ["-f", "4", "-bve", f"p='{SECRET} {SECRET}'"],
]


@pytest.mark.parametrize("argv", ARGV, ids=" ".join)
def test_no_value_of_e_is_written_down_however_it_was_given(argv: list[str]) -> None:
    assert SECRET not in " ".join(hidden_argv(["run", "play.yml", *argv]))


KEPT = [["-l", "e"], ["-le"], ["-i", "-e"], ["-tele"], ["-ihosts.yaml"], ["-t", "else=x"], ["-ue"], ["--limit", "a=b"], ["--", "x=y"], ["-e", "@file.yml"], ["-e@file.yml"], ["-"], ["-vv"]]


@pytest.mark.parametrize("argv", KEPT, ids=" ".join)
def test_everything_else_stays_readable(argv: list[str]) -> None:
    assert hidden_argv(argv) == argv


def test_the_short_options_with_values_are_those_of_click() -> None:
    context = click.Context(cli)
    # collective has nccl-tests' letters: what must stay out of its journal has no short option there (test_collective_command.py)
    commands = [cli.get_command(context, name) for name in COMMANDS if name not in ("lab", "collective")]
    options = [param for command in commands if command for param in command.params if isinstance(param, click.Option)]
    valued = {name[1] for option in options if not option.is_flag and not option.count for name in option.opts if re.fullmatch("-[a-zA-Z]", name)}
    assert valued == set(VALUED)


def test_the_journal_of_a_run_has_no_value_of_e(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    argv = [*RUN, "-ve", f"token={SECRET}", "--run-dir", "r"]
    monkeypatch.setattr(sys, "argv", ["nodectl", *argv])
    assert run(argv) == 0
    assert SECRET.encode() not in (place / "r" / "events.jsonl").read_bytes()


# -- secrets of the inventory


@pytest.mark.parametrize("written", ["hunter22", "12345678", "'12345678'"])
def test_passwords_of_the_inventory_stay_out_of_everything(written: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also one of digits without quotes, which YAML makes a number."""
    text = FILES["hosts.yaml"]
    assert text is not None
    (place / "hosts.yaml").write_text(text.decode() + f"  vars: {{ansible_become_password: {written}}}\n")
    (place / "play.yml").write_text(f"- hosts: all\n  gather_facts: false\n  tasks:\n    - {{command: echo {written.strip(chr(39))} is it, register: said}}\n    - {{debug: {{var: said.stdout}}}}\n")
    assert run([*RUN, "-vv", "--run-dir", "r"]) == 0
    out = capsys.readouterr().out
    plain = written.strip("'")
    assert plain not in out
    assert plain.encode() not in (place / "r" / "events.jsonl").read_bytes()
    assert plain not in (place / "r" / "report.json").read_text()


# -- the inventory as Ansible prints it

SAMPLES = {
    "sample.yaml": "all:\n  vars: {a: 1, ntp: [x, y]}\n  children:\n    rack1: {hosts: {'n[01:03]': {}}, vars: {a: 2}}\n    gpu:\n      children: {rack1: {}}\n      hosts: {n9: {a: 3, t: '{{ a }}'}}\n",
    "sample.ini": "lone ansible_host=192.0.2.1\n[web]\nw[1:2] port=80\n[db]\nd1 x=yes\n[prod:children]\nweb\ndb\n[prod:vars]\nenv=live\n",
}


@pytest.mark.parametrize("source", SAMPLES)
def test_inventory_list_has_ansibles_groups_and_variables(source: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / source).write_text(SAMPLES[source])
    assert run(["inventory", "-i", source, "--list"]) == 0
    ours: dict[str, Any] = json.loads(capsys.readouterr().out)
    argv = [str(Path(sys.executable).parent / "ansible-inventory"), "--list", "-i", source]
    theirs: dict[str, Any] = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout)
    hostvars = {host: values for host, values in ours["_meta"]["hostvars"].items() if values}
    plain = json.loads(json.dumps(theirs["_meta"]["hostvars"]), object_hook=lambda item: item.get("__ansible_unsafe", item))
    assert hostvars == {host: {name: value for name, value in values.items() if name != "ansible_group_priority"} for host, values in plain.items()}
    for group, entry in theirs.items():
        if group != "_meta" and entry:
            assert set(ours[group].get("hosts", [])) == set(entry.get("hosts", [])), group
            assert set(ours[group].get("children", [])) | {"ungrouped"} == set(entry.get("children", [])) | {"ungrouped"}, group
