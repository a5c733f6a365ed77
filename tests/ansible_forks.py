"""Runs many cases with real ansible, importing it once: each case is a fork of this process, in its own folder.

``python -m tests.ansible_forks playbook|inventory``; stdin: JSON list of [folder, [arguments]].
A playbook's folder gets sequence.jsonl (written by the callback plugin of tests/engine/oracle), output.txt and exit_code;
an inventory's gets listed.json.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
# As many as the smallest machine that the tests are meant for has cores.
TOGETHER = 2


def ask(kind: str, questions: Sequence[tuple[str, Sequence[str]]], environment: Mapping[str, str], deadline: float) -> None:
    """From a test: all questions in one process. Raises CalledProcessError, TimeoutExpired."""
    argv = [sys.executable, "-m", "tests.ansible_forks", kind]
    subprocess.run(argv, cwd=ROOT, env={**environment}, input=json.dumps(questions), text=True, timeout=deadline, check=True, capture_output=kind == "inventory")


def playbook(folder: str, arguments: list[str]) -> None:
    from ansible.cli.playbook import PlaybookCLI

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


def inventory(folder: str, sources: list[str]) -> None:
    from ansible.cli.inventory import InventoryCLI

    with open("listed.json", "wb", buffering=0) as out:
        os.dup2(out.fileno(), 1)
    cli = InventoryCLI(["ansible-inventory", "--list", "--vars", *(word for source in sources for word in ("-i", source))])
    cli.parse()
    with contextlib.suppress(SystemExit):  # that is how it ends
        cli.run()


def fork(one: Callable[[str, list[str]], None], folder: str, arguments: list[str]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        os.chdir(folder)
        one(folder, arguments)
    finally:
        sys.stdout.flush()
        os._exit(0)


def main(kind: str) -> None:
    import ansible.cli.inventory
    import ansible.cli.playbook  # noqa: F401  # once, for all forks

    one = {"playbook": playbook, "inventory": inventory}[kind]
    waiting = json.load(sys.stdin)
    running: set[int] = set()
    while waiting or running:
        while waiting and len(running) < TOGETHER:
            running.add(fork(one, *waiting.pop()))
        running.discard(os.wait()[0])


if __name__ == "__main__":
    main(sys.argv[1])
