"""apt_repository: one line of apt's sources present or absent."""

from __future__ import annotations

import glob
import os
import re
from typing import Any, Dict, List, NamedTuple

from nodectl.agent import apt_packages, attributes, text_file
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="A repository's line present in a file of its own, or absent from every file; the package lists are fetched when it changes.",
    params={
        "repo": Param("str", "the line: deb [options] URI suite components; no ppa:", required=True),
        "filename": Param("str", "name of the file without .list; not given: made of the URI"),
        "mode": Param("mode", "permissions of a new file"),
        "codename": Param("str", "for ppa: only, which is not here"),
        "update_cache": Param("bool", "fetch the package lists after a change", default=True, aliases=("update-cache",)),
        "update_cache_retries": Param("int", "how often fetching is tried again", default=5),
        "update_cache_retry_max_delay": Param("int", "the pauses are nodectl's own", default=12),
        "install_python_apt": Param("bool", "nothing of it is needed here", default=True),
        "validate_certs": Param("bool", "for ppa: only, which is not here", default=True),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
    },
    returns={"repo": "the wish", "sources_added": "files that are new", "sources_removed": "files that are gone", "state": "the wish"},
    example="- apt_repository:\n    repo: deb [signed-by=/usr/share/keyrings/lab.gpg] http://mirror.example.org/debian bookworm main\n    filename: lab\n",
)
SOURCES = "/etc/apt/sources.list"
FOLDER = "/etc/apt/sources.list.d"
_KINDS = ("deb", "deb-src")
# How long another apt is waited for before the lists are fetched (seconds), as the module apt does by default.
LOCK_SECONDS = 60.0


class Line(NamedTuple):
    """One line of a sources file; ``source`` without comment, blanks squeezed where it is a source."""

    valid: bool
    enabled: bool
    source: str
    comment: str

    def text(self) -> str:
        return ("" if self.enabled else "# ") + self.source + (f" # {self.comment}" if self.comment else "") + "\n"


def parse(text: str) -> Line:
    text = text.strip()
    enabled = not text.startswith("#")
    body = text if enabled else text[1:]
    at = body.find("#")
    comment = body[at + 1 :].strip() if at > 0 else ""
    source = (body[:at] if at > 0 else body).strip()
    valid = source.split(" ")[0].split("\t")[0] in _KINDS
    return Line(valid, enabled, " ".join(source.split()) if valid else source, comment)


def file_of(source: str) -> str:
    """The file's name as Ansible makes it of the URI: without options, protocol, user and password."""
    line = re.sub(r"\w+://", "", re.sub(r"\[[^\]]+\]", "", source))
    words = [word for word in line.split() if word not in _KINDS]
    host = words[0].split("@", 1)[-1] if words else ""
    return "_".join(re.sub("[^a-zA-Z0-9]", " ", host).split())


def read(system: System, args: Args) -> State:
    wish = parse(text_file.one_line("repo", args["repo"]))
    if args["repo"].startswith("ppa:"):
        raise Failed("apt_repository: ppa: asks launchpad.net from the node; write the repository's line, and its key in signed-by")
    if not wish.valid or not wish.enabled or len(wish.source.split()) < 3:
        raise Failed(f"{args['repo']!r} is no repository: expected 'deb URI suite components'")
    if args["filename"] is not None and ("\n" in args["filename"] or args["filename"] in ("", ".", "..")):
        raise Failed(f"{args['filename']!r} is no name of a file")
    paths = [path for path in (SOURCES, *sorted(glob.glob(f"{FOLDER}/*.list"))) if os.path.isfile(path)]
    return {"source": wish.source, "files": {path: text_file.read(system, path) or "" for path in paths}}


def wished(args: Args, source: str, files: Dict[str, str]) -> Dict[str, str]:
    """Path → the whole file as wished; "" is a file without a line. Files that stay as they are are not in it."""
    parsed: Dict[str, List[Line]] = {path: [parse(line) for line in text.splitlines()] for path, text in files.items()}
    out: Dict[str, str] = {}
    found = False
    for path, lines in parsed.items():
        found = found or any(line.valid and line.source == source for line in lines)
        if args["state"] == "present":
            new = [line._replace(enabled=True) if line.valid and line.source == source else line for line in lines]
        else:
            new = [line for line in lines if not (line.valid and line.source == source and line.enabled)]
        if new != lines:
            out[path] = "".join(line.text() for line in new)
    if args["state"] == "present" and not found:
        name = args["filename"] if args["filename"] is not None else file_of(source)
        path = f"{name}.list" if "/" in name else f"{FOLDER}/{name}.list"
        before = "".join(line.text() for line in parsed.get(path, []))
        out[path] = before + Line(True, True, source, "").text()
    return out


def diff(args: Args, state: State) -> Change:
    new = wished(args, state["source"], state["files"])
    steps = [f"{'write' if text else 'remove'} {path}" for path, text in new.items()]
    before, after = "".join(state["files"].get(path, "") for path in new), "".join(new.values())
    header = ", ".join(new)
    return Change(steps, before, after, header, header, {"new": new, "old": state["files"]})


def write(system: System, args: Args, state: State, change: Change) -> None:
    """The files, then the lists; the files as they were where the lists cannot be fetched."""
    fresh = attributes.wished_mode(args["mode"], 0o644, directory=False)
    for path, text in change.data["new"].items():
        text_file.put(system, path, text or None, mode=None if path in state["files"] else fresh)
    if not args["update_cache"]:
        return
    try:
        apt_packages.update(system, LOCK_SECONDS, args["update_cache_retries"])
    except Failed as failed:
        for path in change.data["new"]:
            text_file.put(system, path, state["files"].get(path))
        raise Failed(f"{failed.msg} (the sources are as they were)", **failed.values) from None


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    new, old = change.data["new"], change.data["old"]
    return {
        "repo": args["repo"], "state": args["state"], "sources_added": [path for path in new if path not in old],
        "sources_removed": [path for path in new if path in old and not new[path]],
    }
