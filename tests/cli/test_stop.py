"""Ctrl-C, SIGTERM, a closed terminal, and an output that dies: the run ends soon and its record is whole."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import pytest

from nodectl.cli.exit_codes import code_of
from nodectl.cli.session import Session
from nodectl.report.exit_code import ExitCode
from nodectl.report.human import View
from nodectl.report.journal import read_journal
from nodectl.report.live import Output, console_for
from nodectl.transport.channel import BecomeTarget, Channel, Limits, Ran, Target

BOOK = "- hosts: all\n  gather_facts: false\n  tasks:\n    - command: echo one\n    - command: {}\n    - file: {{path: done, state: touch}}\n"
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Lines:
    """Connections on which somebody waits until they are closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()
        self.closes = 0

    def channel(self, target: Target, become: BecomeTarget | None = None) -> Channel:
        raise AssertionError("not asked")

    def fresh(self, target: Target, become: object = None) -> Channel:
        raise AssertionError("not asked")

    def raw(self, target: Target, become: BecomeTarget | None, command: str, executable: str, seconds: float) -> Ran:
        raise AssertionError("not asked")

    def reset(self, host: str) -> None:
        """Nothing is open."""

    def close(self) -> None:
        self.closes += 1
        if self.closes == 1:
            signal.raise_signal(signal.SIGINT)  # an impatient person: the second Ctrl-C comes while the run ends
        self.closed.set()


@pytest.mark.parametrize("number", STOPS)
def test_a_stop_closes_the_lines_before_anybody_waits_for_a_thread(tmp_path: Path, number: signal.Signals) -> None:
    """A pool of threads that is left waits for its threads, and those wait for nodes: seen in the verification, for as long as fio took."""
    # Whatever started the tests: nohup ignores SIGHUP, and a job in the background SIGINT.
    own = {one: signal.signal(one, signal.default_int_handler if one == signal.SIGINT else signal.SIG_DFL) for one in STOPS}
    try:
        _stopped(tmp_path, number)
    finally:
        for one, handler in own.items():
            signal.signal(one, handler)


def _stopped(tmp_path: Path, number: signal.Signals) -> None:
    before = {one: signal.getsignal(one) for one in STOPS}
    lines = Lines()

    def wait_for_a_node() -> None:
        assert lines.closed.wait(20)
        session.tell("host.lost", "n1", reason="the channel is closed")

    def run() -> None:
        with session, ThreadPoolExecutor(1) as pool:
            job = pool.submit(wait_for_a_node)
            signal.raise_signal(number)
            job.result()

    session = Session(tmp_path, Limits(), View(), [], command="run", hosts=["n1"])
    session.connections = lines
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run()
    assert time.monotonic() - begin < 10
    events = read_journal(tmp_path / "events.jsonl")
    assert [event.kind for event in events] == ["run.start", "host.stopped", "run.end"]
    assert events[-1].data["exit_code"] == 130
    assert (tmp_path / "report.json").exists()
    assert {one: signal.getsignal(one) for one in before} == before


def test_what_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Session(tmp_path, Limits(), View(), [], command="run"):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_interrupt_that_cannot_be_said_is_still_one() -> None:
    error = OSError(5, "Input/output error")
    error.__context__ = KeyboardInterrupt()
    assert code_of(error) == ExitCode.INTERRUPTED
    assert code_of(OSError(5, "Input/output error")) == ExitCode.BUG


class Dying(io.StringIO):
    """Takes ``lines`` lines."""

    def __init__(self, lines: int, error: OSError) -> None:
        super().__init__()
        self.left = lines
        self.error = error

    def write(self, text: str) -> int:
        self.left -= 1
        if self.left < 0:
            raise self.error
        return super().write(text)


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), OSError(28, "No space left on device"), OSError(5, "Input/output error")])
def test_an_output_that_dies_takes_nothing_with_it(error: OSError) -> None:
    stream = Dying(1, error)
    console = console_for(stream)
    for word in ("one", "two", "three"):
        console.print(word)
    assert stream.getvalue() == "one\n"
    stream.left = 9
    console.print("four")
    assert stream.getvalue() == "one\n"


def test_an_output_is_what_its_stream_is(tmp_path: Path) -> None:
    with open(tmp_path / "out", "w", encoding="latin-1") as stream:
        output = Output(stream)
        assert (output.encoding, output.isatty(), output.fileno()) == ("latin-1", False, stream.fileno())
        output.write("x")
        output.flush()
    assert (tmp_path / "out").read_text() == "x"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "hosts").write_text(f"here ansible_connection=local ansible_python_interpreter={sys.executable}\n")
    (tmp_path / "book.yml").write_text(BOOK.format("'true'").replace("path: done", f"path: {tmp_path}/done"))
    return tmp_path


def nodectl(place: Path, **streams: IO[str] | int | None) -> int:
    root = Path(__file__).parent.parent.parent
    command = [sys.executable, "-m", "nodectl", "run", "book.yml", "-i", "hosts", "-v"]
    return subprocess.run(command, cwd=place, env={**os.environ, "PYTHONPATH": str(root)}, timeout=60, **streams).returncode  # type: ignore[call-overload, no-any-return]


def test_a_full_disk_under_the_output_does_not_end_a_run(place: Path) -> None:
    with open("/dev/full", "w") as full:
        assert nodectl(place, stdout=full) == 0
    assert (place / "done").exists()


def test_closed_standard_streams_do_not_end_a_run_and_do_not_get_its_journal(place: Path) -> None:
    (place / "book.yml").write_text((place / "book.yml").read_text().replace("'true'", "sh -c 'echo stray; echo stray >&2'"))
    root = Path(__file__).parent.parent.parent
    command = f"exec {sys.executable} -m nodectl run book.yml -i hosts -v <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=place, env={**os.environ, "PYTHONPATH": str(root)}, timeout=60).returncode == 0
    assert (place / "done").exists()
    kinds = [event.kind for event in read_journal(place / ".nodectl" / "runs" / "latest" / "events.jsonl")]
    assert (kinds[0], kinds[-1]) == ("run.start", "run.end")
