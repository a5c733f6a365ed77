"""Files that a reader never sees half written."""

from __future__ import annotations

import os
from pathlib import Path

from nodectl.report.journal import JournalLost


def replace_file(path: Path, text: str) -> None:
    """Replaces ``path`` in one step; for its owner only, as the journal is: results may hold what a node says. Raises JournalLost."""
    part = path.with_name(path.name + ".part")
    try:
        # Half a surrogate pair (undecodable output of a node) becomes its escape, which JSON reads back.
        data = text.encode("utf-8", "backslashreplace")
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
        os.replace(part, path)
    except OSError as error:
        raise JournalLost(f"{path} cannot be written: {error.strerror}") from None
