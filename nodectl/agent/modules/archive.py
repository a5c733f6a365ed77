"""Files and trees, packed into an archive on the node."""

from __future__ import annotations

import bz2
import fnmatch
import glob
import gzip
import lzma
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from typing import Any, BinaryIO, Callable, Dict, FrozenSet, Iterator, List, Optional, Tuple

from nodectl.agent import attributes, replace
from nodectl.agent.contract import Args, Failed
from nodectl.agent.own_folder import own_folder
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

# What a packer takes at once.
CHUNK = 1024 * 1024
OPENERS: Dict[str, Callable[..., Any]] = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}
_SUFFIXES = (".tar", ".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tbz2", ".zip")
# Of a member: its name, and what tells whether it is another one.
Members = FrozenSet[Tuple[str, int]]

SPEC = Spec(
    summary="Pack files and trees into an archive on the node",
    params={
        "path": Param("list", required=True, elements="path", help="what is packed: paths, or patterns with * and ?"),
        "dest": Param("path", help="the archive; for one file that is only packed, without it, beside that file"),
        "format": Param(default="gz", choices=("bz2", "gz", "tar", "xz", "zip"), help="how it is packed; several files are made a tar first"),
        "exclude_path": Param("list", default=[], elements="path", help="of path, what is left out"),
        "exclusion_patterns": Param("list", elements="path", help="patterns of names that are left out, however deep"),
        "force_archive": Param("bool", default=False, help="make an archive of a single file too"),
        "remove": Param("bool", default=False, help="remove what was packed"),
        **attributes.PARAMS,
    },
    returns={
        "dest": "the archive", "dest_state": "archive, compress, incomplete or absent", "archived": "what was packed", "missing": "what was not there",
        "arcroot": "the folder that names begin below", "expanded_paths": "what path means", "expanded_exclude_paths": "what exclude_path means",
    },
    example="- archive: {path: /var/log/nccl, dest: /scratch/nccl-logs.tar.xz, format: xz}\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    """It is packed beside the old one, in check mode too: only so can it be told whether it differs."""
    paths, patterned = _expanded(args["path"])
    excluded, _ = _expanded(args["exclude_path"])
    sources = sorted(set(paths) - set(excluded))
    if not sources:
        raise Failed("Error, no source paths were found", expanded_paths=", ".join(paths), expanded_exclude_paths=", ".join(excluded))
    several = args["force_archive"] or patterned or len(sources) > 1 or os.path.isdir(sources[0])
    dest = _dest(args, sources, several)
    found = [path for path in sources if os.path.lexists(path)]
    root = os.path.join(os.path.commonpath([os.path.dirname(path) for path in sources]), "")
    told: Dict[str, Any] = {
        "dest": dest, "arcroot": root, "missing": [path for path in sources if path not in found], "expanded_paths": paths, "expanded_exclude_paths": excluded,
        "archived": [], "dest_state": _state_of(dest),
    }
    actions = _packed(system, args, check, found, several, root, told) if found else []
    return _finished(args, check, dest, actions, told)


def _expanded(given: List[str]) -> Tuple[List[str], bool]:
    """(the paths, whether patterns were among them)."""
    patterned = any("*" in path or "?" in path for path in given)
    return [found for path in given for found in (glob.glob(path) if "*" in path or "?" in path else [path])], patterned


def _dest(args: Args, sources: List[str], several: bool) -> str:
    if args["dest"] is None and several:
        raise Failed("Error, must specify \"dest\" when archiving multiple files or trees", path=", ".join(args["path"]))
    dest = os.path.expanduser(args["dest"]) if args["dest"] else f"{sources[0]}.{args['format']}"
    if args["remove"] and any(os.path.isdir(path) and dest.startswith(os.path.join(path, "")) for path in sources):
        raise Failed("Error, created archive can not be contained in source paths when remove=true", path=", ".join(sources))
    if not os.path.isdir(os.path.dirname(dest) or "."):
        raise Failed(f"the folder of {dest} does not exist")
    return dest


def _state_of(dest: str) -> str:
    if not os.path.exists(dest):
        return "absent"
    return "archive" if dest.lower().endswith(_SUFFIXES) else "compress"


def _packed(system: System, args: Args, check: bool, found: List[str], several: bool, root: str, told: Dict[str, Any]) -> List[str]:
    dest = told["dest"]
    members = list(_members(found, root, args, dest)) if several or args["format"] in ("tar", "zip") else []
    with own_folder() as folder, open(os.path.join(folder, "archive"), "w+b") as made:
        if members:
            _pack(system, args["format"], made, members)
        else:
            _compress(system, args["format"], made, found[0])
        made.flush()
        differs = _contents(dest, args["format"]) != _contents(made.name, args["format"]) or not os.path.exists(dest)
        if differs and not check:
            there = attributes.look(system.stat(dest, follow=True))
            replace.put(system, dest, made, args, attributes.wished(args), there)
    told["archived"] = [] if check else [path for path, _ in members] or found[:1]
    told["dest_state"] = told["dest_state"] if check else "incomplete" if told["missing"] and several else "archive" if members else "compress"
    if args["remove"] and not check:
        _remove(found)
    return ([f"pack {', '.join(found[:3])} into {dest}"] if differs else []) + ([f"remove {path}" for path in found] if args["remove"] else [])


def _members(found: List[str], root: str, args: Args, dest: str) -> Iterator[Tuple[str, str]]:
    """(path, name in the archive); the archive itself is none of them."""
    for path in found:
        inside = [os.path.join(folder, name) for folder, folders, files in os.walk(path) for name in folders + files] if os.path.isdir(path) else [path]
        for member in inside:
            name = member[len(root) :] if member.startswith(root) else member
            told = member if args["format"] == "zip" else name
            if member != dest and not any(fnmatch.fnmatch(told, one) for one in args["exclusion_patterns"] or ()):
                yield member, name


def _pack(system: System, form: str, made: BinaryIO, members: List[Tuple[str, str]]) -> None:
    if form == "zip":
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, True) as opened:
            for path, name in members:
                system.stopper.check()
                if os.path.exists(path):
                    opened.write(path, name)
        return
    mode: Any = "w" if form == "tar" else f"w:{form}"
    with tarfile.open(fileobj=made, mode=mode) as tar:
        for path, name in members:
            system.stopper.check()
            tar.add(path, name, recursive=False)


def _compress(system: System, form: str, made: BinaryIO, path: str) -> None:
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise Failed(f"{path} is no file")
    with open(path, "rb") as source, OPENERS[form](made, "wb") as packed:
        for piece in iter(lambda: source.read(CHUNK), b""):
            system.stopper.check()
            packed.write(piece)


def _contents(path: str, form: str) -> Optional[Members]:
    """What is in it; None where it is no archive of that form. A packed single file is one member without a name."""
    if not os.path.isfile(path):
        return None
    try:
        if form == "zip":
            with zipfile.ZipFile(path) as opened:
                return frozenset((entry.filename, entry.CRC) for entry in opened.infolist())
        mode: Any = "r" if form == "tar" else f"r:{form}"
        with tarfile.open(path, mode) as tar:
            return frozenset((member.name, member.chksum) for member in tar)
    except (zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, OSError, EOFError):
        return _single(path, form) if form in OPENERS else None


def _single(path: str, form: str) -> Optional[Members]:
    total = 0
    try:
        with OPENERS[form](path, "rb") as file:
            for piece in iter(lambda: file.read(CHUNK), b""):
                total = zlib.crc32(piece, total)
    except (OSError, EOFError, lzma.LZMAError):
        return None
    return frozenset([("", total)])


def _remove(found: List[str]) -> None:
    for path in found:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def _finished(args: Args, check: bool, dest: str, actions: List[str], told: Dict[str, Any]) -> Outcome:
    if os.path.exists(dest):
        ids = attributes.wished(args)
        actions = actions + attributes.differences(dest, args, ids, attributes.look(os.stat(dest)))
        if not check:
            attributes.apply(os.path.realpath(dest), args, ids)
        told.update(attributes.returned(dest, attributes.look(os.stat(dest))))
    diff = [{"before": "", "after": "".join(f"{action}\n" for action in actions), "before_header": dest, "after_header": dest}] if actions else []
    return Outcome(changed=bool(actions), msg="; ".join(actions), values=told, diff=diff)
