"""One run from its folder to its exit code: journal, screen and connections live and end together."""

from __future__ import annotations

import secrets
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from nodectl.cli.exit_codes import code_of
from nodectl.cli.version import version
from nodectl.diagnostics.model import Diagnostic, Mistakes
from nodectl.report.exit_code import ExitCode
from nodectl.report.files import write_files
from nodectl.report.fold import Summary, fold
from nodectl.report.human import View
from nodectl.report.journal import Journal, JournalLost, read_journal
from nodectl.report.live import Live, console_for, show_closing
from nodectl.report.redact import Redactor
from nodectl.transport.channel import Connections, Limits
from nodectl.transport.pool import Pool
from nodectl.wire.event import Event
from nodectl.wire.secret import Secret

RUNS = Path(".nodectl") / "runs"
# Ctrl-C, the stop of a service manager, a terminal that is gone.
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def make_run_folder(wanted: Path | None) -> Path:
    """The run's folder, made. A folder given by the user may exist if it holds no run yet. Raises Mistakes."""
    folder = wanted or RUNS / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(3)}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (folder / "events.jsonl").exists():
            raise Mistakes([Diagnostic("E406", f"{folder} holds a run already", help="give another --run-dir; a run is never overwritten")])
    except OSError as error:
        hint = "give a folder you may write to with --run-dir"
        raise Mistakes([Diagnostic("E406", f"the run's folder {folder} cannot be made: {error.strerror}", help=hint)]) from None
    return folder.resolve()


class Session:
    """``emit`` is given to everything that runs; it masks, journals and shows, in that order. Use as a context manager."""

    def __init__(self, folder: Path, limits: Limits, view: View, known_secrets: Sequence[Secret], **about: Any) -> None:
        self.folder = folder
        self._redactor = Redactor(known_secrets)
        self._journal = Journal(folder / "events.jsonl")
        self._console = console_for()
        self._live = Live(self._console, view)
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self.connections: Connections = Pool(limits, progress=self._progress, warn=self._warn)
        self._about = {"run_id": folder.name, "version": version(), **about}
        self._handlers: dict[signal.Signals, Any] = {}
        self._stopping = False

    def __enter__(self) -> Session:
        self._catch_stops()
        _point_latest(self.folder)
        self._live.__enter__()
        self.tell("run.start", **self._about)
        return self

    def _catch_stops(self) -> None:
        if threading.current_thread() is threading.main_thread():  # Python lets no other thread do it
            # What is ignored stays so: nohup does it, and shells for what they start in the background.
            wanted = [number for number in STOPS if signal.getsignal(number) is not signal.SIG_IGN]
            self._handlers = {number: signal.signal(number, self._stop) for number in wanted}

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """The first stop ends the run; what comes after it, or while the run ends anyhow, would only spoil its end, which takes seconds.

        The lines are closed at once: whoever waits for a node hears of it, and what runs on the nodes is ended. Raising alone would not
        do: pools of threads wait for their threads, and those for their nodes.
        """
        if self._stopping:
            return
        self._stopping = True
        threading.Thread(target=self.connections.close, name="nodectl-stop", daemon=True).start()
        raise KeyboardInterrupt

    def emit(self, event: Event) -> None:
        if self._stopping and threading.current_thread() is not threading.main_thread():
            return  # "lost", says a thread whose line we have just closed
        masked = self._redactor.event(event)
        with self._lock:  # the journal and the screen show the same order
            self._journal(masked)
            self._live(masked)

    def tell(self, kind: str, host: str = "", **data: Any) -> None:
        self.emit(Event(kind, time.time(), host, data))

    def _progress(self, host: str, text: str) -> None:
        self.tell("progress", host, stage="", text=text)

    def _warn(self, text: str) -> None:
        self.tell("warning", text=text)

    def events(self) -> list[Event]:
        """Everything so far, read back from the journal: what the handoff and the report are made from."""
        return read_journal(self._journal.path)

    def summary(self) -> Summary:
        return fold(self.events())

    @property
    def exit_code(self) -> int:
        return int(self.summary().exit_code)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stopping = True
        try:
            self.connections.close()
        finally:
            try:
                if not isinstance(error, JournalLost):
                    self._end(error)
            finally:
                self._live.stop()
                for number, handler in self._handlers.items():
                    signal.signal(number, handler)

    def _end(self, error: BaseException | None) -> None:
        """run.end, the files beside the journal and the closing table, whatever ended the run."""
        if error is not None and code_of(error) != ExitCode.INPUT_WRONG:
            self._say_what_is_open()
        code = self.exit_code if error is None else int(code_of(error))
        self.tell("run.end", exit_code=code, seconds=round(time.monotonic() - self._started, 3))
        self._journal.close()
        self._live.stop()
        summary = self.summary()
        try:
            write_files(summary, self.folder)
        finally:
            if code != ExitCode.INPUT_WRONG:  # then no node was touched, and the mistakes are all there is to say
                show_closing(self._console, summary, self.folder)

    def _say_what_is_open(self) -> None:
        """Nobody knows how far the nodes came that were at work: "ok" would be a guess."""
        for name, host in self.summary().hosts.items():
            if host.status == "ok":
                self.tell("host.stopped", name, reason="the run ended before its time; what was under way may be half done")


def _point_latest(folder: Path) -> None:
    """`.nodectl/runs/latest` for people and scripts. Two runs at once race for it, and either answer is right."""
    link = folder.parent / "latest"
    if link.exists() and not link.is_symlink():
        return
    part = folder.parent / f".latest-{folder.name}"
    with suppress(OSError):  # a file system without symbolic links has no shortcut, and needs none
        part.symlink_to(folder.name)
        part.replace(link)
