"""`nodectl verify --replay`: the verdicts of a run again, from its evidence alone."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from nodectl.cli.adopting import adopt
from nodectl.cli.past import read_run
from nodectl.cli.version import version
from nodectl.diagnostics.model import Diagnostic, Mistakes
from nodectl.handoff.pool import pool_of
from nodectl.report.exit_code import ExitCode, first
from nodectl.report.fold import fold
from nodectl.report.live import console_for, show_verdicts
from nodectl.verify.evidence import BadEvidence, evidence_of, read_evidence
from nodectl.verify.judging.floor_load import shipped_floors
from nodectl.verify.replay import Replay, Today, replay
from nodectl.verify.suite_load import shipped_texts

# An evidence file of a thousand nodes has tens of MB; what is larger is something else.
MOST_BYTES = 1 << 30


def replayed(path: Path, adopting: bool = False) -> int:
    """Print the verdicts and what differs; the exit code is as that of the verification, and never 0 where the evidence does not hold. Raises Mistakes.

    ``adopting``: what healthy nodes reached becomes the site's floors, where the evidence holds.
    """
    try:
        evidence, notes = _evidence(path)
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        found = replay(evidence, Today(shipped_floors(), shipped_texts(), version(), day))
    except BadEvidence as error:
        hint = "take the file from where only you can write, or verify the nodes again"
        raise Mistakes([Diagnostic("E409", f"{path}: {error}", help=hint)]) from None
    summary = fold(found.events)
    show_verdicts(console_for(), summary)
    _tell(found, notes, len(evidence["readings"]))
    if adopting and not (found.broken or notes):
        adopt(evidence)
    return int(first([summary.exit_code, *([ExitCode.NOT_PROVEN] if found.broken or notes else [])]))


def _tell(found: Replay, notes: list[str], readings: int) -> None:
    count = f"{readings} reading{'' if readings == 1 else 's'}"
    click.echo(f"\njudged again from {count}: {'not as recorded' if found.broken else 'as recorded'}")
    for title, texts in (("does not hold", [*notes, *found.broken]), ("different today", found.changed)):
        for text in texts:
            click.echo(f"  {title}: {text}")


def _evidence(path: Path) -> tuple[Mapping[str, Any], list[str]]:
    """Of a file, or of a run's folder: from its journal, held against its evidence.json where there is one. Raises BadEvidence, Mistakes."""
    if path.is_dir():
        made = evidence_in(path)
        if not made["readings"]:
            raise BadEvidence("this run verified nothing, or was made by a nodectl that kept no readings")
        beside = path / "handoff" / "evidence.json"
        return made, _compare(made, read_evidence(_text(beside))) if beside.exists() else []
    return read_evidence(_text(path)), []


def evidence_in(folder: Path) -> dict[str, Any]:
    """The evidence of the run in ``folder``, from its journal. Raises Mistakes."""
    events = read_run(folder)
    pool = pool_of(events)
    return evidence_of(events, [node.host for node in pool.nodes], pool.world_size)


def _compare(made: Mapping[str, Any], kept: Mapping[str, Any]) -> list[str]:
    """The journal and the file of one run tell the same, but for who could be handed off (that is the handoff's own finding)."""
    return [
        f"{part} of the journal are not those of handoff/evidence.json: one of the two was changed"
        for part in ("inputs", "floors", "readings", "checks", "verdicts") if made["sha256"][part] != kept["sha256"][part]
    ]


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadEvidence(f"it is larger than {MOST_BYTES >> 30} GiB")
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Mistakes([Diagnostic("E409", f"{path} cannot be read: {why}", help="give a run's folder, or its handoff/evidence.json")]) from None
