"""report.json: what scripts may rely on."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nodectl.report.fold import HostSummary, Summary
from nodectl.report.replace_file import replace_file


def report(summary: Summary) -> dict[str, Any]:
    """The summary as JSON types. Per host: status, stats, pending_handlers, verdict, checks, and the sentences behind them."""
    return {
        "run_id": summary.run_id,
        "command": summary.command,
        "version": summary.version,
        "check": summary.check,
        "started": _utc(summary.started),
        "seconds": round(summary.seconds, 3),
        "complete": summary.complete,
        "exit_code": int(summary.exit_code),
        "hosts": {name: _host(host) for name, host in summary.hosts.items()},
        "suite": str(summary.suite.get("name", "")),
        "sweeps": [_sweep(one) for one in summary.sweeps],
        "handoff": summary.handoff,
        "warnings": summary.warnings,
    }


def _host(host: HostSummary) -> dict[str, Any]:
    return {
        "status": host.status,
        "stats": asdict(host.stats),
        "pending_handlers": host.pending_handlers,
        "verdict": host.verdict,
        # The raw outputs stay in events.jsonl: of a thousand nodes they are a hundred megabytes.
        "checks": [{key: value for key, value in check.items() if key != "raw" and (key != "waiver" or value)} for check in host.checks],
        "simulated": host.simulated,
        "reason": host.reason,
        "hint": host.hint,
        "reasons": host.reasons,
    }


def _sweep(data: dict[str, Any]) -> dict[str, Any]:
    """A sweep as its event has it. Each rank's time stays in events.jsonl: of a thousand ranks they are most of it."""
    rows = data.get("rows")
    kept = [{key: value for key, value in row.items() if key != "ranks"} for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return {**data, "rows": kept}


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else ""


def text(summary: Summary) -> str:
    return json.dumps(report(summary), indent=2, ensure_ascii=False) + "\n"


def write_report(summary: Summary, path: Path) -> None:
    """Replaces ``path`` in one step, so that a reader never sees half a report. Raises JournalLost."""
    replace_file(path, text(summary))
