"""The node's half of a folder that `copy` brings from the controller: compared as a whole first, so that only what differs travels."""

from __future__ import annotations

import io
import os
from typing import Any, BinaryIO, Dict, List, NamedTuple, Optional

from nodectl.agent import attributes, replace
from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Used by copy for folders of the controller",
    params={
        "dest": Param("path", required=True, help="the folder"),
        "entries": Param("list", required=True, elements="dict", help="what belongs into it: name, kind, size, checksum, mode, link"),
        "content_blob": Param(help="name of the bytes of all its files, one after the other; without it they are only compared"),
        "directory_mode": Param("mode", help="mode of folders that are made"),
        "force": Param("bool", default=True, help="replace files that differ"),
        "show": Param("bool", default=False, help="return the texts before and after"),
        **replace.PARAMS,
        **attributes.PARAMS,
    },
    returns={"dest": "the folder", "needed": "numbers of the entries whose content has to be sent"},
    example="- copy: {src: site/, dest: /etc/site}\n",
)


class _Entry(NamedTuple):
    """One name below the folder ("" is the folder itself). ``kind`` is directory, file or link."""

    name: str
    kind: str
    size: int = 0
    checksum: str = ""
    mode: Optional[str] = None
    link: str = ""


class _Copy:
    """One call: what it found, and what it did."""

    def __init__(self, system: System, args: Args, check: bool) -> None:
        self._system = system
        self._args = args
        self._check = check
        self._ids = attributes.wished(args)
        self._content: Optional[BinaryIO] = system.blob(args["content_blob"]) if args["content_blob"] else None
        self.needed: List[int] = []
        self.actions: List[str] = []
        self.diff: List[Dict[str, str]] = []

    def entry(self, number: int, entry: _Entry) -> None:
        self._system.stopper.check()
        place = os.path.join(self._args["dest"], entry.name) if entry.name else self._args["dest"].rstrip("/") or "/"
        # A folder may be a link to one; a file's place may not.
        there = attributes.look(self._system.stat(place, follow=entry.kind == "directory"))
        content = self._content.read(entry.size) if self._content is not None and entry.kind == "file" else None
        if there["kind"] not in (entry.kind, "absent") and (entry.kind == "directory" or there["kind"] in ("directory", "other")):
            raise Failed(f"{place} is a {there['kind']}, not a {entry.kind}", dest=place)
        {"directory": self._directory, "link": self._link, "file": self._file}[entry.kind](number, entry, place, there, content)

    def _wish(self, entry: _Entry) -> Args:
        mode = self._args["directory_mode"] if entry.kind == "directory" else entry.mode or self._args["mode"]
        return {**self._args, "mode": mode}

    def _attributes(self, entry: _Entry, place: str, there: Dict[str, Any]) -> None:
        found = attributes.differences(place, self._wish(entry), self._ids, there)
        self.actions += found
        if found and not self._check:
            attributes.apply(place, self._wish(entry), self._ids)

    def _directory(self, _number: int, entry: _Entry, place: str, there: Dict[str, Any], _content: Optional[bytes]) -> None:
        if there["kind"] != "absent":
            if entry.name:  # as in Ansible: a folder that was there stays as it is, what is below it does not
                self._attributes(entry, os.path.realpath(place), there)
            return
        missing = [place]
        while not os.path.lexists(os.path.dirname(missing[0])):
            missing.insert(0, os.path.dirname(missing[0]))
        self.actions += [f"make directory {folder}" for folder in missing]
        for folder in missing if not self._check else []:
            os.mkdir(folder)
            attributes.apply(folder, self._wish(entry), self._ids)

    def _link(self, _number: int, entry: _Entry, place: str, there: Dict[str, Any], _content: Optional[bytes]) -> None:
        if there["kind"] == "link" and os.readlink(place) == entry.link:
            return
        if there["kind"] != "absent" and not self._args["force"]:
            return
        self.actions.append(f"make {place} a link to {entry.link}")
        if not self._check:
            beside = f"{place}.nodectl-{os.getpid()}"
            os.symlink(entry.link, beside)
            os.rename(beside, place)

    def _file(self, number: int, entry: _Entry, place: str, there: Dict[str, Any], content: Optional[bytes]) -> None:
        if there["kind"] != "absent" and not self._args["force"]:
            return
        if there["kind"] == "file" and there["size"] == entry.size and replace.sha1_of(place) == entry.checksum:
            self._attributes(entry, place, there)
        elif content is None:
            self.needed.append(number)
        else:
            self._put(entry, place, there, content)

    def _put(self, entry: _Entry, place: str, there: Dict[str, Any], content: bytes) -> None:
        if replace.sha1(content) != entry.checksum:
            raise Failed(f"{place}: the content did not arrive as it was sent", dest=place)
        self.actions.append(f"{'create' if there['kind'] == 'absent' else 'replace the content of'} {place}")
        if self._args["show"]:
            before = replace.shown(self._system.read(place)) if there["kind"] == "file" else ""
            self.diff.append({"before": before, "after": replace.shown(content), "before_header": place, "after_header": entry.name})
        if not self._check:
            replace.put(self._system, place, io.BytesIO(content), self._wish(entry), self._ids, there, follow=False)
            if replace.sha1_of(place) != entry.checksum:
                raise Failed(f"{place} is not what was written when it is read again", dest=place)


def act(system: System, args: Args, check: bool) -> Outcome:
    """Without content: folders, links, owners and modes are put right, and ``needed`` says which files differ."""
    if not check:
        attributes.known(args, attributes.wished(args))
    copy = _Copy(system, args, check)
    for number, entry in enumerate(args["entries"]):
        copy.entry(number, _Entry(**entry))
    msg = "; ".join(copy.actions[:3]) + (f" and {len(copy.actions) - 3} more" if len(copy.actions) > 3 else "")
    return Outcome(changed=bool(copy.actions), msg=msg, values={"dest": args["dest"], "needed": copy.needed}, diff=copy.diff)
