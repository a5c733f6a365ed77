"""One end of an RDMA measurement with perftest (ib_write_bw, ib_write_lat) on one device: the server that waits, or the client that writes."""

from __future__ import annotations

import time
from typing import Any, Dict, List

from nodectl.agent.contract import Args, Failed
from nodectl.agent.processes import Completed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

TOOLS = ("ib_write_bw", "ib_write_lat")
# The server's end is started at the same time on another node: until it listens, a client is refused. Under load that took 4 s.
PATIENCE = 15.0
PAUSE = 0.3
# perftest's words for a server that does not listen yet.
NOT_YET = ("Couldn't connect to", "Connection refused", "Unable to init the socket connection")
VERSION_S = 10.0
TAIL = 16 * 1024

SPEC = Spec(
    summary="One end of an RDMA bandwidth or latency measurement with perftest, on one device and port",
    params={
        "tool": Param("str", "Which measurement", required=True, choices=TOOLS),
        "device": Param("str", "RDMA device, such as mlx5_0", required=True),
        "ib_port": Param("int", "Port of the device", default=1),
        "gid_index": Param("int", "Index in the port's GID table; -1 leaves it out (InfiniBand needs none)", default=-1),
        "connection": Param("str", "Kind of connection: RC, or SRD for EFA", default="RC", choices=("RC", "SRD")),
        "peer": Param("str", "Address of the server; empty makes this end the server", default=""),
        "tcp_port": Param("int", "Port over which both ends find each other", required=True),
        "size": Param("int", "Bytes per message", required=True),
        "iterations": Param("int", "Messages", required=True),
        "queue_pairs": Param("int", "Queue pairs (bandwidth only): one does not fill the fastest links", default=1),
        "timeout": Param("float", "Seconds after which it is ended, waiting for the other end included", default=60.0),
    },
    returns={
        "installed": "Whether the tool is there; without it nothing was measured", "version": "perftest's own version", "argv": "The command",
        "rc": "Exit code", "stdout": "Last 16 KiB of its output", "stderr": "Last 16 KiB of its error output",
        "timed_out": "True when it was ended at its deadline",
    },
    example="probe_perftest: {tool: ib_write_bw, device: mlx5_0, tcp_port: 18515, size: 65536, iterations: 5000}",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    """rc != 0 is a result, not a failure: the controller judges it."""
    if check:
        return Outcome(skipped=True, msg="nothing is measured in check mode")
    if system.which(args["tool"]) is None:
        return Outcome(values={"installed": False, "version": "", "argv": [], "rc": 127, "stdout": "", "stderr": "", "timed_out": False})
    argv = command(args)
    found = {"installed": True, "version": _version(system, args["tool"]), "argv": argv}
    deadline = time.monotonic() + args["timeout"]
    while True:
        ended = _once(system, argv, max(1.0, deadline - time.monotonic()))
        waited = args["timeout"] - (deadline - time.monotonic())
        if not (args["peer"] and _not_listening(ended) and waited < min(PATIENCE, args["timeout"] / 2)):
            return Outcome(values={**found, **ended})
        system.sleep(PAUSE)


def command(args: Args) -> List[str]:
    """-F: a governor that changes clock rates is a finding of its own, no reason not to measure."""
    argv = [args["tool"], "-F", "-d", args["device"]]
    for letter, name in (("-i", "ib_port"), ("-p", "tcp_port"), ("-s", "size"), ("-n", "iterations")):
        argv += [letter, str(args[name])]
    if args["gid_index"] >= 0:
        argv += ["-x", str(args["gid_index"])]
    if args["connection"] != "RC":
        argv += ["-c", args["connection"]]
    if args["tool"] == "ib_write_bw":
        argv += ["-q", str(args["queue_pairs"])]
    return [*argv, *([args["peer"]] if args["peer"] else [])]


def _once(system: System, argv: List[str], timeout: float) -> Dict[str, Any]:
    try:
        return _values(system.run(argv, timeout=timeout))
    except Failed as failed:
        # The runner's own deadline and a cancel stay failures; our own timeout is a result with what was printed so far.
        system.stopper.check()
        if "did not end" not in failed.msg:
            raise
        said = {name: str(failed.values.get(name, ""))[-TAIL:] for name in ("stdout", "stderr")}
        return {"rc": -15, **said, "timed_out": True}


def _values(done: Completed) -> Dict[str, Any]:
    return {"rc": done.rc, "stdout": done.stdout[-TAIL:], "stderr": done.stderr[-TAIL:], "timed_out": False}


def _not_listening(ended: Dict[str, Any]) -> bool:
    return ended["rc"] != 0 and not ended["timed_out"] and any(words in ended["stdout"] + ended["stderr"] for words in NOT_YET)


def _version(system: System, tool: str) -> str:
    """As perftest says it; "" where it does not, which is no reason not to measure."""
    try:
        done = system.run([tool, "--version"], timeout=VERSION_S)
    except Failed:
        system.stopper.check()
        return ""
    words = (done.stdout + done.stderr).split()
    return words[-1] if words else ""
