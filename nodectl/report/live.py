"""What is shown while a run goes on: on a terminal one line per busy node under the log, elsewhere the log alone."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TypeVar, cast

from rich.console import Console, Group, RenderableType
from rich.live import Live as RichLive
from rich.table import Table
from rich.text import Text

from nodectl.report.fold import Summary, title
from nodectl.report.human import TaskLog, View, ending, printable, progress_text, recap, verdict_table
from nodectl.wire.event import Event

# Columns where there is no terminal to ask: wide enough for a reason on one line, and the same in every log file.
PLAIN_WIDTH = 160
# Rows of the live view. More would push the log off a small terminal; the rest is counted in the last row.
ROWS = 12
# Redraws per second: enough for the seconds to tick, too few to be seen in `top`.
REDRAWS = 4
Result = TypeVar("Result")


@dataclass(frozen=True)
class Stage:
    """What the whole run is at: since when (monotonic), and for how many seconds at most where that is known."""

    text: str
    since: float
    bound: float | None


class Output:
    """A stream that may die under a run: its reader goes away (`| head`), its disk fills, its terminal is closed. What is written then is
    thrown away, and the run goes on: the journal has everything."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream: IO[str] | None = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        return self._attempt(lambda stream: stream.write(text), len(text))

    def flush(self) -> None:
        self._attempt(lambda stream: stream.flush(), None)

    def isatty(self) -> bool:
        return self._attempt(lambda stream: stream.isatty(), False)

    def fileno(self) -> int:
        if self._stream is None:
            raise OSError("the output is gone")
        return self._stream.fileno()

    def _attempt(self, act: Callable[[IO[str]], Result], otherwise: Result) -> Result:
        if self._stream is None:
            return otherwise
        try:
            return act(self._stream)
        except OSError:
            stream, self._stream = self._stream, None
            with suppress(OSError, ValueError):  # what is still buffered goes nowhere, or Python would complain once more at its own end
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)
            return otherwise


def console_for(stream: IO[str] | None = None) -> Console:
    """A console on ``stream`` (standard output). NO_COLOR and TERM=dumb are honoured by rich."""
    out = stream or sys.stdout
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="backslashreplace")  # what a node says need not be text in this terminal's encoding
    width = None if out.isatty() else PLAIN_WIDTH
    return Console(file=cast(IO[str], Output(out)), width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)


class Live:
    """Shows events as they come; safe to call from any thread. Use as a context manager, so that the terminal is put right."""

    def __init__(self, console: Console, view: View) -> None:
        self._console = console
        self._log = TaskLog(view)
        self._lock = threading.Lock()
        self._busy: dict[str, tuple[str, float]] = {}
        self._hosts: list[str] = []
        self._stage: Stage | None = None
        self._rich: RichLive | None = None
        if console.is_terminal and not console.is_dumb_terminal:
            self._rich = RichLive(get_renderable=self._table, console=console, refresh_per_second=REDRAWS, transient=True)

    def __enter__(self) -> Live:
        if self._rich:
            self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the live rows away; idempotent. The log above stays."""
        if self._rich:
            self._rich.stop()

    def __call__(self, event: Event) -> None:
        with self._lock:
            self._note(event)
            for line in self._log.lines(event):
                self._console.print(line)

    def _note(self, event: Event) -> None:
        if event.kind == "play.start":
            self._hosts = event.texts("hosts")
        elif event.kind == "task.start":  # the start of a task is one event for all hosts that are still in the play
            now = time.monotonic()
            self._busy = {host: (title(event.data), now) for host in self._hosts} | {host: (title(event.data), now) for host in [event.host] if host}
        elif event.kind == "progress":
            self._progress(event)
        elif event.kind in ("task.end", "check", "verdict", "host.unreachable", "host.lost", "host.stopped"):
            self._busy.pop(event.host, None)  # a check: the node has answered, the others are still at it
            if event.kind.startswith("host."):
                self._hosts = [host for host in self._hosts if host != event.host]
        elif event.kind in ("handoff", "run.end"):
            self._stage, self._busy = None, {}

    def _progress(self, event: Event) -> None:
        now = time.monotonic()
        hosts, bound = event.texts("hosts"), event.data.get("bound")
        if event.host:
            self._busy[event.host] = (progress_text(event), now)
        elif hosts:
            self._stage = Stage(progress_text(event), now, float(bound) if isinstance(bound, (int, float)) else None)
            self._busy = dict.fromkeys(hosts, ("", now))
        elif self._stage:  # a part of it begins, such as the next round of pairs
            self._stage = replace(self._stage, text=progress_text(event))

    def _table(self) -> RenderableType:
        now = time.monotonic()
        # The longest at work first: that is the one a person waits for.
        busy = sorted(self._busy.copy().items(), key=lambda item: item[1][1])
        table = Table.grid(padding=(0, 2))
        for host, (text, since) in busy[:ROWS]:
            table.add_row(Text(printable(host), style="bold"), Text(f"{now - since:4.0f} s", style="dim"), _one_line(text))
        if len(busy) > ROWS:
            table.add_row(Text(f"and {len(busy) - ROWS} more", style="dim"))
        return Group(self._heading(self._stage, len(busy), now), table) if self._stage else table

    @staticmethod
    def _heading(stage: Stage, busy: int, now: float) -> Text:
        """A line of its own: its words would else widen the column of names."""
        bound = f" of at most {stage.bound:.0f} s" if stage.bound else ""
        at_work = f", {busy} at work" if busy else ""
        line = _one_line(f"{now - stage.since:.0f} s{bound}{at_work}  {stage.text}")
        line.stylize("bold")
        return line


def _one_line(text: str) -> Text:
    return Text(printable(text), no_wrap=True, overflow="ellipsis")


def _print_table(console: Console, table: Table) -> None:
    """In a file without the blanks that fill the last column."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        console.print(Text(line.rstrip()))


def show_verdicts(console: Console, summary: Summary) -> None:
    """The table of verdicts alone."""
    _print_table(console, verdict_table(summary))


def show_closing(console: Console, summary: Summary, folder: Path) -> None:
    """The end of every run: recap, table of verdicts, where things are."""
    for line in recap(summary):
        console.print(line)
    console.print()
    _print_table(console, verdict_table(summary))
    for line in ending(summary, folder):
        console.print(line)
