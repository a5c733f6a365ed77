"""The object store behind an rclone mount, asked past the mount: what is really there, and files that no cache of the mount has seen.

Nothing is known beforehand: the daemon's own command line and environment say what it mounted, with which settings and where its
control interface is. Only root can read them. The store is asked by a second rclone, so that a cache never answers for it.
"""

from __future__ import annotations

import json
import os
import re
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from nodectl.agent import rclone_rc
from nodectl.agent.contract import Failed
from nodectl.agent.system import Mount, System

# How long one question to the store may take before it counts as not answering, and how often it is tried: a person waits.
_BRIEF = ("--contimeout=5s", "--timeout=20s", "--retries=1", "--low-level-retries=1")
QUESTION_SECONDS = 40.0
# Between two looks at the queue. An upload begins after the write-back time, a second by default.
PAUSE = 0.1
_DATE = re.compile(r"^\d{4}/\d\d/\d\d( \d\d:\d\d:\d\d)? ([A-Z]+ *: )?")

Files = Dict[str, Tuple[int, str]]  # size and SHA-256 by name


class Daemon(NamedTuple):
    """The process that holds a mount. ``remote`` is what it mounts on ``path``; ``environment`` holds its keys and is never shown."""

    pid: int
    program: str
    path: str
    remote: str
    options: Dict[str, str]
    environment: Dict[str, str]

    @property
    def url(self) -> str:
        """Of its control interface; "" when it has none on this node."""
        address = self.options.get("rc-addr", "localhost:5572") if "rc" in self.options else ""
        return f"http://{'127.0.0.1' if address.startswith(':') else ''}{address}" if address else ""

    @property
    def cache_bytes(self) -> Optional[int]:
        """What its cache of written files may hold; None without one, or without a limit. rclone's M is 2**20."""
        size = re.match(r"(\d+)([KMGT])", self.options.get("vfs-cache-max-size", ""))
        if size is None or self.options.get("vfs-cache-mode") != "full":
            return None
        return int(size.group(1)) << 10 * ("KMGT".index(size.group(2)) + 1)


def behind(system: System, live: Optional[Mount]) -> "Tuple[Optional[Daemon], str]":
    """(what holds the mount, why it cannot be asked): (None, "") where a disk or a network filesystem lies below, and nothing has to be asked."""
    if live is None or not live.fstype.startswith("fuse"):
        return None, ""
    if live.fstype != "fuse.rclone":
        return None, f"nodectl asks stores behind rclone only, not behind {live.fstype}"
    try:
        found = find(live.target)
        ask_rc(system, found, "rc/noop", {}, 10.0)
        return found, ""
    except Failed as failed:
        system.stopper.check()
        return None, failed.msg


def find(path: str) -> Daemon:
    """The rclone that holds the mount on ``path``. Raises Failed when there is none, or when we may not look at it."""
    for entry in os.listdir("/proc"):
        words = _words(f"/proc/{entry}/cmdline") if entry.isdigit() else None
        if words and os.path.basename(words[0]) == "rclone" and "mount" in words[1:] and path in words[2:]:
            environment = _words(f"/proc/{entry}/environ")
            if environment is None:
                raise Failed("only root can see how rclone reaches the store: use become")
            at = words.index(path)
            pairs = dict(word.split("=", 1) for word in environment if "=" in word)
            return Daemon(int(entry), _program(entry, words[0]), path, words[at - 1], _options(words), pairs)
    raise Failed(f"no rclone process of this node holds {path}")


def _words(path: str) -> Optional[List[str]]:
    try:
        with open(path, "rb") as file:
            return [word.decode("utf-8", "surrogateescape") for word in file.read().split(b"\0") if word]
    except OSError:
        return None


def _program(entry: str, word: str) -> str:
    try:
        return os.readlink(f"/proc/{entry}/exe").replace(" (deleted)", "")
    except OSError:
        return word


def _options(words: List[str]) -> Dict[str, str]:
    """``--a=b`` and ``--a b`` alike; a flag is "true"."""
    found: Dict[str, str] = {}
    for index, word in enumerate(words):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            following = words[index + 1] if index + 1 < len(words) else "--"
            found[name] = value if equals else "true" if following.startswith("--") else following
    return found


def ask_rc(system: System, daemon: Daemon, command: str, order: Dict[str, Any], timeout: float) -> Dict[str, Any]:
    """One command of the daemon's control interface. Raises Failed."""
    if not daemon.url:
        raise Failed(f"the rclone on {daemon.path} has no control interface (--rc): what is not uploaded yet cannot be seen")
    user, password = daemon.environment.get("RCLONE_RC_USER", ""), daemon.environment.get("RCLONE_RC_PASS", "")
    return rclone_rc.post(daemon.url, user, password, command, order, timeout)


def fetched(system: System, daemon: Daemon) -> Optional[int]:
    """Bytes that the daemon moved from and to the store since it began; None when it does not tell."""
    try:
        return int(ask_rc(system, daemon, "core/stats", {}, 10.0)["bytes"])
    except (Failed, KeyError, TypeError, ValueError):
        system.stopper.check()
        return None


def refresh(system: System, daemon: Daemon, folder: str) -> None:
    """Makes the mount look at ``folder`` again, which was changed in the store. Only its listing is forgotten, no data."""
    ask_rc(system, daemon, "vfs/refresh", {"dir": folder, "recursive": "true"}, QUESTION_SECONDS)


def run(system: System, daemon: Daemon, words: List[str], timeout: float) -> str:
    """stdout of an rclone of our own with the daemon's settings. Raises Failed with the store's own words."""
    keep = {key: value for key, value in daemon.environment.items() if key.startswith(("AWS_", "RCLONE_", "HOME")) and not key.startswith("RCLONE_RC")}
    config = [f"--config={daemon.options['config']}"] if "config" in daemon.options else []
    try:
        done = system.run([daemon.program, *config, *_BRIEF, *words], timeout=timeout, env=keep)
    except Failed as failed:
        system.stopper.check()
        late = "did not end" in failed.msg
        raise Failed(f"the object store behind {daemon.path} did not answer within {timeout:.0f} s" if late else failed.msg, store=late) from None
    if done.rc != 0:
        raise Failed(f"the object store behind {daemon.path} says: {cause(done.stderr)}", rc=done.rc, store=True)
    return done.stdout


def cause(stderr: str) -> str:
    """The line of rclone's log that says why, without its date; the whole chain of wrappers is kept, the cause stands at its end."""
    lines = [_DATE.sub("", line).strip() for line in stderr.splitlines() if line.strip()]
    telling = [line for line in lines if "rror" in line or "ailed" in line or "denied" in line or "refused" in line]
    return (telling or lines or ["nothing"])[-1][-400:]


def listing(system: System, daemon: Daemon, folder: str) -> Dict[str, int]:
    """Sizes by name of what the store holds in ``folder`` (relative to the mount)."""
    try:
        text = run(system, daemon, ["lsjson", "--files-only", _at(daemon, folder)], QUESTION_SECONDS)
    except Failed as failed:
        if "directory not found" in failed.msg:  # nothing in it yet: object stores have no folders
            return {}
        raise
    return {str(item["Name"]): int(item["Size"]) for item in json.loads(text or "[]")}


def sums(system: System, daemon: Daemon, folder: str, timeout: float) -> Dict[str, str]:
    """SHA-256 by name of what the store gives back: read in full, because what it says of itself is no evidence."""
    text = run(system, daemon, ["hashsum", "sha256", "--download", _at(daemon, folder)], timeout)
    return {name: content for content, _, name in (line.partition("  ") for line in text.splitlines()) if name}


def copy(system: System, daemon: Daemon, source: str, target: str, timeout: float) -> None:
    """Within the store, past the mount: whoever reads the copy through the mount reads it from the store."""
    run(system, daemon, ["copy", "--max-depth=1", _at(daemon, source), _at(daemon, target)], timeout)


def _at(daemon: Daemon, folder: str) -> str:
    return daemon.remote + ("" if daemon.remote.endswith((":", "/")) else "/") + folder


def not_uploaded(system: System, daemon: Daemon, folder: str) -> Tuple[int, Dict[str, int]]:
    """(files of ``folder`` that the cache holds and the store does not, the daemon's queue). Raises Failed."""
    data = ask_rc(system, daemon, "vfs/stats", {}, 10.0)
    cache = data.get("diskCache")
    if not isinstance(cache, dict):
        return 0, {}
    queue = {key: int(cache.get(key, 0)) for key in ("uploadsQueued", "uploadsInProgress", "erroredFiles", "outOfSpace")}
    records = str(cache.get("pathMeta", ""))
    if records and os.path.isdir(records):
        return rclone_rc.dirty_files(os.path.join(records, folder)), queue
    return queue["uploadsQueued"] + queue["uploadsInProgress"] + queue["erroredFiles"], queue


def until_durable(system: System, daemon: Daemon, folder: str, files: Files, timeout: float) -> float:
    """Seconds from now until the store holds all ``files`` with their sizes. Raises Failed that says what is left, and why."""
    began = time.monotonic()
    queue: Dict[str, int] = {}
    missing = sorted(files)
    while True:
        dirty, queue = not_uploaded(system, daemon, folder)
        at = time.monotonic()
        if not dirty:
            there = listing(system, daemon, folder)
            missing = [name for name, (size, _) in sorted(files.items()) if there.get(name) != size]
            if not missing:
                return at - began
        if at - began > timeout:
            break
        system.sleep(PAUSE)
    raise Failed(
        f"after {timeout:.0f} s {len(missing)} of {len(files)} files are in the cache of this node and not in the object store ({_said(queue)}): "
        f"{_why(system, daemon)}", not_durable=len(missing),
    )


def _said(queue: Dict[str, int]) -> str:
    words = (("uploadsQueued", "queued"), ("uploadsInProgress", "uploading"), ("erroredFiles", "with errors"))
    return ", ".join(f"{queue.get(key, 0)} {word}" for key, word in words) + (", the cache is out of space" if queue.get("outOfSpace") else "")


def _why(system: System, daemon: Daemon) -> str:
    """What the store itself says now: the daemon keeps its errors in its journal."""
    answers = "the store answers questions meanwhile: it is slow, or refuses to be written (see the journal of the mount)"
    return trouble(system, daemon, QUESTION_SECONDS) or answers


def trouble(system: System, daemon: Daemon, timeout: float) -> str:
    """What the store says when it is asked past the mount; "" when it answers."""
    try:
        run(system, daemon, ["lsjson", "--stat", daemon.remote], timeout)
    except Failed as failed:
        system.stopper.check()
        return failed.msg
    return ""


def must_be_same(system: System, daemon: Daemon, folder: str, files: Files, timeout: float) -> None:
    """Raises Failed where the store gives back other bytes than were written."""
    found = sums(system, daemon, folder, timeout)
    wrong = [name for name, (_, content) in sorted(files.items()) if found.get(name) != content]
    if wrong:
        raise Failed(f"the object store gives back other bytes than were written: {', '.join(wrong[:5])} (SHA-256 differs)", corrupt=True)
