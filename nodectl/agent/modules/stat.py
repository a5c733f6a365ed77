"""What a path is."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Any, Dict

from nodectl.agent import attributes
from nodectl.agent.contract import Args
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

ALGORITHMS = ("sha1", "sha224", "sha256", "sha384", "sha512", "md5")
_KINDS = (
    ("isdir", stat.S_ISDIR), ("ischr", stat.S_ISCHR), ("isblk", stat.S_ISBLK), ("isreg", stat.S_ISREG), ("isfifo", stat.S_ISFIFO),
    ("islnk", stat.S_ISLNK), ("issock", stat.S_ISSOCK),
)
_BITS = ("rusr", "wusr", "xusr", "rgrp", "wgrp", "xgrp", "roth", "woth", "xoth")

SPEC = Spec(
    summary="Look at a path: kind, size, owner, mode, times, checksum",
    params={
        "path": Param("path", required=True, aliases=("dest", "name"), help="the path"),
        "follow": Param("bool", default=False, help="look at what a link points to"),
        "get_checksum": Param("bool", default=True, help="checksum of a regular file"),
        "checksum_algorithm": Param(default="sha1", choices=ALGORITHMS, aliases=("checksum", "checksum_algo"), help="which"),
        "get_mime": Param("bool", default=False, choices=(False,), help="only false: content is not guessed", aliases=("mime", "mime_type", "mime-type")),
        "get_attributes": Param("bool", default=False, choices=(False,), help="only false: chattr's flags are not read", aliases=("attr", "attributes")),
    },
    returns={"stat": "exists and, where it does, everything else"},
    example="- stat: {path: /dev/infiniband}\n  register: rdma\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    path = os.path.expanduser(args["path"])
    found = system.stat(path, follow=args["follow"])
    if found is None:
        return Outcome(values={"stat": {"exists": False}})
    result = _describe(path, found)
    if stat.S_ISLNK(found.st_mode):
        result["lnk_source"], result["lnk_target"] = os.path.realpath(path), os.readlink(path)
    if stat.S_ISREG(found.st_mode) and args["get_checksum"] and os.access(path, os.R_OK):
        result["checksum"] = _checksum(path, args["checksum_algorithm"])
    return Outcome(values={"stat": result})


def _describe(path: str, found: os.stat_result) -> Dict[str, Any]:
    mode = stat.S_IMODE(found.st_mode)
    result: Dict[str, Any] = {
        "exists": True, "path": path, "mode": f"{mode:04o}", "uid": found.st_uid, "gid": found.st_gid, "size": found.st_size, "inode": found.st_ino,
        "dev": found.st_dev, "nlink": found.st_nlink, "atime": found.st_atime, "mtime": found.st_mtime, "ctime": found.st_ctime,
        "pw_name": attributes.user_name(found.st_uid), "gr_name": attributes.group_name(found.st_gid), "blocks": found.st_blocks,
        "block_size": found.st_blksize, "device_type": found.st_rdev, "isuid": bool(mode & stat.S_ISUID), "isgid": bool(mode & stat.S_ISGID),
        "readable": os.access(path, os.R_OK), "writeable": os.access(path, os.W_OK), "executable": os.access(path, os.X_OK),
    }
    result.update((name, is_kind(found.st_mode)) for name, is_kind in _KINDS)
    result.update((name, bool(mode & 0o400 >> index)) for index, name in enumerate(_BITS))
    return result


def _checksum(path: str, algorithm: str) -> str:
    digest = hashlib.new(algorithm)
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(1024 * 1024), b""):
            digest.update(piece)
    return digest.hexdigest()
