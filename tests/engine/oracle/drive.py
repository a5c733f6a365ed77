"""Runs many playbooks with real ansible, importing it once: each case is a fork of this process.

stdin: JSON list of [folder, [arguments]]. Each folder gets sequence.jsonl, output.txt and exit_code.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from ansible.cli.playbook import PlaybookCLI


def one(folder: str, arguments: list[str]) -> None:
    """Never returns."""
    os.chdir(folder)
    os.environ["NODECTL_ORACLE_OUT"] = str(Path(folder) / "sequence.jsonl")
    with open("output.txt", "wb", buffering=0) as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    code = 250
    try:
        cli = PlaybookCLI(["ansible-playbook", "site.yml", *arguments])
        cli.parse()
        code = cli.run()
    finally:
        if sys.exc_info()[0]:
            traceback.print_exc()
        Path("exit_code").write_text(str(code))
        sys.stdout.flush()
        os._exit(0)


def main() -> None:
    waiting = json.load(sys.stdin)
    running: set[int] = set()
    while waiting or running:
        while waiting and len(running) < 2:
            folder, arguments = waiting.pop()
            pid = os.fork()
            if pid == 0:
                one(folder, arguments)
            running.add(pid)
        running.discard(os.wait()[0])


if __name__ == "__main__":
    main()
