"""A file from a server, proven by its checksum."""

from __future__ import annotations

import email.message
import hashlib
import os
import re
import tempfile
import time
from typing import Any, BinaryIO, Dict, List, NamedTuple, Optional

from nodectl.agent import attributes, replace, web
from nodectl.agent.contract import Args, Failed
from nodectl.agent.own_folder import own_folder
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

# A file of checksums has a line for each file of a release.
SUMS_LIMIT = 16 * 1024 * 1024
_BSD = re.compile(r"^\w+ ?\((?P<path>.+)\) ?= (?P<digest>[\w.]+)$")
_GNU = re.compile(r"^(?P<digest>[\w.]+)\s+\*?(?:\./)?(?P<path>.+)$")

SPEC = Spec(
    summary="Fetch a file from a server to the node, and prove it by its checksum",
    params={
        **web.PARAMS,
        "dest": Param("path", required=True, help="the file; in a folder it takes the name that the server or the URL gives"),
        "checksum": Param(default="", help="sha256:DIGEST, or sha256:URL of a file that has the digest; a file that has it is not fetched again"),
        "timeout": Param("int", default=10, help="seconds that each answer may take"),
        "tmp_dest": Param("path", help="the folder that holds the file until it is whole"),
        "backup": replace.PARAMS["backup"],
        **attributes.PARAMS,
    },
    returns={
        "dest": "the file", "url": "where it came from", "checksum_src": "SHA-1 of what came", "checksum_dest": "SHA-1 of what was there",
        "md5sum": "MD5 of the file",
        "status_code": "the server's answer", "msg": "the server's answer as text", "elapsed": "seconds", "size": "bytes",
        "backup_file": "the kept old file",
        "mode": "as '0644'", "owner": "name", "group": "name", "uid": "number", "gid": "number", "state": "file", "src": "where it was kept until it was whole",
    },
    example="- get_url:\n    url: https://example.org/cuda.run\n    dest: /opt/cuda.run\n    checksum: sha256:https://example.org/SHA256SUMS\n",
)


class _Sum(NamedTuple):
    algorithm: str
    digest: str


def act(system: System, args: Args, check: bool) -> Outcome:
    """In check mode the file is fetched as well, and thrown away: only so can it be told whether it differs."""
    began = time.monotonic()
    wanted = _wanted(system, args)
    dest = os.path.expanduser(args["dest"])
    there = attributes.look(system.stat(dest, follow=True))
    known = {"url": web.shown(args["url"]), "dest": dest}
    has_it = wanted is not None and there["kind"] == "file" and _digest(dest, wanted.algorithm) == wanted.digest
    if has_it and not args["force"]:
        return _told(args, check, dest, [], {**known, "msg": "file already exists", "elapsed": 0})
    # What has another checksum is fetched whatever the server says of its age.
    since = there["mtime"] if there["kind"] == "file" and wanted is None else None
    reply = web.fetch(args, args["url"], since=since, timeout=args["timeout"])
    known.update(status_code=reply.status, elapsed=int(time.monotonic() - began))
    if reply.status == 304:
        return _told(args, check, dest, [], {**known, "msg": reply.msg})
    if reply.status != 200:
        raise Failed("Request failed" if reply.status != web.UNANSWERED else reply.msg, response=reply.msg, **known)
    with own_folder(_holding(args)) as folder, open(os.path.join(folder, "download"), "w+b") as file:
        web.save(system, reply, file)
        file.flush()
        return _placed(system, args, check, file, _place(dest, reply), wanted, {**known, "msg": reply.msg, "src": file.name})


def _holding(args: Args) -> str:
    if args["tmp_dest"] and not os.path.isdir(args["tmp_dest"]):
        raise Failed(f"{args['tmp_dest']} is not a folder")
    return str(args["tmp_dest"] or "")


def _place(dest: str, reply: web.Reply) -> str:
    if not os.path.isdir(dest):
        return dest
    header = email.message.Message()
    header["content-disposition"] = reply.headers.get("content-disposition", "")
    named = header.get_param("filename", header="content-disposition")
    return os.path.join(dest, (os.path.basename(named) if isinstance(named, str) else "") or web.file_name(reply.url))


def _placed(system: System, args: Args, check: bool, file: Any, dest: str, wanted: Optional[_Sum], known: Dict[str, Any]) -> Outcome:
    file.seek(0)
    came = replace.sha1(file)
    old = replace.sha1_of(dest)
    known.update(dest=dest, checksum_src=came, checksum_dest=old)
    found = _sum_of(file, wanted.algorithm) if wanted else ""
    if wanted and found != wanted.digest:
        raise Failed(f"The checksum of what {known['url']} sent did not match {wanted.digest}; it was {found}.", **_without_msg(known))
    if came == old:
        return _told(args, check, dest, [], known)
    there, ids = attributes.look(system.stat(dest, follow=True)), attributes.wished(args)
    if there["kind"] not in ("file", "absent"):
        raise Failed(f"{dest} is a {there['kind']}, not a file", **_without_msg(known))
    if not os.path.isdir(os.path.dirname(dest) or "."):
        raise Failed(f"Destination {os.path.dirname(dest)} does not exist", **_without_msg(known))
    if not check:
        kept = replace.put(system, dest, file, args, ids, there)
        known.update({"backup_file": kept} if kept else {})
        if replace.sha1_of(dest) != came:
            raise Failed(f"{dest} is not what was fetched, although it was written", **_without_msg(known))
    return _told(args, check, dest, [f"fetch {known['url']} to {dest}"], known)


def _without_msg(known: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in known.items() if name != "msg"}


def _told(args: Args, check: bool, dest: str, actions: List[str], known: Dict[str, Any]) -> Outcome:
    """The outcome; owner and mode are put right on the way."""
    ids = attributes.wished(args)
    if os.path.lexists(dest):
        there = attributes.look(os.stat(dest))
        actions = actions + attributes.differences(dest, args, ids, there)
        if not check and there["kind"] == "file":
            attributes.apply(os.path.realpath(dest), args, ids)
            known["md5sum"] = _digest(dest, "md5")
            known.update(attributes.returned(dest, attributes.look(os.stat(dest))))
    msg = known.pop("msg")
    diff = [{"before": "", "after": "".join(f"{action}\n" for action in actions), "before_header": dest, "after_header": known["url"]}] if actions else []
    return Outcome(changed=bool(actions), msg=msg, values=known, diff=diff)


def _wanted(system: System, args: Args) -> Optional[_Sum]:
    if not args["checksum"]:
        return None
    algorithm, colon, digest = args["checksum"].partition(":")
    if not colon or algorithm not in hashlib.algorithms_available:
        raise Failed("The checksum parameter has to be in format <algorithm>:<checksum>")
    if digest.split(":")[0] in ("http", "https", "ftp", "file"):
        digest = _listed(system, args, digest)
    digest = re.sub(r"\W+", "", digest).lower()
    if not re.fullmatch(r"[0-9a-f]+", digest):
        raise Failed(f"The checksum format is invalid: {digest!r} is no hexadecimal number")
    return _Sum(algorithm, digest)


def _listed(system: System, args: Args, url: str) -> str:
    """The digest of our file in a list of checksums; of a list that is one word, that word."""
    reply = web.fetch(args, url, timeout=args["timeout"])
    if reply.status != 200:
        raise Failed(f"the checksums cannot be fetched from {web.shown(url)}: {reply.msg}")
    with tempfile.TemporaryFile() as file:
        web.save(system, reply, file, SUMS_LIMIT)
        file.seek(0)
        lines = file.read().decode("utf-8", "replace").splitlines()
    if len(lines) == 1 and len(lines[0].split()) == 1:
        return lines[0].strip()
    name = web.file_name(args["url"])
    for line in lines:
        found = _BSD.match(line) or _GNU.match(line)
        if found and found.group("path") == name:
            return found.group("digest")
    raise Failed(f"Unable to find a checksum for file '{name}' in '{web.shown(url)}'")


def _digest(path: str, algorithm: str) -> str:
    with open(path, "rb") as file:
        return _sum_of(file, algorithm)


def _sum_of(file: BinaryIO, algorithm: str) -> str:
    digest = hashlib.new(algorithm)
    file.seek(0)
    for piece in iter(lambda: file.read(replace.CHUNK), b""):
        digest.update(piece)
    file.seek(0)
    return digest.hexdigest()
