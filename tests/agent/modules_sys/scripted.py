"""A System whose programs answer from a list: for logic that must not depend on what this machine has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nodectl.agent.contract import Failed
from nodectl.agent.processes import Completed
from nodectl.agent.system import Mount, System

Answer = tuple[int, str, str]


class Scripted(System):
    """``answers`` maps the start of a command line to (rc, stdout, stderr), or to a function of the argv. Unknown commands fail the test."""

    def __init__(self, answers: Mapping[str, Answer | Callable[[Sequence[str]], Answer]], files: Mapping[str, bytes] | None = None, mounts: Sequence[Mount] = ()) -> None:
        super().__init__()
        self.answers = answers
        self.files = dict(files or {})
        self.table = list(mounts)
        self.ran: list[str] = []
        self.fed: list[bytes] = []

    def run(self, argv: Sequence[str], stdin: bytes = b"", timeout: float | None = 60.0, env: Mapping[str, str] | None = None, cwd: str = "") -> Completed:
        line = " ".join(argv)
        self.ran.append(line)
        self.fed.append(stdin)
        for start in sorted(self.answers, key=len, reverse=True):
            if line.startswith(start):
                answer = self.answers[start]
                rc, out, err = answer(argv) if callable(answer) else answer
                return Completed(rc, out, err, tuple(argv))
        raise AssertionError(f"not scripted: {line}")

    def which(self, name: str) -> str | None:
        return f"/usr/bin/{name}" if any(start.split()[0] == name for start in self.answers) else None

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def mounts(self) -> list[Mount]:
        return self.table

    def sleep(self, seconds: float) -> None:
        return None


def filled(spec: Any, **given: Any) -> dict[str, Any]:
    """Validated arguments with defaults; fails the test when they are wrong."""
    from nodectl.wire.params import validate

    values, problems = validate(spec, given)
    assert not problems, problems
    return values


def reason(call: Callable[[], Any]) -> str:
    """The message of the Failed that ``call`` raises."""
    try:
        call()
    except Failed as failed:
        return failed.msg
    raise AssertionError("nothing was refused")
