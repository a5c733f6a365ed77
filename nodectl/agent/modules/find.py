"""Which files lie below some folders."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import stat
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from nodectl.agent import attributes, edited_text
from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SUMS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
CHUNK = 1024 * 1024
AGES = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
SIZES = {"": 1, "b": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_BITS = {f"{letter}{who}": getattr(stat, f"S_I{letter.upper()}{who.upper()}") for who in ("usr", "grp", "oth") for letter in "wrx"}
_KINDS: Dict[str, Callable[[int], bool]] = {
    "isdir": stat.S_ISDIR, "ischr": stat.S_ISCHR, "isblk": stat.S_ISBLK, "isreg": stat.S_ISREG, "isfifo": stat.S_ISFIFO, "islnk": stat.S_ISLNK,
    "issock": stat.S_ISSOCK,
}

SPEC = Spec(
    summary="List files below folders by name, age, size, content or mode",
    params={
        "paths": Param("list", required=True, aliases=("name", "path"), elements="path", help="the folders to look in"),
        "patterns": Param("list", default=[], aliases=("pattern",), elements="str", help="names: shell patterns, or regular expressions with use_regex"),
        "excludes": Param("list", aliases=("exclude",), elements="str", help="names that are left out, written alike"),
        "contains": Param(help="a pattern that some line must begin with"),
        "read_whole_file": Param("bool", default=False, help="look for contains anywhere in the whole text"),
        "encoding": Param(help="encoding of the files that contains looks into"),
        "file_type": Param(default="file", choices=("any", "directory", "file", "link"), help="what is listed"),
        "age": Param(help="as old as this or older; with a minus, at most as old: 3600, 2d, -1w"),
        "age_stamp": Param(default="mtime", choices=("atime", "ctime", "mtime"), help="which time counts as the age"),
        "size": Param(help="as large as this or larger; with a minus, at most as large: 100k, -1g"),
        "recurse": Param("bool", default=False, help="folders below too"),
        "depth": Param("int", help="how deep, with recurse; 1 is the folder itself"),
        "hidden": Param("bool", default=False, help="names that begin with a dot too"),
        "follow": Param("bool", default=False, help="go into folders behind links"),
        "get_checksum": Param("bool", default=False, help="return a checksum of each file"),
        "checksum_algorithm": Param(default="sha1", choices=SUMS, aliases=("checksum", "checksum_algo"), help="which one"),
        "use_regex": Param("bool", default=False, help="patterns and excludes are regular expressions"),
        "mode": Param(help="permissions, octal in quotes or symbolic"),
        "exact_mode": Param("bool", default=True, help="exactly these; false: at least one of these bits"),
        "limit": Param("int", help="stop after so many"),
    },
    returns={
        "files": "a list; each with path, mode, uid, gid, size, times and kind as stat has them", "matched": "how many",
        "examined": "how many names were looked at", "skipped_paths": "path to reason",
    },
    example="- find: {paths: /scratch/tmp, age: 7d, recurse: true}\n  register: old\n",
)


class _Wanted(NamedTuple):
    """What of the arguments is worked out once."""

    named: Callable[[str], bool]
    contains: Optional["re.Pattern[str]"]
    age: Optional[int]
    size: Optional[int]
    mode: Optional[int]


def act(system: System, args: Args, check: bool) -> Outcome:
    if args["limit"] is not None and args["limit"] <= 0:
        raise Failed(f"limit cannot be {args['limit']}: leave it out for no limit")
    wanted = _Wanted(
        _named(args), None if args["contains"] is None else edited_text.pattern(args["contains"], "contains"),
        _quantity(args, "age", AGES), _quantity(args, "size", SIZES),
        attributes.wished_mode(args["mode"], 0, directory=False) if args["mode"] else None,
    )
    files: List[Dict[str, Any]] = []
    skipped: Dict[str, str] = {}
    examined = 0
    for folder in args["paths"]:
        system.stopper.check()
        looked, found = _below(os.path.expanduser(folder), args, wanted, system.began, skipped, None if args["limit"] is None else args["limit"] - len(files))
        examined += looked
        files += found
    values = {"files": files, "matched": len(files), "examined": examined, "skipped_paths": skipped}
    warnings = [f"{path} was not looked at: {why}" for path, why in skipped.items()]
    full = args["limit"] is not None and len(files) == args["limit"]
    msg = "Not all paths examined, check warnings for details" if skipped else "Limit of matches reached" if full else "All paths examined"
    return Outcome(msg=msg, values=values, warnings=warnings)


def _named(args: Args) -> Callable[[str], bool]:
    if args["use_regex"]:
        wanted, unwanted = ([edited_text.pattern(one, "patterns") for one in args[name] or ()] for name in ("patterns", "excludes"))
        return lambda name: any(one.match(name) for one in wanted or [re.compile("")]) and not any(one.match(name) for one in unwanted)
    globs, others = args["patterns"] or ["*"], args["excludes"] or []
    return lambda name: any(fnmatch.fnmatch(name, one) for one in globs) and not any(fnmatch.fnmatch(name, one) for one in others)


def _quantity(args: Args, name: str, units: Dict[str, int]) -> Optional[int]:
    if args[name] is None:
        return None
    found = re.match(rf"^(-?\d+)([{''.join(units)}]?)$", args[name].lower())
    if found is None:
        raise Failed(f"failed to process {name}: {args[name]!r} is no number with one of {', '.join(filter(None, units))}", **{name: args[name]})
    return int(found.group(1)) * units[found.group(2)]


def _below(folder: str, args: Args, wanted: _Wanted, now: float, skipped: Dict[str, str], room: Optional[int]) -> Tuple[int, List[Dict[str, Any]]]:
    """(names looked at, what was found), at most ``room``."""
    if not os.path.isdir(folder):
        skipped[folder] = f"'{folder}' is not a directory"
        return 0, []
    found: List[Dict[str, Any]] = []
    looked = 0
    for count, paths in _walk(folder, args, skipped):
        looked += count
        for path in paths:
            if room is not None and len(found) == room:
                return looked, found
            entry = _entry(path, args, wanted, now, skipped)
            found += [] if entry is None else [entry]
    return looked, found


def _walk(folder: str, args: Args, skipped: Dict[str, str]) -> Iterator[Tuple[int, List[str]]]:
    def refused(error: OSError) -> None:
        skipped[str(error.filename)] = str(error)

    base = folder.rstrip("/").count("/")
    for root, folders, files in os.walk(folder, onerror=refused, followlinks=args["follow"]):
        paths = [os.path.normpath(os.path.join(root, name)) for name in files + folders]
        count = len(paths)
        if args["depth"] and paths and paths[0].count("/") - base > args["depth"]:
            paths, folders[:] = [], []
        yield count, [path for path in paths if args["hidden"] or not os.path.basename(path).startswith(".")]
        if not args["recurse"]:
            return


def _entry(path: str, args: Args, wanted: _Wanted, now: float, skipped: Dict[str, str]) -> Optional[Dict[str, Any]]:
    try:
        info = os.lstat(path)
        if not _fits(path, info, args, wanted, now):
            return None
        return {"path": path, **_shown(info), **_checksum(path, info, args)}
    except OSError as error:
        skipped[path] = str(error)
        return None


def _fits(path: str, info: os.stat_result, args: Args, wanted: _Wanted, now: float) -> bool:
    kind = "directory" if stat.S_ISDIR(info.st_mode) else "link" if stat.S_ISLNK(info.st_mode) else "file" if stat.S_ISREG(info.st_mode) else "other"
    if args["file_type"] not in ("any", kind) or not wanted.named(os.path.basename(path)):
        return False
    bits = stat.S_IMODE(info.st_mode)
    if not _within(wanted.age, now - getattr(info, f"st_{args['age_stamp']}")) or (kind == "file" and not _within(wanted.size, info.st_size)):
        return False
    if wanted.mode is not None and not (bits == wanted.mode if args["exact_mode"] else bits & wanted.mode):
        return False
    return args["file_type"] != "file" or wanted.contains is None or _contains(path, wanted.contains, args)


def _within(bound: Optional[int], value: float) -> bool:
    """A negative bound is an upper one."""
    return bound is None or (value >= bound if bound >= 0 else value <= -bound)


def _contains(path: str, pattern: "re.Pattern[str]", args: Args) -> bool:
    try:
        with open(path, encoding=args["encoding"] or "utf-8", errors="surrogateescape") as file:
            return bool(pattern.search(file.read())) if args["read_whole_file"] else any(pattern.match(line) for line in file)
    except LookupError as error:
        raise Failed(str(error)) from None


def _shown(info: os.stat_result) -> Dict[str, Any]:
    mode = info.st_mode
    return {
        **{name: is_kind(mode) for name, is_kind in _KINDS.items()}, **{name: bool(mode & bit) for name, bit in _BITS.items()},
        "mode": f"{stat.S_IMODE(mode):04o}",
        "isuid": bool(mode & stat.S_ISUID), "isgid": bool(mode & stat.S_ISGID), "uid": info.st_uid,
        "gid": info.st_gid, "size": info.st_size,
        "inode": info.st_ino, "dev": info.st_dev, "nlink": info.st_nlink, "atime": info.st_atime, "mtime": info.st_mtime, "ctime": info.st_ctime,
        "pw_name": attributes.user_name(info.st_uid),
        "gr_name": attributes.group_name(info.st_gid),
    }


def _checksum(path: str, info: os.stat_result, args: Args) -> Dict[str, str]:
    if not args["get_checksum"] or not stat.S_ISREG(info.st_mode):
        return {}
    digest = hashlib.new(args["checksum_algorithm"])
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(CHUNK), b""):
            digest.update(piece)
    return {"checksum": digest.hexdigest()}
