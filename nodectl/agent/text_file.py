"""One text file as a whole: read, compared with the text that is wished, replaced or removed. Shared by the modules that own a file."""

from __future__ import annotations

import contextlib
import os
from typing import Optional

from nodectl.agent.contract import Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Change


def read(system: System, path: str) -> Optional[str]:
    """The text, whatever its bytes; None where there is no file."""
    data = system.read(path)
    return None if data is None else data.decode("utf-8", "surrogateescape")


def change(path: str, before: Optional[str], after: Optional[str], action: str = "") -> Change:
    """``after`` None: no file is wished. ``action``: another sentence than "write PATH"."""
    if before == after:
        return Change()
    sentence = action or f"{'write' if after is not None else 'remove'} {path}"
    return Change([sentence], before or "", after or "", path, path, {"after": after})


def put(system: System, path: str, after: Optional[str], mode: Optional[int] = None) -> None:
    """The file as wished; its folder is made where there is none."""
    if after is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    os.makedirs(os.path.dirname(path) or "/", mode=0o755, exist_ok=True)
    system.write_atomic(path, after.encode("utf-8", "surrogateescape"), mode=mode)


def one_line(name: str, text: str) -> str:
    """``text``, which is to be one line of a file. Raises Failed for one that would become several."""
    if "\n" in text or "\r" in text or "\0" in text:
        raise Failed(f"{name} is to be one line: {text!r}")
    return text
