"""Wait until a port, a path or a text in it is there, or is gone."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from typing import Any, Callable, Dict, Optional, Tuple

from nodectl.agent.contract import Args, Failed
from nodectl.agent.facts.bounded import bounded
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

# The tail of a file or of a port's answer in which a pattern is looked for (bytes): a log may have any size.
WINDOW = 16 * 1024 * 1024
# What the last look may take beyond timeout (seconds): a busy node answers late, a dead mount never.
PATIENCE = 5.0

SPEC = Spec(
    summary="Wait for a port, a path, or a text in it; never longer than timeout",
    params={
        "host": Param(default="127.0.0.1", help="address of the port, seen from the node"),
        "port": Param("int", help="TCP port"),
        "path": Param("path", help="file or folder"),
        "search_regex": Param(help="pattern to find in the file, or in what the port sends"),
        "state": Param(default="started", choices=("started", "present", "stopped", "absent"), help="what to wait for"),
        "timeout": Param("int", default=300, help="seconds in all"),
        "delay": Param("int", default=0, help="seconds before the first look"),
        "sleep": Param("int", default=1, help="seconds between looks"),
        "connect_timeout": Param("int", default=5, help="seconds for one connection"),
        "msg": Param(help="what to say when the time is over"),
    },
    mutually_exclusive=(("port", "path"),),
    returns={"elapsed": "seconds waited", "match_groups": "groups of search_regex", "match_groupdict": "named groups of search_regex"},
    example="- wait_for: {path: /data/.ready, timeout: 60}\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    began = time.monotonic()
    if check:
        return Outcome(skipped=True, msg="skipped, running in check mode", values={"elapsed": 0})
    end = began + args["timeout"]
    system.sleep(min(args["delay"], args["timeout"]))
    look = _look(system, args)
    groups: Dict[str, Any] = {}
    if look is None:
        system.sleep(max(0.0, end - time.monotonic()))
    else:
        wanted = args["state"] in ("started", "present")
        while True:
            found, groups = look(max(0.1, end - time.monotonic()))
            if found == wanted:
                break
            if time.monotonic() >= end:
                raise Failed(args["msg"] or _late(args), elapsed=int(time.monotonic() - began))
            system.sleep(min(args["sleep"], max(0.05, end - time.monotonic())))
    result = {name: args[name] for name in ("state", "port", "path", "search_regex")}
    return Outcome(values={**result, "elapsed": int(time.monotonic() - began), "match_groups": [], "match_groupdict": {}, **groups})


def _late(args: Args) -> str:
    what = f"{args['host']}:{args['port']}" if args["port"] is not None else str(args["path"])
    text = f" with {args['search_regex']!r}" if args["search_regex"] else ""
    wish = "is not there" if args["state"] in ("started", "present") else "is still there"
    return f"Timeout when waiting for {what}: after {args['timeout']} s {what}{text} {wish}"


Look = Callable[[float], Tuple[bool, Dict[str, Any]]]


def _look(system: System, args: Args) -> Optional[Look]:
    try:
        pattern = re.compile(args["search_regex"].encode(), re.MULTILINE) if args["search_regex"] else None
    except re.error as error:
        raise Failed(f"search_regex is not a regular expression: {error}") from None
    if args["port"] is not None:
        return lambda left: _port(args, pattern, left)
    if args["path"] is not None:
        return lambda left: _path(system, args["path"], pattern, left)
    return None


def _path(system: System, path: str, pattern: "Optional[re.Pattern[bytes]]", left: float) -> Tuple[bool, Dict[str, Any]]:
    """Asked with a bound: on a dead FUSE or NFS mount the question itself never returns. No answer is neither yes nor no: Failed."""
    nothing: Tuple[bool, Dict[str, Any]] = (False, {})
    answer, problem = bounded(path, lambda: _look_into(path, pattern), nothing, max(left, PATIENCE))
    system.stopper.check()
    if problem:
        raise Failed(f"{path} did not answer for {max(left, PATIENCE):.0f} s: the mount it lies on hangs")
    return answer


def _look_into(path: str, pattern: "Optional[re.Pattern[bytes]]") -> Tuple[bool, Dict[str, Any]]:
    if pattern is None:
        return os.path.exists(path), {}
    with contextlib.suppress(OSError), open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - WINDOW))
        return _search(pattern, file.read(WINDOW))
    return False, {}


def _port(args: Args, pattern: "Optional[re.Pattern[bytes]]", left: float) -> Tuple[bool, Dict[str, Any]]:
    bound = min(float(args["connect_timeout"]), left)
    try:
        with socket.create_connection((args["host"], args["port"]), bound) as line:
            return (True, {}) if pattern is None else _listen(line, pattern, time.monotonic() + bound)
    except OSError:
        return False, {}


def _listen(line: socket.socket, pattern: "re.Pattern[bytes]", end: float) -> Tuple[bool, Dict[str, Any]]:
    data = b""
    while time.monotonic() < end and len(data) < WINDOW:
        line.settimeout(max(0.05, end - time.monotonic()))
        piece = line.recv(65536)
        data += piece
        found, groups = _search(pattern, data)
        if found or not piece:
            return found, groups
    return False, {}


def _search(pattern: "re.Pattern[bytes]", data: bytes) -> Tuple[bool, Dict[str, Any]]:
    match = pattern.search(data)
    if match is None:
        return False, {}
    named = {name: _text(value) for name, value in match.groupdict().items()}
    return True, {"match_groups": [_text(value) for value in match.groups()], "match_groupdict": named}


def _text(value: Optional[bytes]) -> Optional[str]:
    return None if value is None else value.decode("utf-8", "replace")
