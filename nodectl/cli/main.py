"""The command line. Here, and only here, an exception becomes an exit code and a text for a person."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

import click

from nodectl.cli.crash import crash_message, write_crash_log
from nodectl.cli.exit_codes import code_of
from nodectl.cli.mistakes import render_mistakes
from nodectl.cli.version import version
from nodectl.diagnostics.model import Mistakes
from nodectl.handoff.write import NotWritten
from nodectl.report.exit_code import ExitCode
from nodectl.report.journal import JournalLost

# One file each. They are imported when they are called: `nodectl lab down` need not wait for paramiko.
COMMANDS = (
    "bootstrap", "run", "verify", "collective", "handoff", "report", "advise", "plan", "check",
    "facts", "ping", "inventory", "vault", "doc", "explain", "lab",
)  # fmt: skip


@dataclass
class Settings:
    """What an option of a command tells ``main`` about how mistakes are to be shown."""

    format: str = "human"


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"nodectl.cli.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(version(), prog_name="nodectl")
def cli() -> None:
    """From "sshd answers" to "ready for a training run, and proven so".

    nodectl bootstrap HOSTS does the whole job: provision with roles, verify, hand off.
    Exit codes: 0 done and proven, 1 the input is wrong, 2 a task failed, 3 not proven, 4 a node was not reached or lost, 70 a bug, 130 interrupted.
    """


def main() -> NoReturn:
    _open_standard_streams()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    code = run(sys.argv[1:])
    with suppress(OSError):
        sys.stdout.flush()
    sys.exit(code)


def _open_standard_streams() -> None:
    """Closed ones (`>&-`) are opened on /dev/null: else the journal would get number 1, and a child's output would land in it."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    # Python has None for a stream that was closed when it began.
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """A service manager's stop is handled as Ctrl-C: connections are closed, the journal gets its end."""
    raise KeyboardInterrupt


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code; never raises."""
    settings = Settings()
    try:
        code = cli.main(args=list(arguments), prog_name="nodectl", standalone_mode=False, obj=settings)
        return int(code or 0)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); nothing is wrong with the run. Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.DONE)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  a process edge: nothing may reach the user as a traceback
        with suppress(OSError):  # standard error may be gone with the terminal; the exit code still tells
            show(error, settings, arguments)
        return int(code_of(error))


def show(error: BaseException, settings: Settings, arguments: Sequence[str]) -> None:
    if isinstance(error, Mistakes):
        # Machines read standard output, people standard error.
        click.echo(render_mistakes(error.diagnostics, settings.format), err=settings.format == "human")
    elif isinstance(error, click.ClickException):
        error.show()
    elif code_of(error) == ExitCode.INTERRUPTED:
        click.echo("interrupted", err=True)
    elif isinstance(error, (JournalLost, NotWritten)):
        click.echo(f"nodectl stopped: {error}\n  help: make room there, or give another --run-dir; then run the same command again", err=True)
    else:
        click.echo(crash_message(error, write_crash_log(error, arguments)), err=True)
