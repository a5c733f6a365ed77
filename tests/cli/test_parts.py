"""What the commands are put together from: options as click gives them, one run from its folder to its end, crash logs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from nodectl.cli.crash import crash_message, crash_text, write_crash_log
from nodectl.cli.extra_vars import extra_vars
from nodectl.cli.hide import hidden_argv
from nodectl.cli.loading import inventory_secrets
from nodectl.cli.main import run
from nodectl.cli.options import Asked, connection_options, read_options, rehearsal_options, task_options
from nodectl.cli.proving import nodes_of, prove, tell_targets
from nodectl.cli.session import Session, make_run_folder
from nodectl.diagnostics.model import Collector, Diagnostic, Mistakes
from nodectl.engine.options import Options
from nodectl.engine.run import RunResult
from nodectl.inventory.load import load_inventory
from nodectl.report.fold import fold
from nodectl.report.human import View
from nodectl.report.journal import JournalLost, read_journal
from nodectl.transport.channel import Limits
from nodectl.verify.suite_load import load_suite
from nodectl.wire.event import Event
from nodectl.wire.secret import MASK, Secret

FEW = settings(deadline=None, max_examples=80)

# -- options


def asked(argv: list[str]) -> tuple[Asked, Collector]:
    """The options as a command of nodectl would read them."""
    kept: list[tuple[Asked, Collector]] = []

    @click.command()
    @rehearsal_options
    @task_options
    @connection_options
    def command(**given: Any) -> None:
        found = Collector()
        kept.append((read_options(given, found), found))

    result = CliRunner().invoke(command, argv, standalone_mode=False, catch_exceptions=False, input="typed\n")
    assert result.exit_code == 0, result.output
    return kept[0]


# command line; field of the engine's options, its value
READ: list[tuple[list[str], str, Any]] = [
    ([], "check", False), (["-C"], "check", True), (["--check"], "check", True), (["-D"], "diff", True), ([], "forks", 16), (["-f", "3"], "forks", 3),
    ([], "tags", ()), (["-t", "a,b", "--tags", "c"], "tags", ("a", "b", "c")), (["-t", " a , ,b "], "tags", ("a", "b")), (["--skip-tags", "x"], "skip_tags", ("x",)),
    ([], "limit", None), (["-l", "gpu:!n1"], "limit", "gpu:!n1"), ([], "become", None), (["-b"], "become", True), (["--become-user", "db"], "become_user", "db"),
    (["-u", "ops"], "remote_user", "ops"), ([], "remote_user", ""), (["--private-key", "k"], "private_key", "k"), (["--start-at-task", "x y"], "start_at_task", "x y"),
    (["--force-handlers"], "force_handlers", True), (["-e", "a=1", "-e", '{"b": 2}'], "extra_vars", {"a": "1", "b": 2}), (["-K"], "become_password", Secret("typed")),
]


@pytest.mark.parametrize(("argv", "name", "value"), READ, ids=[f"{' '.join(argv)} {name}" for argv, name, _ in READ])
def test_options(argv: list[str], name: str, value: Any) -> None:
    read, found = asked(argv)
    assert getattr(read.options, name) == value
    assert found.errors == []


@pytest.mark.parametrize(("argv", "seconds"), [([], Limits().connect), (["-T", "5"], 5.0), (["--timeout", "1.5"], 1.5)])
def test_the_bound_of_a_login(argv: list[str], seconds: float) -> None:
    assert asked(argv)[0].limits == Limits(connect=seconds)


@pytest.mark.parametrize(("argv", "view"), [([], View(0, False)), (["-v"], View(1, False)), (["-vvD"], View(2, True))])
def test_the_view(argv: list[str], view: View) -> None:
    assert asked(argv)[0].view == view


@pytest.mark.parametrize(("content", "password"), [("secret1\n", "secret1"), ("secret1", "secret1"), (" secret 1 \nsecond\n", " secret 1 "), ("sécret\r\n", "sécret")])
def test_a_password_is_the_first_line_of_its_file_and_known_to_the_redactor(content: str, password: str, tmp_path: Path) -> None:
    (tmp_path / "pass").write_bytes(content.encode())
    read, found = asked(["--become-password-file", str(tmp_path / "pass")])
    assert found.errors == []
    assert read.secrets == (Secret(password),)
    assert password not in repr(read)


@FEW
@given(st.lists(st.text(max_size=20).filter(lambda text: not text.startswith("@")), max_size=3))
def test_any_extra_vars_are_read_or_a_mistake(texts: list[str]) -> None:
    found = Collector()
    values = extra_vars(texts, found)
    assert all(isinstance(name, str) for name in values)
    assert all(one.code == "E404" and one.help for one in found.errors)


CLUSTERS = st.lists(st.sampled_from(["-b", "-v", "-C", "-bv", "-vvCD", "-l", "-lx", "-t", "-f4", "--check", "-e", "-be", "-vCe", "-ep=hunter22", "-bep=hunter22", "--extra-vars",
                                     "--extra-vars=p=hunter22", "p=hunter22", "x"]), max_size=7)


@FEW
@given(CLUSTERS)
def test_what_click_reads_as_a_value_of_e_is_never_shown(argv: list[str]) -> None:
    """The same words given to click's own parser: each value that it takes for -e has to be hidden."""
    command = click.Command("x", params=[
        click.Option(["-e", "--extra-vars", "extra"], multiple=True), click.Option(["-b"], is_flag=True), click.Option(["-v"], count=True), click.Option(["-C", "--check"], is_flag=True),
        click.Option(["-D"], is_flag=True), click.Option(["-l"], multiple=True), click.Option(["-t"], multiple=True), click.Option(["-f"], multiple=True), click.Argument(["rest"], nargs=-1),
    ])
    try:
        context = command.make_context("x", list(argv))
    except click.UsageError:
        return
    shown = hidden_argv(argv)
    assert len(shown) == len(argv)
    told = " ".join(shown).count("hunter22")
    elsewhere = " ".join(map(str, [*context.params["l"], *context.params["t"], *context.params["f"], *context.params["rest"]])).count("hunter22")
    assert told == elsewhere


# -- a run


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def session(place: Path, *secrets: str, command: str = "run") -> Session:
    return Session(make_run_folder(place / "r"), Limits(), View(2), [Secret(text) for text in secrets], command=command, check=False, diff=False, argv=[], playbook="", inventory=[])


def task(host: str, status: str, **result: Any) -> Event:
    return Event("task.end", 1.0, host, {"play": "p", "task": "t", "role": "", "module": "command", "status": status, "result": result, "diff": []})


# what ends a run; its exit code, the status of a host that was at work, whether the closing table is shown
ENDS: list[tuple[BaseException | None, int, str, bool]] = [
    (None, 0, "ok", True),
    (ValueError("nobody foresaw this"), 70, "stopped", True),
    (KeyboardInterrupt(), 130, "stopped", True),
    (Mistakes([Diagnostic("E401", "no such tag")]), 1, "ok", False),
    (OSError(28, "No space left on device"), 70, "stopped", True),
]


@pytest.mark.parametrize(("error", "code", "status", "table"), ENDS, ids=[type(error).__name__ for error, *_ in ENDS])
def test_whatever_ends_a_run_it_has_an_end(error: BaseException | None, code: int, status: str, table: bool, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        with session(place) as one:
            one.tell("play.start", play="p", hosts=["n1"])
            one.emit(task("n1", "ok"))
            if error is not None:
                raise error

    if error is None:
        work()
    else:
        with pytest.raises(type(error)):
            work()
    events = read_journal(place / "r" / "events.jsonl")
    assert (events[0].kind, events[-1].kind, events[-1].data["exit_code"]) == ("run.start", "run.end", code)
    report = json.loads((place / "r" / "report.json").read_text())
    assert (report["exit_code"], report["complete"], report["hosts"]["n1"]["status"]) == (code, True, status)
    assert ("PLAY RECAP" in capsys.readouterr().out) is table


def test_a_journal_that_is_lost_has_no_false_end(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None:
        with session(place):
            raise JournalLost("full")

    with pytest.raises(JournalLost):
        work()
    assert [event.kind for event in read_journal(place / "r" / "events.jsonl")] == ["run.start"]
    assert not (place / "r" / "report.json").exists()
    assert fold(read_journal(place / "r" / "events.jsonl")).complete is False


def test_secrets_are_masked_on_screen_and_in_the_journal(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with session(place, "hunter22") as one:
        one.emit(task("n1", "failed", msg="hunter22 is wrong", stderr="hunter22"))
        one.tell("warning", text="hunter22")
        one._progress("n1", "hunter22")
        one._warn("hunter22")
    out = capsys.readouterr().out
    texts = [out, *((place / "r" / name).read_text() for name in ("events.jsonl", "report.json"))]
    assert all("hunter22" not in text and MASK in text for text in texts)


@pytest.mark.parametrize(("make", "points"), [
    (lambda runs: None, True), (lambda runs: (runs / "latest").symlink_to("gone"), True), (lambda runs: (runs / "latest").mkdir(), False), (lambda runs: (runs / "latest").write_text("mine"), False),
])
def test_latest_points_at_the_last_run_unless_something_of_the_users_stands_there(make: Callable[[Path], Any], points: bool, place: Path) -> None:
    make(place)
    with session(place):
        pass
    latest = place / "latest"
    assert latest.is_symlink() is points
    if points:
        assert latest.resolve() == (place / "r").resolve()
    assert [path.name for path in place.iterdir() if path.name.startswith(".latest")] == []


def test_run_folders_have_names_of_their_own_and_are_private(place: Path) -> None:
    folders = {make_run_folder(None) for _ in range(20)}
    assert len(folders) == 20
    assert all(folder.stat().st_mode & 0o077 == 0 for folder in folders)


# -- the second half of a bootstrap


def test_only_hosts_in_good_order_are_measured() -> None:
    status: Any = {"n1": "ok", "n2": "failed", "n3": "unreachable", "n4": "lost", "n5": "stopped", "n6": "ok"}
    result = RunResult(status, lambda host: {"inventory_hostname": host, "ansible_host": f"10.0.0.{host[1:]}", "ansible_user": "ops"})
    nodes = nodes_of(result, Options(remote_user=""))
    assert [(node.host, node.target.address, node.target.user) for node in nodes] == [("n1", "10.0.0.1", "ops"), ("n6", "10.0.0.6", "ops")]


def test_without_a_node_nothing_is_measured_and_the_handoff_says_why(place: Path) -> None:
    with session(place, command="bootstrap") as one:
        one.tell("play.start", play="p", hosts=["n1"])
        one.tell("host.unreachable", "n1", reason="refused", why="refused", hint="", task="t")
        prove(one, [], load_suite("quick"))
    summary = fold(read_journal(place / "r" / "events.jsonl"))
    assert (summary.handoff["hosts"], summary.handoff["world_size"], int(summary.exit_code)) == ([], 0, 4)
    assert json.loads((place / "r" / "handoff" / "excluded.json").read_text())["n1"]["kind"] == "unreachable"


def test_where_each_host_is_and_what_it_is_called_is_said_also_of_hosts_that_were_not_reached(place: Path) -> None:
    status: Any = {"n1": "ok", "n2": "unreachable", "n3": "failed"}
    variables: dict[str, dict[str, Any]] = {"n1": {"ansible_host": "10.0.0.1", "slurm_node_name": "gpu-1"}, "n2": {"kubernetes_node_name": None}, "n3": {"ansible_connection": "winrm"}}
    with session(place, command="bootstrap") as one:
        tell_targets(one, RunResult(status, lambda host: variables[host]), Options(remote_user=""))
    told = [(event.host, event.data) for event in read_journal(place / "r" / "events.jsonl") if event.kind == "target"]
    assert told == [
        ("n1", {"address": "10.0.0.1", "slurm_node_name": "gpu-1", "kubernetes_node_name": ""}), ("n2", {"address": "n2", "slurm_node_name": "", "kubernetes_node_name": ""}),
    ]


# -- crashes


@pytest.mark.parametrize("argv", [["run", "-e", "p=hunter22"], ["run", "-be", "p=hunter22"], ["run", "\udcff"], [], ["run", "\x1b[2J"]], ids=ascii)
def test_a_crash_log_can_always_be_written(argv: list[str], place: Path) -> None:
    """Also for bytes on the command line that are no text."""
    with pytest.raises(ValueError, match="said") as crash:
        raise ValueError("said \udcff")
    path = write_crash_log(crash.value, argv)
    assert "hunter22" not in crash_text(crash.value, argv)
    assert str(path) in crash_message(crash.value, path)
    text = path.read_text("utf-8")
    assert text.startswith("nodectl ")
    assert "Traceback" in text
    assert "hunter22" not in text


def test_a_crash_in_a_command_is_one_sentence(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("nobody foresaw \x1b[2J this")

    monkeypatch.setattr("nodectl.cli.commands.inventory.load_inventory", broken)
    assert run(["inventory", "-i", "n1,"]) == 70
    err = capsys.readouterr().err
    assert "nodectl has a bug: RuntimeError: nobody foresaw" in err
    assert "Traceback" not in err
    (log,) = (place / ".nodectl").glob("crash-*.txt")
    assert "nodectl/cli/commands/inventory.py" in log.read_text()


# -- secrets of an inventory

INVENTORY: list[tuple[str, set[str]]] = [
    ("ansible_password: plain12", {"plain12"}), ("ansible_password: 12345678", {"12345678"}), ("ansible_become_password: '{{ vaulted }}'", set()), ("ansible_password: ''", set()),
    ("ansible_user: ops", set()), ("ansible_ssh_pass: a b", {"a b"}),
]


@pytest.mark.parametrize(("line", "secrets"), INVENTORY, ids=[line for line, _ in INVENTORY])
def test_passwords_in_clear_text_are_known_to_the_redactor(line: str, secrets: set[str], place: Path) -> None:
    (place / "hosts.yaml").write_text(f"all:\n  hosts: {{n1: {{}}}}\n  vars:\n    {line}\n")
    found = Collector()
    inventory = load_inventory([str(place / "hosts.yaml")], found)
    assert found.errors == []
    assert {secret.reveal() for secret in inventory_secrets(inventory)} == secrets


