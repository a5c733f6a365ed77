"""What is outside the files of a playbook: programs on the controller, run for an inventory or for a template."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

# s; Ansible waits for ever. A cloud's inventory program may ask page after page; none that was seen needs a minute.
LIMIT = 120.0


def output(argv: Sequence[str], folder: Path | None = None) -> str:
    """What a program prints. Raises ValueError for one that cannot be run, fails, does not end or prints no text."""
    try:
        done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip()[-500:]
            raise ValueError(f"{argv[0]} ended with {done.returncode}: {said or 'it said nothing'}")
        return done.stdout.decode("utf-8")
    except subprocess.TimeoutExpired:
        raise ValueError(f"{argv[0]} did not end within {LIMIT:g} s") from None
    except UnicodeDecodeError:
        raise ValueError(f"{argv[0]} prints something that is not UTF-8 text") from None
    except OSError as error:
        raise ValueError(f"{argv[0]} cannot be run: {error.strerror}") from None
