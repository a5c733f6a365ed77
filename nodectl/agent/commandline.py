"""What `command` and `shell` have in common: when to run, what to report."""

from __future__ import annotations

import datetime
import glob
import os
import re
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from nodectl.agent.contract import Args, Failed
from nodectl.agent.processes import Completed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param

# Nothing that a role runs takes longer, and a task that knows better says `timeout:`. It only keeps "every wait bounded" true.
LONGEST = 24 * 3600.0
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")

PARAMS: Dict[str, Param] = {
    "cmd": Param(help="the command line"),
    "chdir": Param("path", help="run in this folder"),
    "creates": Param("path", help="a path or glob; when it is there, do not run"),
    "removes": Param("path", help="a path or glob; when it is not there, do not run"),
    "stdin": Param("raw", help="text for the program's standard input"),
    "stdin_add_newline": Param("bool", default=True, help="end that text with a newline"),
    "strip_empty_ends": Param("bool", default=True, help="take empty lines from the end of stdout and stderr"),
    "executable": Param("path", help="the shell to use (shell), or the program to start in place of the first word (command)"),
}
RETURNS = {
    "cmd": "what was run, as it was written", "msg": "why it was not run, or that it failed", "rc": "exit code",
    "stdout": "output", "stderr": "error output", "stdout_lines": "output as lines",
    "stderr_lines": "error output as lines", "start": "when it began", "end": "when it ended", "delta": "how long it took",
}


def run(system: System, args: Args, argv: Sequence[str], shown: Any, check: bool) -> Outcome:
    """Run ``argv`` unless creates, removes or check mode say no. ``shown`` is returned as cmd. rc != 0 is a failed outcome."""
    folder = _folder(args)
    path, reason = _needless(args, folder)
    if reason:
        skipped = f"skipped, since {path} {reason}"
        values = {"cmd": shown, "rc": 0, "msg": "", "stdout": skipped, "stderr": "", "stdout_lines": [skipped], "stderr_lines": []}
        return Outcome(msg=f"{'Would' if check else 'Did'} not run command since '{path}' {reason}", values=values)
    if check:
        decided = args["creates"] is not None or args["removes"] is not None
        values = {"cmd": shown, "rc": 0, "stdout": "", "stderr": "", "stdout_lines": [], "stderr_lines": []}
        return Outcome(changed=decided, skipped=not decided, msg="Command would have run if not in check mode", values=values)
    began = datetime.datetime.now()
    try:
        done = system.run(argv, stdin=_stdin(args), timeout=LONGEST, cwd=folder or ".")
    except Failed as failed:
        raise Failed(failed.msg, **{**failed.values, **_streams(failed.values), "cmd": shown}) from None
    return _outcome(done, shown, began, bool(args["strip_empty_ends"]))


def _folder(args: Args) -> str:
    folder = os.path.expanduser(args["chdir"]) if args["chdir"] else ""
    if folder and not os.path.isdir(folder):
        raise Failed(f"Unable to change directory before execution: {folder} is not a folder", **_streams({}))
    return folder


def _streams(values: Mapping[str, Any]) -> Dict[str, Any]:
    """What playbooks read of a command, also of one that could not be run or was ended."""
    out, err = str(values.get("stdout", "")), str(values.get("stderr", ""))
    return {"stdout": out, "stderr": err, "stdout_lines": out.splitlines(), "stderr_lines": err.splitlines()}


def _needless(args: Args, folder: str) -> Tuple[str, str]:
    """(the path that decides, what about it), or empty words when the command is to be run."""
    creates, removes = args["creates"], args["removes"]
    if creates and glob.glob(os.path.join(folder, os.path.expanduser(creates))):
        return creates, "exists"
    if removes and not glob.glob(os.path.join(folder, os.path.expanduser(removes))):
        return removes, "does not exist"
    return "", ""


def _stdin(args: Args) -> bytes:
    text = "" if args["stdin"] is None else str(args["stdin"])
    if not text:
        return b""
    return (text + "\n" if args["stdin_add_newline"] and not text.endswith("\n") else text).encode("utf-8", "surrogateescape")


def _outcome(done: Completed, shown: Any, began: datetime.datetime, strip: bool) -> Outcome:
    ended = datetime.datetime.now()
    out, err = (text.rstrip("\r\n") if strip else text for text in (done.stdout, done.stderr))
    values: Dict[str, Any] = {
        "cmd": shown, "rc": done.rc, "msg": "", "stdout": out, "stderr": err, "stdout_lines": out.splitlines(), "stderr_lines": err.splitlines(),
        "start": began.isoformat(" "), "end": ended.isoformat(" "), "delta": str(ended - began),
    }
    warnings = dropped(done)
    return Outcome(changed=True, failed=done.rc != 0, msg="non-zero return code" if done.rc else "", values=values, warnings=warnings)


def dropped(done: Completed) -> List[str]:
    lost = (("stdout", done.dropped_stdout), ("stderr", done.dropped_stderr))
    return [f"{name} was longer than 1 MiB: {count} bytes in its middle were left out" for name, count in lost if count]


def expanded(words: Sequence[str], environment: Dict[str, str]) -> List[str]:
    """``~`` and ``$NAME`` in each word, by the environment that the program will see; unknown names stay as they are."""
    return [_expand(os.path.expanduser(word), environment) for word in words]


def _expand(word: str, environment: Dict[str, str]) -> str:
    if "$" not in word:
        return word
    return _VARIABLE.sub(lambda found: environment.get(found.group(1) or found.group(2), found.group(0)), word)
