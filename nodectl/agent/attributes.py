"""Owner, group and mode of a path: what is wished, what is there, and the difference. Shared by every module that makes files."""

from __future__ import annotations

import grp
import os
import pwd
import re
import stat
from typing import Any, Dict, List, Optional

from nodectl.agent.contract import Args, Failed
from nodectl.wire.params import Param

PARAMS: Dict[str, Param] = {
    "owner": Param(help="user that owns it: a name or a number"),
    "group": Param(help="group that owns it: a name or a number"),
    "mode": Param("mode", help="permissions: '0644' in quotes, or symbolic as in chmod"),
}
_CLAUSE = re.compile(r"^([ugoa]*)((?:[-+=](?:[rwxXst]*|[ugo]))+)$")
_ACTION = re.compile(r"([-+=])([rwxXst]+|[ugo]|)")
_SHIFT = {"u": 6, "g": 3, "o": 0}
_BIT = {"r": 4, "w": 2, "x": 1}
KINDS = ((stat.S_ISLNK, "link"), (stat.S_ISDIR, "directory"), (stat.S_ISREG, "file"))


def look(found: Optional[os.stat_result]) -> Dict[str, Any]:
    """What is there, as plain data: kind (absent, file, directory, link, other), uid, gid, mode, size, nlink."""
    if found is None:
        return {"kind": "absent"}
    kind = next((name for is_kind, name in KINDS if is_kind(found.st_mode)), "other")
    return {
        "kind": kind, "uid": found.st_uid, "gid": found.st_gid, "mode": stat.S_IMODE(found.st_mode), "size": found.st_size, "nlink": found.st_nlink,
        "mtime": found.st_mtime, "atime": found.st_atime, "inode": [found.st_dev, found.st_ino],
    }


def wished(args: Args) -> Dict[str, Any]:
    """uid and gid of the names in ``args``; a name that the node does not know is -1 there (a task before may still make it)."""
    return {"uid": _uid(args.get("owner")), "gid": _gid(args.get("group"))}


def _uid(name: Optional[str]) -> Optional[int]:
    if name is None or str(name).isdigit():
        return None if name is None else int(name)
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return -1


def _gid(name: Optional[str]) -> Optional[int]:
    if name is None or str(name).isdigit():
        return None if name is None else int(name)
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return -1


def known(args: Args, ids: Dict[str, Any]) -> None:
    """Raise Failed when owner or group is a name that the node does not know. For ``write``: in check mode it is only predicted."""
    if ids["uid"] == -1:
        raise Failed(f"there is no user '{args['owner']}' on this node")
    if ids["gid"] == -1:
        raise Failed(f"there is no group '{args['group']}' on this node")


def differences(path: str, args: Args, ids: Dict[str, Any], there: Dict[str, Any], fresh_mode: Optional[int] = None) -> List[str]:
    """Sentences for what must change on something that exists. ``fresh_mode``: it will be made with that mode."""
    actions = []
    if ids["uid"] is not None and ids["uid"] != there.get("uid"):
        actions.append(f"give {path} to user {args['owner']}")
    if ids["gid"] is not None and ids["gid"] != there.get("gid"):
        actions.append(f"give {path} to group {args['group']}")
    current = there["mode"] if fresh_mode is None else fresh_mode
    mode = wished_mode(args.get("mode"), current, there["kind"] == "directory")
    if mode is not None and mode != there.get("mode") and there["kind"] != "link":  # Linux has no mode of a link
        actions.append(f"set mode of {path} to {mode:04o}")
    return actions


def apply(path: str, args: Args, ids: Dict[str, Any]) -> None:
    """Set what differs on ``path`` itself, a link is not followed. Owner first: chown clears the set-user bit."""
    known(args, ids)
    there = look(os.lstat(path))
    uid = ids["uid"] if ids["uid"] is not None else there["uid"]
    gid = ids["gid"] if ids["gid"] is not None else there["gid"]
    mode = wished_mode(args.get("mode"), there["mode"], there["kind"] == "directory")
    if (uid, gid) != (there["uid"], there["gid"]):
        os.chown(path, uid, gid, follow_symlinks=False)
    if there["kind"] != "link":
        kept = mode if mode is not None else there["mode"]
        if stat.S_IMODE(os.lstat(path).st_mode) != kept:
            os.chmod(path, kept)


def wished_mode(text: Optional[str], current: int, directory: bool) -> Optional[int]:
    """The mode that ``text`` means on top of ``current``; None when nothing is wished. "preserve" is resolved by the caller."""
    if text is None or text == "preserve":
        return None
    if text.isdigit():
        return int(text, 8)
    mode = current
    for clause in text.split(","):
        mode = _clause(clause, mode, directory)
    return mode


def _clause(clause: str, mode: int, directory: bool) -> int:
    found = _CLAUSE.match(clause)
    if found is None:
        raise Failed(f"not a symbolic mode: {clause}")
    # chmod lets the umask hold back bits where nobody is named; the agent's umask is 022.
    who, held_back = (found.group(1), 0) if found.group(1) else ("a", 0o022)
    users = "ugo" if "a" in who else who
    for sign, what in _ACTION.findall(found.group(2)):
        bits, touched = _bits(users, what, mode, directory)
        bits &= ~held_back
        if sign == "=":
            mode = mode & ~touched | bits
        else:
            mode = mode | bits if sign == "+" else mode & ~bits
    return mode


def _bits(users: str, what: str, mode: int, directory: bool) -> "tuple[int, int]":
    """(bits that the letters mean for these users, all bits that `=` replaces)."""
    bits = touched = 0
    for user in users:
        shift = _SHIFT[user]
        special = {"u": stat.S_ISUID, "g": stat.S_ISGID}.get(user, 0)
        touched |= 7 << shift | (0 if directory else special)  # as chmod: a folder keeps its set-id bits
        if what in _SHIFT:
            bits |= (mode >> _SHIFT[what] & 7) << shift
            continue
        for letter in what:
            if letter == "X":
                bits |= (1 << shift) if directory or mode & 0o111 else 0
            else:
                bits |= _BIT.get(letter, 0) << shift
        bits |= special if "s" in what else 0
    return (bits | stat.S_ISVTX if "t" in what else bits), touched


def returned(path: str, there: Dict[str, Any]) -> Dict[str, Any]:
    """Ansible's return values for a path that exists: uid, gid, owner, group, mode, size, state."""
    if there["kind"] == "absent":
        return {}
    kind = "hard" if there["kind"] == "file" and there["nlink"] > 1 else there["kind"]
    return {
        "uid": there["uid"], "gid": there["gid"], "owner": user_name(there["uid"]), "group": group_name(there["gid"]),
        "mode": f"0{there['mode']:03o}", "size": there["size"], "state": kind,
    }


def user_name(uid: int) -> str:
    """The name, or the number as text where the node knows no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def group_name(gid: int) -> str:
    """The name, or the number as text where the node knows no name."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
