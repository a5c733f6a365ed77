"""Diagnostics for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nodectl.diagnostics.model import Diagnostic
from nodectl.diagnostics.order import in_order


def render_json(diagnostics: Sequence[Diagnostic]) -> str:
    """A JSON document: {"diagnostics": [{code, severity, message, label, help, file, line, column, width}]}; places are null where there is none."""
    return json.dumps({"diagnostics": [_entry(one) for one in in_order(diagnostics)]}, indent=2, ensure_ascii=False)


def _entry(diagnostic: Diagnostic) -> dict[str, Any]:
    place = diagnostic.origin.to_json() if diagnostic.origin else dict.fromkeys(("file", "line", "column", "width"))
    said = {name: getattr(diagnostic, name) for name in ("code", "severity", "message", "label", "help")}
    return {**said, **place}
