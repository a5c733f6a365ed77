"""Our bug, told to the person who met it: one sentence on the screen, everything else in a file."""

from __future__ import annotations

import os
import platform
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from nodectl.cli.hide import hidden_argv
from nodectl.cli.version import version


def write_crash_log(error: BaseException, argv: Sequence[str]) -> Path:
    """The file with what a bug report needs. Values of variables are not in it, only the places in the code."""
    name = time.strftime("crash-%Y%m%dT%H%M%SZ", time.gmtime()) + f"-{os.getpid()}.txt"
    for folder in (Path(".nodectl"), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / name
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(crash_text(error, argv))
            return path
        except OSError:
            continue
    return Path(os.devnull)


def crash_text(error: BaseException, argv: Sequence[str]) -> str:
    frames = "".join(traceback.format_exception(error))
    return f"nodectl {version()}\nPython {platform.python_version()} on {platform.platform()}\ncommand: {' '.join(hidden_argv(argv))}\n\n{frames}"


def crash_message(error: BaseException, log: Path) -> str:
    return (
        f"nodectl has a bug: {type(error).__name__}: {error}\n"
        f"  what happened is in {log}\n"
        "  help: please report it with that file. Nodes may be half done; running the same command again is safe: every task looks before it acts."
    )
