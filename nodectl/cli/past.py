"""Runs of the past, read from their folders."""

from __future__ import annotations

from pathlib import Path

from nodectl.diagnostics.model import Diagnostic, Mistakes
from nodectl.report.journal import BadJournal, read_journal
from nodectl.wire.event import Event


def read_run(folder: Path) -> list[Event]:
    """The events of the run in ``folder``. Raises Mistakes where it holds none."""
    path = folder / "events.jsonl"
    try:
        events = read_journal(path)
    except FileNotFoundError:
        hint = "give one of .nodectl/runs/*, or .nodectl/runs/latest"
        raise Mistakes([Diagnostic("E406", f"{folder} is not the folder of a run: it has no events.jsonl", help=hint)]) from None
    except (BadJournal, OSError) as error:
        what = f"{path} cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
        raise Mistakes([Diagnostic("E406", what, help="the journal was changed or is not readable; take it from a backup")]) from None
    if not events:
        raise Mistakes([Diagnostic("E406", f"{path} is empty: the run ended before it began", help="start the run again")])
    return events
