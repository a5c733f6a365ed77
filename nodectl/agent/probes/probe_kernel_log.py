"""probe_kernel_log: what the kernel's log of this boot says about GPUs, NVSwitches and links."""

from __future__ import annotations

import time
from typing import List, Tuple

from nodectl.agent import kernel_lines, recorded
from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Xid and SXid messages and links that went down, from the kernel's log since boot.",
    params={"timeout": Param("float", "seconds for reading the log", default=15.0), "root": recorded.PARAM},
    returns={
        "events": "list of {kind: xid | sxid | link_down, at (s since the epoch, null where the log has no times), line, and code, pci, text or interface}",
        "source": "journal or dmesg; \"\" where neither could be read", "error": "why not, or that lines were left out of it", "now": "this node's clock, s",
        "simulated": "whether a recorded tree was read",
    },
    example="- probe_kernel_log: {}\n",
)
# Only lines that mean something travel; grep ends with 1 where there is none, which is an answer too. The log's own failure must not be
# taken for "no lines", so its exit code is what the shell returns.
_JOURNAL = "journalctl --dmesg --boot --no-pager --quiet --output=short-unix"
_DMESG = "dmesg"


def act(system: System, args: Args, check: bool) -> Outcome:
    tree = recorded.Tree(system, args["root"])
    text, source, error = _log(tree, args["timeout"])
    events = kernel_lines.parse(text, _booted(tree))
    return Outcome(values={"events": events, "source": source, "error": error, "now": time.time(), "simulated": tree.simulated})


def _booted(tree: recorded.Tree) -> float:
    uptime = tree.text("proc/uptime").split()
    try:
        return time.time() - float(uptime[0]) if uptime else 0.0
    except ValueError:
        return 0.0


def _log(tree: recorded.Tree, timeout: float) -> Tuple[str, str, str]:
    """(lines worth reading, where from, what is wrong with them)."""
    if tree.simulated:
        said = tree.text("kernel.log")
        return said, "journal", "" if tree.exists("kernel.log") else "the recorded tree has no kernel.log"
    problems: List[str] = []
    for source, command in (("journal", _JOURNAL), ("dmesg", _DMESG)):
        if tree.program(command.split()[0]) is None:
            problems.append(f"{command.split()[0]} is not installed")
            continue
        try:
            return _grep(tree.system, command, timeout), source, ""
        except Failed as failed:
            tree.system.stopper.check()
            problems.append(failed.msg)
    return "", "", "; ".join(problems)


def _grep(system: System, command: str, timeout: float) -> str:
    """Raises Failed where the log itself could not be read, holds nothing of this boot, or more was worth reading than can be carried."""
    done = system.run(["sh", "-c", _PIPE, "sh", kernel_lines.WORTH, *command.split()], timeout=timeout)
    program = command.split()[0]
    if done.rc != 0:
        raise Failed(f"{program} failed with exit code {done.rc}: {' '.join(done.stderr.split())[:200]}")
    if _hidden(done.stderr):
        raise Failed(f"{program} shows this account only a part of the log: {' '.join(done.stderr.split())[:200]}")
    if not done.stdout and not _holds_anything(system, command, timeout):
        raise Failed(f"{program} holds no line of the kernel")
    if done.dropped_stdout:
        raise Failed(f"{program} has more lines about devices than can be carried ({done.dropped_stdout} bytes too many)")
    return done.stdout


def _holds_anything(system: System, command: str, timeout: float) -> bool:
    """A journal that nobody writes (a container's, ReadKMsg=no) is empty, and says so with success."""
    words = command.split()
    last = [*words, "--lines=1"] if words[0] == "journalctl" else words
    return bool(system.run(last, timeout=timeout).stdout.strip())


# Without pipefail (a shell of POSIX has none) the log's exit code comes through the third descriptor.
_PIPE = '''worth=$1; shift
{ code=$({ { "$@" 3>&- 4>&-; echo $? >&3; } | grep -E -e "$worth" >&4 3>&-; } 3>&1); } 4>&1
exit "$code"'''


def _hidden(said: str) -> bool:
    """journalctl succeeds without the right to see the system's log, and says so on stderr."""
    return "not seeing messages from other users" in said or "Operation not permitted" in said

