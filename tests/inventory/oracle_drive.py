"""Runs `ansible-inventory --list --vars` for many folders, importing ansible once: each is a fork of this process.

stdin: JSON list of [folder, [sources]]. Each folder gets listed.json.
"""

from __future__ import annotations

import json
import os
import sys


def one(folder: str, sources: list[str]) -> None:
    """Never returns."""
    from ansible.cli.inventory import InventoryCLI

    os.chdir(folder)
    with open("listed.json", "wb", buffering=0) as out:
        os.dup2(out.fileno(), 1)
    try:
        cli = InventoryCLI(["ansible-inventory", "--list", "--vars", *(word for source in sources for word in ("-i", source))])
        cli.parse()
        cli.run()
    except SystemExit:
        sys.stdout.flush()
    finally:
        os._exit(0)


def main() -> None:
    import ansible.cli.inventory  # noqa: F401  # once, for all forks

    waiting = json.load(sys.stdin)
    running: set[int] = set()
    while waiting or running:
        while waiting and len(running) < 2:
            folder, sources = waiting.pop()
            pid = os.fork()
            if pid == 0:
                one(folder, sources)
            running.add(pid)
        running.discard(os.wait()[0])


if __name__ == "__main__":
    main()
