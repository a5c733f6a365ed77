"""Runs in a private mount namespace with an /etc of its own: takes steps and shell lines as JSON, answers with JSON.

So modules that write /etc/fstab and mount things can be run for real, and nothing of it stays on the machine.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

# Programs that leave the node as it was.
_LOOK = ("blkid", "wipefs --no-act", "findfs", "modprobe --dry-run", "udevadm", sys.executable)


def dies(step: Any, number: int, moment: str) -> dict[str, Any]:
    """The step in a process that is killed at its act number ``number`` (from 0): before it, after it, or while it is at work. What it then was."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        acts = _mortal(step, number, moment, writer)
        os.write(writer, f"lived through {acts}".encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return {"said": said}


def _mortal(step: Any, number: int, moment: str, writer: int) -> int:
    from nodectl.agent.runner import run_step
    from nodectl.agent.system import System

    count = 0

    class Mortal(System):
        def act(self, what: str, do: Any, start: Any) -> Any:
            nonlocal count
            count += 1
            if count - 1 != number:
                return do()
            os.write(writer, what.encode())
            if moment == "while":
                start()
            elif moment == "after":
                do()
            os.kill(os.getpid(), signal.SIGKILL)
            return None

        def run(self, argv: Any, *args: Any, **more: Any) -> Any:
            line = " ".join(argv)
            if line.startswith(_LOOK):
                return super().run(argv, *args, **more)
            return self.act(line, lambda: super(Mortal, self).run(argv, *args, **more), lambda: subprocess.Popen(argv, stdin=subprocess.DEVNULL, close_fds=True))

        def write_atomic(self, path: str, *args: Any, **more: Any) -> None:
            self.act(f"write {path}", lambda: super(Mortal, self).write_atomic(path, *args, **more), lambda: None)

    run_step(Mortal(), step)
    return count


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    from nodectl.agent.runner import run_step
    from nodectl.agent.system import System
    from nodectl.wire.step import Step

    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        if "sh" in order:
            done = subprocess.run(["/bin/sh", "-c", order["sh"]], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
            answer: dict[str, Any] = {"rc": done.returncode, "out": done.stdout, "err": done.stderr}
        else:
            step = Step(id=1, module=order["module"], args=order["args"], check=order["check"], diff=True)
            answer = dies(step, **order["dies"]) if "dies" in order else run_step(System(), step).to_json()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
