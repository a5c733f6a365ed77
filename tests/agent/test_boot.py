"""The packed agent under `python3 -I -S`, over real pipes: frames in, frames out, and what happens when either end misbehaves."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodectl.transport.bundle import sources
from nodectl.wire.frame import MAX_PAYLOAD, encode
from tests.agent.process import AgentProcess
from tests.processes import alive, gone


def answers(python: str) -> bool:
    """Not only a name on the PATH: a version manager's placeholder is no Python."""
    try:
        done = subprocess.run([python, "-I", "-S", "-c", "import sys; print(sys.version_info[0])"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.stdout.strip() == "3"


# Every Python that the agent promises to run under and that this machine has.
PYTHONS = [sys.executable, *(path for minor in range(8, 15) if (path := shutil.which(f"python3.{minor}")) and answers(path))]


@pytest.fixture(params=PYTHONS, ids=lambda path: Path(path).name)
def agent(request: pytest.FixtureRequest) -> Iterator[AgentProcess]:
    with AgentProcess(request.param) as process:
        yield process


@pytest.fixture
def one() -> Iterator[AgentProcess]:
    with AgentProcess(sys.executable) as process:
        yield process


def hasty() -> AgentProcess:
    """With the broken module, and seconds made tenths: these waits are long on purpose, and only here nobody needs them so long."""
    boot = sources()["nodectl.agent.boot"].replace("BEAT = 2.0", "BEAT = 0.1").replace("STUCK = 3 * GRACE", "STUCK = 0.3").replace("GRACE + 1", "0.3")
    processes = sources()["nodectl.agent.processes"].replace("GRACE = 2.0", "GRACE = 0.2")
    return AgentProcess(sys.executable, {"nodectl.agent.modules.ping": BROKEN, "nodectl.agent.boot": boot, "nodectl.agent.processes": processes})


def test_the_waits_that_are_made_shorter_are_there() -> None:
    """Otherwise hasty() would be as slow as the agent, and nobody would see why."""
    for module, text in (("boot", "BEAT = 2.0"), ("boot", "STUCK = 3 * GRACE"), ("boot", "GRACE + 1"), ("processes", "\nGRACE = 2.0")):
        assert sources()[f"nodectl.agent.{module}"].count(text) == 1, text


def started(path: Path, patience: float = 10.0) -> int:
    """The pid that a shell wrote to ``path``."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        text = path.read_text() if path.exists() else ""
        if text.endswith("\n"):
            return int(text)
        time.sleep(0.02)
    raise AssertionError(f"{path} was not written")


def test_hello_then_steps_in_order(agent: AgentProcess) -> None:
    hello = agent.until("hello").head
    assert hello["version"] == "1"
    assert hello["pid"] == agent.process.pid
    assert hello["uid"] == os.geteuid()
    assert hello["python"].startswith("3.")
    assert {"user", "hostname"} <= set(hello)
    for number in range(1, 6):
        agent.step(number, "ping", {"data": str(number)})
    assert [agent.outcome(number).values["ping"] for number in range(1, 6)] == ["1", "2", "3", "4", "5"]


def test_every_module_imports_and_declares(agent: AgentProcess) -> None:
    """Under the oldest Python at hand too: an unknown parameter is refused by each module, so each was imported."""
    from nodectl.agent.catalogue import MODULES

    for number, name in enumerate(MODULES, 1):
        agent.step(number, name, {"no_such_parameter": 1})
    for number, name in enumerate(MODULES, 1):
        outcome = agent.outcome(number)
        assert outcome.failed
        assert "bug of ours" not in outcome.msg, f"{name}: {outcome.values}"
        assert "no_such_parameter" in outcome.msg, name


def test_facts_under_every_python(agent: AgentProcess) -> None:
    agent.step(1, "setup", {})
    agent.step(2, "fabric_facts", {})
    facts = agent.outcome(1)
    assert facts.warnings == []
    assert facts.facts["ansible_kernel"] == os.uname().release
    assert agent.outcome(2).facts["nodectl_fabric"]["kind"] in ("ib", "roce", "efa", "tcp")


def test_copy_by_blob_in_pieces(agent: AgentProcess, tmp_path: Path) -> None:
    data = os.urandom(2 * MAX_PAYLOAD + 7)
    for start in range(0, len(data), MAX_PAYLOAD):
        piece = data[start : start + MAX_PAYLOAD]
        agent.say({"t": "blob", "id": "b1", "last": start + MAX_PAYLOAD >= len(data)}, piece)
    agent.step(1, "copy", {"dest": str(tmp_path / "f"), "content_blob": "content", "mode": "0600"}, blobs={"content": "b1"})
    outcome = agent.outcome(1)
    assert outcome.changed, outcome.msg
    assert (tmp_path / "f").read_bytes() == data
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600


def test_nothing_stays_on_the_disk(one: AgentProcess, tmp_path: Path) -> None:
    one.say({"t": "blob", "id": "b", "last": True}, b"secret content")
    one.step(1, "ping", {})
    one.outcome(1)
    files = [os.readlink(f"/proc/{one.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{one.process.pid}/fd")]
    assert any(name.endswith("(deleted)") for name in files), "the blob must lie in a file without a name"


def test_a_blob_that_never_came(one: AgentProcess, tmp_path: Path) -> None:
    one.step(1, "copy", {"dest": str(tmp_path / "f"), "content_blob": "content"}, blobs={"content": "nothing"})
    assert "sent no content" in one.outcome(1).msg
    assert not (tmp_path / "f").exists()


def test_prints_do_not_break_frames(one: AgentProcess) -> None:
    """A child that writes to the agent's own stdout (an inherited descriptor) must not reach the line."""
    one.step(1, "shell", {"cmd": f"echo stray > /proc/{one.process.pid}/fd/1; echo done"})
    assert one.outcome(1).values["stdout"] == "done"
    one.step(2, "ping", {})
    assert one.outcome(2).values["ping"] == "pong"


def test_needs_of_a_failed_step(one: AgentProcess) -> None:
    one.step(1, "command", {"cmd": "false"})
    one.step(2, "ping", {}, needs=1)
    one.step(3, "ping", {}, needs=2)
    one.step(4, "ping", {})
    assert one.outcome(1).failed
    assert one.outcome(2).values["not_run"]
    assert one.outcome(3).values["not_run"], "what depends on a step that did not run must not run"
    assert one.outcome(4).values["ping"] == "pong"


def test_cancel_ends_the_process_group(one: AgentProcess, tmp_path: Path) -> None:
    one.step(1, "shell", {"cmd": f"sleep 60 & echo $! > {tmp_path}/pid; wait"})
    child = started(tmp_path / "pid")
    began = time.monotonic()
    one.say({"t": "cancel", "id": 1})
    outcome = one.outcome(1)
    assert outcome.failed
    assert outcome.msg == "cancelled"
    assert time.monotonic() - began < 5
    assert gone(child)
    one.step(2, "ping", {})
    assert not one.outcome(2).failed, "the agent goes on after a cancel"


def test_cancel_before_the_start(one: AgentProcess, tmp_path: Path) -> None:
    one.step(1, "command", {"cmd": "sleep 60"})
    one.step(2, "shell", {"cmd": f"touch {tmp_path}/ran"})
    one.say({"t": "cancel", "id": 2})
    one.say({"t": "cancel", "id": 1})
    assert one.outcome(1).msg == "cancelled"
    assert one.outcome(2).msg == "cancelled"
    assert not (tmp_path / "ran").exists()


def test_cancel_ends_a_wait(one: AgentProcess, tmp_path: Path) -> None:
    one.step(1, "wait_for", {"path": str(tmp_path / "none"), "timeout": 60, "sleep": 60})
    one.step(2, "ping", {})
    time.sleep(0.2)
    one.say({"t": "cancel", "id": 1})
    assert one.outcome(1).msg == "cancelled"
    assert not one.outcome(2).failed


def test_end_of_input_kills_what_runs(one: AgentProcess, tmp_path: Path) -> None:
    one.step(1, "shell", {"cmd": f"sleep 60 & echo $! > {tmp_path}/pid; wait"})
    child = started(tmp_path / "pid")
    assert one.end_input() == 0
    assert gone(child)


def test_a_child_that_ignores_term_is_killed(tmp_path: Path) -> None:
    with hasty() as process:
        process.step(1, "shell", {"cmd": f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.1; done"})
        child = started(tmp_path / "pid")
        assert process.end_input() == 0
        assert gone(child)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_its_children(one: AgentProcess, tmp_path: Path, number: signal.Signals) -> None:
    one.step(1, "shell", {"cmd": f"sleep 60 & echo $! > {tmp_path}/pid; wait"})
    child = started(tmp_path / "pid")
    one.process.send_signal(number)
    assert one.process.wait(10) == 0
    assert gone(child)


def test_bye(one: AgentProcess) -> None:
    one.say({"t": "bye"})
    one.until("bye")
    assert one.process.wait(10) == 0


def test_a_daemon_that_a_step_left_stays(one: AgentProcess, tmp_path: Path) -> None:
    """As with Ansible: what a finished step started in its own session is not ours to end."""
    one.step(1, "shell", {"cmd": f"setsid sleep 30 >/dev/null 2>&1 & echo $! > {tmp_path}/pid"})
    assert not one.outcome(1).failed
    one.end_input()
    child = started(tmp_path / "pid")
    assert alive(child)
    os.kill(child, signal.SIGKILL)


GARBAGE = {
    "text": b"GET / HTTP/1.1\r\n\r\n",
    "huge header": struct.pack(">II", 2**31, 0),
    "huge payload": struct.pack(">II", 20, 2**30) + b"x" * 20,
    "not JSON": struct.pack(">II", 4, 0) + b"\xff\xfe{}",
    "no type": struct.pack(">II", 2, 0) + b"{}",
    "unknown type": encode({"t": "dance"}),
    "step without fields": encode({"t": "step", "step": {}}),
    "step with too many": encode({"t": "step", "step": {"id": 1, "module": "ping", "args": {}, "colour": "red"}}),
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_is_said_and_ends_it(one: AgentProcess, data: bytes) -> None:
    one.raw(data)
    crash = one.until("crash").head
    assert crash["text"]
    assert "Traceback" in crash["traceback"]
    assert one.process.wait(10) == 70


def test_a_frame_that_is_cut_off(one: AgentProcess) -> None:
    one.raw(encode({"t": "step", "step": {"id": 1, "module": "ping", "args": {}}})[:-5])
    assert one.end_input() == 0, "half a step is no step"


def test_it_beats_while_a_step_runs() -> None:
    with hasty() as process:
        process.step(1, "command", {"cmd": "sleep 30"})
        began = time.monotonic()
        process.until("beat")
        process.until("beat")
        assert time.monotonic() - began < 5


def test_large_output_is_cut_and_said(one: AgentProcess) -> None:
    one.step(1, "shell", {"cmd": "head -c 3000000 /dev/zero | tr '\\0' x"})
    outcome = one.outcome(1)
    assert len(outcome.values["stdout"]) < 1.1 * 1024 * 1024
    assert "left out" in outcome.warnings[0]


BROKEN = """\
from __future__ import annotations
import sys
import time
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec("a broken module", {"data": Param()})

def act(system, args, check):
    if args["data"] == "progress":
        print("a stray print")
        sys.stdout.flush()
        system.progress("half of it")
    if args["data"] == "object":
        return Outcome(changed=True, values={"what": object()})
    if args["data"] == "exit":
        sys.exit(3)
    if args["data"] == "stuck":
        time.sleep(60)
    if args["data"] == "huge":
        return Outcome(values={"what": "x" * (65 * 1024 * 1024)})
    return Outcome()
"""


@pytest.fixture
def broken() -> Iterator[AgentProcess]:
    with AgentProcess(sys.executable, {"nodectl.agent.modules.ping": BROKEN}) as process:
        yield process


def test_progress_reaches_the_controller_and_prints_do_not(broken: AgentProcess) -> None:
    broken.step(7, "ping", {"data": "progress"})
    assert broken.until("progress", id=7).head["text"] == "half of it"
    assert not broken.outcome(7).failed
    broken.end_input()
    assert "a stray print" in broken.errors()


@pytest.mark.parametrize(("data", "words"), [("object", "not JSON serializable"), ("huge", "frame too large")])
def test_a_result_that_cannot_be_sent(broken: AgentProcess, data: str, words: str) -> None:
    broken.step(1, "ping", {"data": data})
    outcome = broken.outcome(1)
    assert outcome.failed
    assert "bug of ours" in outcome.msg
    assert words in outcome.msg
    assert outcome.changed == (data == "object"), "what it did is not forgotten"
    broken.step(2, "ping", {})
    assert not broken.outcome(2).failed


def test_a_module_that_ends_the_worker(broken: AgentProcess) -> None:
    """The line must close: an agent that only beats would be waited for until the task's time limit."""
    broken.step(1, "ping", {"data": "exit"})
    broken.until("bye")
    assert broken.process.wait(10) == 0


@pytest.mark.parametrize("how", ["timeout", "cancel"])
def test_a_step_that_cannot_be_ended_gets_its_outcome(how: str) -> None:
    """A dead mount in small: the module does not come back. The agent answers for it and leaves; the next step is lost with it."""
    with hasty() as process:
        process.step(1, "ping", {"data": "stuck"}, **({"timeout": 0.2} if how == "timeout" else {}))
        process.step(2, "ping", {})
        if how == "cancel":
            process.until("beat")
            process.say({"t": "cancel", "id": 1})
        outcome = process.outcome(1)
        assert outcome.failed
        assert "hangs in the kernel" in outcome.msg
        assert ("cancelled" if how == "cancel" else "within the 0.2 s") in outcome.msg
        process.until("bye")
        assert process.process.wait(10) == 0


def test_a_step_that_runs_long_is_not_given_up() -> None:
    with hasty() as process:
        process.step(1, "command", {"cmd": "sleep 0.6"})
        assert not process.outcome(1).failed


def test_a_module_that_is_no_python() -> None:
    with AgentProcess(sys.executable, {"nodectl.agent.modules.ping": "def act(:\n"}) as process:
        process.step(1, "ping", {})
        assert "SyntaxError" in process.outcome(1).msg
        process.step(2, "command", {"cmd": "true"})
        assert not process.outcome(2).failed


def test_a_controller_that_never_reads() -> None:
    """The pipe is full and nobody drains it: the end of input must still end the agent."""
    with hasty() as process:
        for number in range(1, 4):
            process.step(number, "shell", {"cmd": "head -c 100000 /dev/zero | tr '\\0' x"})
        time.sleep(0.3)
        assert process.end_input() == 0


def test_umask_language_and_path_are_fixed(one: AgentProcess) -> None:
    one.step(1, "shell", {"cmd": "umask; echo $LC_ALL; echo $PATH; echo $EXTRA; cat"}, environment={"EXTRA": "from the task"})
    lines = one.outcome(1).values["stdout_lines"]
    assert lines == ["0022", "C.UTF-8", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "from the task"]


def test_timeout_of_a_step(one: AgentProcess, tmp_path: Path) -> None:
    one.step(1, "shell", {"cmd": f"echo before; sleep 60 & echo $! > {tmp_path}/pid; wait"}, timeout=0.5)
    outcome = one.outcome(1)
    assert outcome.failed
    assert "did not end within the 0.5 s" in outcome.msg
    assert outcome.values["stdout"] == "before\n"
    assert gone(started(tmp_path / "pid"))
