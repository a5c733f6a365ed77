"""Runs in a private mount namespace with an /etc of its own: takes steps and shell lines as JSON, answers with JSON.

So modules that write /etc/fstab and mount things can be run for real, and nothing of it stays on the machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


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
            answer = run_step(System(), step).to_json()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
