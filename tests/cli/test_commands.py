"""Commands end to end, as far as they go without a lab: real agent on this machine through a local connection."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from nodectl.cli.extra_vars import extra_vars
from nodectl.cli.main import run
from nodectl.cli.module_page import module_page
from nodectl.diagnostics.model import Collector
from nodectl.engine.catalogue import known, names
from nodectl.report.journal import Journal, JournalLost, read_journal
from nodectl.wire.event import Event
from nodectl.wire.params import Param, Spec


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an inventory of this machine, and the working directory in it."""
    local = f"{{ansible_connection: local, ansible_python_interpreter: {sys.executable}}}"
    (tmp_path / "hosts.yaml").write_text(f"all:\n  hosts:\n    here: {local}\n  children:\n    gpu: {{hosts: {{here: {{}}}}}}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def playbook(place: Path, *tasks: str) -> str:
    text = "- hosts: gpu\n  gather_facts: false\n  tasks:\n" + "".join(f"    - {task}\n" for task in tasks)
    (place / "play.yml").write_text(text)
    return "play.yml"


def report(place: Path, folder: str = "r") -> dict[str, Any]:
    data = json.loads((place / folder / "report.json").read_text())
    assert isinstance(data, dict)
    return data


RUNS = [
    (["{command: echo hi, changed_when: false}"], 0, "here : ok=1 changed=0 unreachable=0 failed=0 skipped=0 rescued=0 ignored=0"),
    (["{command: echo hi}"], 0, "here : ok=1 changed=1 unreachable=0 failed=0 skipped=0 rescued=0 ignored=0"),
    (["{command: 'false'}"], 2, "here : ok=0 changed=0 unreachable=0 failed=1 skipped=0 rescued=0 ignored=0"),
    (["{command: 'false', ignore_errors: true}", "{debug: {msg: x}, when: false}"], 0, "here : ok=1 changed=1 unreachable=0 failed=0 skipped=1 rescued=0 ignored=1"),
]


@pytest.mark.parametrize(("tasks", "code", "recap"), RUNS, ids=[tasks[0] for tasks, _, _ in RUNS])
def test_run(tasks: list[str], code: int, recap: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", playbook(place, *tasks), "-i", "hosts.yaml", "--run-dir", "r"]) == code
    assert recap in capsys.readouterr().out.splitlines()
    assert report(place)["exit_code"] == code
    kinds = [event.kind for event in read_journal(place / "r" / "events.jsonl")]
    assert (kinds[0], kinds[-1]) == ("run.start", "run.end")


def test_a_failure_names_the_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["run", playbook(place, "{name: break, command: 'false'}"), "-i", "hosts.yaml"])
    out = capsys.readouterr().out
    assert "fatal: [here]: FAILED!" in out
    assert "play.yml:4:" in out
    assert "{name: break, command: 'false'}" in out


def test_check_changes_nothing_and_says_what_it_would(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = place / "made"
    argv = [playbook(place, f"{{copy: {{dest: {target}, content: 'x'}}}}"), "-i", "hosts.yaml"]
    assert run(["plan", *argv]) == 0
    out = capsys.readouterr().out
    assert "changed: [here]" in out
    assert "+x" in out
    assert "nothing was changed" in out
    assert not target.exists()
    assert run(["run", *argv]) == 0
    assert target.read_text() == "x"


def test_the_run_folder_is_found_under_latest(place: Path) -> None:
    run(["run", playbook(place, "{command: echo}"), "-i", "hosts.yaml"])
    latest = place / ".nodectl" / "runs" / "latest"
    assert latest.is_symlink()
    assert (latest / "events.jsonl").exists()
    assert latest.resolve().stat().st_mode & 0o077 == 0


def test_a_run_folder_is_never_overwritten(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["run", playbook(place, "{command: echo}"), "-i", "hosts.yaml", "--run-dir", "r"]
    assert run(argv) == 0
    before = (place / "r" / "events.jsonl").read_bytes()
    assert run(argv) == 1
    assert "holds a run already" in capsys.readouterr().err
    assert (place / "r" / "events.jsonl").read_bytes() == before


def test_a_journal_that_cannot_be_written_ends_the_run_with_the_reason(place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    events = 0

    def full(self: Journal, event: Event) -> None:
        nonlocal events
        events += 1
        if events > 3:
            raise JournalLost("events.jsonl cannot be written: No space left on device")

    monkeypatch.setattr(Journal, "__call__", full)
    assert run(["run", playbook(place, "{command: echo}"), "-i", "hosts.yaml", "--run-dir", "r"]) == 70
    err = capsys.readouterr().err
    assert "nodectl stopped: events.jsonl cannot be written: No space left on device" in err
    assert "bug" not in err


def test_an_unreachable_host_stops_nobody_else(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "two.yaml").write_text((place / "hosts.yaml").read_text().replace("  children:", "    gone: {ansible_host: 127.0.0.1, ansible_port: 9, ansible_user: x}\n  children:"))
    (place / "play.yml").write_text("- hosts: all\n  gather_facts: false\n  tasks:\n    - command: echo\n")
    assert run(["run", "play.yml", "-i", "two.yaml", "--run-dir", "r"]) == 4
    hosts = report(place)["hosts"]
    assert (hosts["gone"]["status"], hosts["here"]["status"]) == ("unreachable", "ok")
    assert hosts["gone"]["reason"]
    assert "gone : ok=0 changed=0 unreachable=1" in capsys.readouterr().out


def test_all_mistakes_at_once_before_anything_runs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "play.yml").write_text(
        "- hosts: gppu\n  tasks:\n    - {command: echo, whem: x}\n    - {copy: {dest: /x, contnt: y}}\n    - {file: {path: /x, path: /y}}\n"
    )
    assert run(["run", "play.yml", "-i", "hosts.yaml", "-e", "novalue"]) == 1
    err = capsys.readouterr().err
    for place_of, word in (("play.yml:1:", "gppu"), ("play.yml:3:", "whem"), ("play.yml:4:", "contnt"), ("play.yml:5:", "path"), ("", "NAME=VALUE")):
        assert place_of in err
        assert word in err
    assert not (place / ".nodectl").exists()


@pytest.mark.parametrize(("option", "text"), [(["--tags", "nope"], "no task has the tag"), (["--start-at-task", "nope"], "nope"), (["-l", "nope"], "nope")])
def test_options_that_mean_nothing_leave_no_run_behind(option: list[str], text: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", playbook(place, "{name: one, command: echo, tags: [x]}"), "-i", "hosts.yaml", *option]) == 1
    err = capsys.readouterr().err
    assert text in err
    assert "1 mistake found" in err
    assert not (place / ".nodectl").exists()


def test_a_password_in_the_output_of_a_program_is_masked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "pass").write_text("hunter22\n")
    argv = ["run", playbook(place, "{command: echo it is hunter22, register: said}", "{debug: {var: said.stdout}}"), "-i", "hosts.yaml", "--run-dir", "r"]
    assert run([*argv, "--become-password-file", "pass", "-vv"]) == 0
    out = capsys.readouterr().out
    assert "it is ********" in out
    assert "hunter22" not in out
    assert b"hunter22" not in (place / "r" / "events.jsonl").read_bytes()


@pytest.mark.parametrize(("content", "text"), [("", "is empty"), ("\nsecond", "is empty"), (b"\xff\xfe", "cannot be read")])
def test_a_password_file_that_cannot_be_used_is_a_mistake(content: str | bytes, text: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "pass").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert run(["run", playbook(place, "{command: echo}"), "-i", "hosts.yaml", "--become-password-file", "pass"]) == 1
    assert text in capsys.readouterr().err


def test_listings_touch_no_node(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play = playbook(place, "{name: one, command: echo, tags: [x, y]}", "{command: echo}")
    assert run(["run", play, "-i", "hosts.yaml", "--list-tasks"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["    one  TAGS: [x, y]", "    command  TAGS: []"]
    assert run(["run", play, "-i", "hosts.yaml", "--list-hosts"]) == 0
    assert "    here" in capsys.readouterr().out.splitlines()
    assert run(["run", play, "-i", "hosts.yaml", "--syntax-check"]) == 0
    assert "no mistakes found" in capsys.readouterr().out
    assert not (place / ".nodectl").exists()


def test_check_reads_the_shipped_bootstrap(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "-i", "hosts.yaml"]) == 0, capsys.readouterr().err
    assert "bootstrap.yml: no mistakes found" in capsys.readouterr().out


def test_an_inventory_without_hosts_is_not_proven(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "none.yaml").write_text("all: {children: {gpu: {}}}\n")
    assert run(["bootstrap", "none.yaml"]) == 1
    assert "no hosts" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["bootstrap", "hosts.yaml", "--playbook", "play.yml"], ["verify", "hosts.yaml"]], ids=["bootstrap", "verify"])
def test_what_is_not_proven_is_not_handed_off(command: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole way on this machine, up to a check that cannot pass here: there is no disk under the scratch folder."""
    (place / "hosts.yaml").write_text((place / "hosts.yaml").read_text() + "  vars: {scratch_path: /no/such/folder, scratch_mount: /no/such/folder}\n")
    (place / "suite.toml").write_text('summary = "mounts"\n[[step]]\nkind = "mounts"\ndeadline = 20\n')
    playbook(place, "{command: echo}")
    assert run([*command, "--suite", "suite.toml", "--run-dir", "r"]) == 3
    out = capsys.readouterr().out
    here = report(place)["hosts"]["here"]
    assert here["verdict"] in ("fail", "unknown")
    assert here["reasons"]
    assert here["reasons"][0].split(":")[0] in out
    assert "handed off: no node (world size 0); left out: here" in out
    assert list(json.loads((place / "r" / "handoff" / "excluded.json").read_text())) == ["here"]
    assert not (place / "r" / "handoff" / "torchrun.sh").exists()
    assert [event.host for event in read_journal(place / "r" / "events.jsonl") if event.kind == "target"] == ["here"]


def test_a_rehearsal_neither_verifies_nor_hands_off(place: Path) -> None:
    playbook(place, "{command: echo}")
    assert run(["bootstrap", "hosts.yaml", "--playbook", "play.yml", "--check", "--run-dir", "r"]) == 0
    assert report(place)["hosts"]["here"]["verdict"] == "none"
    assert not (place / "r" / "handoff").exists()


def test_ping_and_facts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ping", "-i", "hosts.yaml"]) == 0
    assert capsys.readouterr().out == "here | SUCCESS => pong\n"
    assert run(["facts", "here", "-i", "hosts.yaml"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["here"]


def test_ping_says_who_is_not_there(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "gone.yaml").write_text("all: {hosts: {gone: {ansible_host: 127.0.0.1, ansible_port: 9, ansible_user: x}}}\n")
    assert run(["ping", "-i", "gone.yaml"]) == 4
    assert capsys.readouterr().out.startswith("gone | UNREACHABLE => ")


def test_inventory_masks_passwords(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "hosts.yaml").write_text("all: {vars: {ansible_become_password: hunter22, a: 1}, children: {gpu: {hosts: {n1: {}, n2: {}}}}}\n")
    assert run(["inventory", "-i", "hosts.yaml"]) == 0
    listing = json.loads(capsys.readouterr().out)
    assert listing["gpu"] == {"hosts": ["n1", "n2"]}
    assert listing["_meta"]["hostvars"]["n1"]["ansible_become_password"] == "********"
    assert run(["inventory", "-i", "hosts.yaml", "--host", "n2"]) == 0
    assert json.loads(capsys.readouterr().out)["a"] == 1
    assert run(["inventory", "-i", "hosts.yaml", "--graph"]) == 0
    assert "  |--@gpu:\n  |  |--n1\n" in capsys.readouterr().out


def past_run(place: Path) -> Path:
    folder = place / "past"
    folder.mkdir()
    journal = Journal(folder / "events.jsonl")
    for event in (
        Event("run.start", 1.0, "", {"command": "bootstrap", "run_id": "past", "version": "0"}),
        Event("play.start", 1.0, "", {"play": "p", "hosts": ["n1", "n2"]}),
        Event("node", 2.0, "n1", {"address": "192.0.2.1", "nproc": 2, "backend": "gloo"}),
        Event("verdict", 2.0, "n1", {"verdict": "pass", "reasons": []}),
        Event("host.unreachable", 2.0, "n2", {"reason": "refused"}),
        Event("run.end", 3.0, "", {"exit_code": 4}),
    ):
        journal(event)
    journal.close()
    return folder


def test_report_and_handoff_are_made_anew_from_a_journal(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = past_run(place)
    assert run(["report", str(folder)]) == 0
    assert "exit code 4" in capsys.readouterr().out
    assert run(["report", str(folder), "--log"]) == 0
    assert "fatal: [n2]: UNREACHABLE!" in capsys.readouterr().out
    assert run(["report", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hosts"]["n2"]["status"] == "unreachable"
    assert run(["handoff", str(folder), "--out", "again"]) == 0
    assert "handed off: n1 (world size 2)" in capsys.readouterr().out
    assert json.loads((place / "again" / "excluded.json").read_text())["n2"]["kind"] == "unreachable"


@pytest.mark.parametrize("command", ["report", "handoff"])
@pytest.mark.parametrize(("content", "text"), [(None, "no events.jsonl"), ("", "is empty"), ("nonsense\n", "not an event")])
def test_what_is_no_run_is_a_mistake(command: str, content: str | None, text: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "x").mkdir()
    if content is not None:
        (place / "x" / "events.jsonl").write_text(content)
    assert run([command, "x"]) == 1
    assert text in capsys.readouterr().err


EXTRA = [
    (["a=1"], {"a": "1"}),
    (["a=1 b='two words'"], {"a": "1", "b": "two words"}),
    (['{"a": 1, "b": [2]}'], {"a": 1, "b": [2]}),
    (["a=1", "a=2"], {"a": "2"}),
    (["a=b=c"], {"a": "b=c"}),
    (["@vars.yml", "b=x"], {"a": 1, "b": "x"}),
]


@pytest.mark.parametrize(("texts", "expected"), EXTRA)
def test_extra_vars(texts: list[str], expected: dict[str, Any], place: Path) -> None:
    (place / "vars.yml").write_text("a: 1\nb: 2\n")
    found = Collector()
    assert extra_vars(texts, found) == expected
    assert found.errors == []


@pytest.mark.parametrize("text", ["novalue", "a='open", '{"a": ', "1a=b", "@missing.yml"])
def test_extra_vars_that_cannot_be_read(text: str, place: Path) -> None:
    found = Collector()
    extra_vars([text], found)
    assert len(found.errors) == 1


def test_module_page_shows_everything_that_was_declared() -> None:
    spec = Spec(
        "Do a thing",
        {
            "path": Param("path", "Where.", required=True, aliases=("dest",)),
            "state": Param("str", "What | why.", default="present", choices=("present", "absent")),
            "key": Param("str", secret=True),
            "names": Param("list", elements="str"),
        },
        free_form="path", mutually_exclusive=(("key", "names"),), required_one_of=(("key", "names"),), required_together=(("path", "state"),),
        required_if=(("state", "absent", ("key",)),), returns={"rc": "The code."}, example="- thing: {path: /x}\n",
    )  # fmt: skip
    page = module_page("thing", spec)
    for text in (
        "# thing\n\nDo a thing\n", "| `path` (dest) | path | **required** | Where; may stand behind the module's name |",
        '| `state` | str | `"present"` | What \\| why; one of `present`, `absent` |', "secret: never shown", "list of str",
        "- not together: key, names", "- at least one of: key, names", "- only together: path, state", "- `state: absent` needs: key",
        "- `rc`: The code.", "```yaml\n- thing: {path: /x}\n```\n",
    ):  # fmt: skip
        assert text in page


def test_every_module_has_a_page_and_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doc"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == names()
    for name in names():
        spec = known(name)
        assert spec is not None
        assert module_page(name, spec).startswith(f"# {name}\n\n{spec.summary}")


def test_pages_of_modules_that_are_gone_are_removed(place: Path) -> None:
    (place / "out").mkdir()
    (place / "out" / "gone.md").write_text("x")
    assert run(["doc", "--all", "--out", "out"]) == 0
    assert sorted(path.stem for path in (place / "out").iterdir()) == names()
