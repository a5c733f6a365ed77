"""Kills a process that runs steps of the agent, again and again, and looks at what it left. Run as a program: orders on stdin, findings on stdout, both JSON.

An order: {"steps": [A, B], "file": PATH, "kills": N, "seed": N}, and "longest" and "settle" in seconds. The two steps are done in turn until the kill, so that the file
is always to be what one of them makes of it. Afterwards A is done once in peace.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
import traceback
from typing import Any

from nodectl.agent.runner import run_step
from nodectl.agent.system import System
from nodectl.wire.step import Step

# A step takes one to five milliseconds, those with a program fifty: kills fall into every part of one.
LONGEST_S = 0.012


def done(order: dict[str, Any], number: int) -> None:
    module, args = order["steps"][number % 2]
    outcome = run_step(System(), Step(number, module, args))
    assert not outcome.failed, outcome.msg


def look(path: str) -> list[Any]:
    """[content, mode, uid, gid]"""
    info = os.stat(path)
    with open(path, encoding="utf-8") as file:
        return [file.read(), info.st_mode, info.st_uid, info.st_gid]


def worker(order: dict[str, Any]) -> int:
    """Its pid, from the moment on at which it begins its first step: on a busy machine a new process waits for its turn."""
    ready, begins = os.pipe()
    child = os.fork()
    if child:
        os.close(begins)
        os.read(ready, 1)
        os.close(ready)
        return child
    try:
        os.write(begins, b"1")
        for number in itertools.count():
            done(order, number)
    finally:  # a forked child must never come back into the program
        traceback.print_exc()
        os._exit(1)


def kill(order: dict[str, Any], chance: random.Random) -> str:
    """"" where the file is whole, else what is wrong."""
    child = worker(order)
    time.sleep(chance.uniform(0, order.get("longest", LONGEST_S)))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    time.sleep(order.get("settle", 0))  # a program that the step had started may still be at work
    if not os.WIFSIGNALED(status):
        return "the worker ended by itself"
    found = look(order["file"])
    return "" if found in order["wanted"] else f"half: {found}"


def in_place(system: System, path: str, data: Any, **_how: Any) -> None:
    """How write_atomic must not write: for the test that this program sees it."""
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.read())


def main() -> None:
    order = json.load(sys.stdin)
    if order.get("in_place"):
        System.write_atomic = in_place  # type: ignore[method-assign, assignment]
    chance = random.Random(order["seed"])
    wanted: list[Any] = []
    wrong: list[str] = []
    for number in (0, 1):
        done(order, number)
        wanted.append(look(order["file"]))
    order["wanted"] = wanted
    folder, left = os.path.dirname(order["file"]), set[str]()
    before = set(os.listdir(folder))
    for _ in range(order["kills"]):
        wrong += filter(None, [kill(order, chance)])
        left |= set(os.listdir(folder)) - before
    done(order, 1)
    done(order, 0)
    after = set(os.listdir(folder)) - before
    print(json.dumps({"wrong": wrong[:3], "left": sorted(left), "after": sorted(after), "differ": wanted[0] != wanted[1]}))


if __name__ == "__main__":
    main()
