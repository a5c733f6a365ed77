"""What is in an archive, unpacked."""

from __future__ import annotations

import calendar
import codecs
import fnmatch
import os
import re
import stat
import struct
import tempfile
import time
import zipfile
import zlib
from typing import BinaryIO, List, NamedTuple

from nodectl.agent import attributes, web
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.processes import Completed
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

CHUNK = 1024 * 1024
# A minute for each 10 GB on a slow disk; a task that knows better says `timeout:`.
LIMIT = 4 * 3600.0
# The field of a zip's entry that holds Unix times, and the flag that says the first is that of the change.
UNIX_TIMES = 0x5455
# What tar says of a member that is not as it is in the archive; owner and mode count unless the task sets them.
_DIFFERS = re.compile(r": (Mod time|Symlink|Contents|Size) differs?$|: Warning: Cannot stat: No such file or directory$|: Invalid (owner|group)$")
_BY_PARAMETER = {"owner": ": Uid differs", "group": ": Gid differs", "mode": ": Mode differs"}
# One line of `tar --list --verbose --full-time`: the time and the name.
_LISTED = re.compile(r"^\S+ \S+ +\S+ (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\S* (.*?)(?: -> .*)?$")
COMPRESSIONS = ((b"\x1f\x8b", "-z"), (b"BZh", "-j"), (b"\xfd7zXZ\0", "-J"), (b"\x28\xb5\x2f\xfd", "--use-compress-program=zstd"))

SPEC = Spec(
    summary="Unpack an archive (tar, tar.gz, tar.bz2, tar.xz, tar.zst, zip)",
    params={
        "src": Param("path", required=True, help="the archive: on the controller; on the node, or a URL, with remote_src"),
        "dest": Param("path", required=True, help="the folder, which must be there"),
        "remote_src": Param("bool", default=False, help="src is on the node, or a URL that the node fetches"),
        "copy": Param("bool", help="the old name of remote_src, the other way round"),
        "creates": Param("path", help="a path; when it is there, nothing is done"),
        "list_files": Param("bool", default=False, help="return the names in the archive"),
        "exclude": Param("list", default=[], elements="str", help="names and patterns that are left out"),
        "include": Param("list", default=[], elements="str", help="only these names and patterns"),
        "keep_newer": Param("bool", default=False, help="leave files that are newer than in the archive"),
        "extra_opts": Param("list", default=[], elements="str", help="further options for tar or unzip"),
        "validate_certs": Param("bool", default=True, help="check the certificate of the server that a URL names"),
        "decrypt": Param("bool", default=True, help="unpack the clear text of a vault-encrypted archive"),
        "io_buffer_size": Param("int", default=65536, help="taken for Ansible's sake"),
        "content_blob": Param(help="set by nodectl: name of the bytes that came with the step"),
        **attributes.PARAMS,
    },
    mutually_exclusive=(("include", "exclude"), ("copy", "remote_src")),
    returns={
        "dest": "the folder", "src": "the archive", "handler": "what kind it is", "files": "names in the archive, with list_files",
        "mode": "of dest", "owner": "of dest", "group": "of dest", "uid": "of dest", "gid": "of dest", "size": "of dest", "state": "directory",
    },
    example="- unarchive: {src: nccl-tests.tar.xz, dest: /opt, creates: /opt/nccl-tests}\n",
)


class _Kind(NamedTuple):
    """``flag`` is tar's for the compression; zip has none."""

    handler: str
    flag: str = ""


def read(system: System, args: Args) -> State:
    dest = os.path.abspath(os.path.expanduser(args["dest"]))
    if args["creates"] and os.path.lexists(os.path.expanduser(args["creates"])):
        return {"dest": dest, "there": attributes.look(system.stat(dest, follow=True)), "needless": args["creates"], "differing": [], "names": []}
    if not os.path.isdir(dest):
        raise Failed(f"dest '{args['dest']}' must be an existing dir")
    archive = _archive(system, args)
    kind = _kind(archive)
    state: State = {"dest": dest, "archive": archive, "kind": kind, "ids": attributes.wished(args), "needless": ""}
    state["differing"] = _zip_differs(args, state) if kind.handler == "ZipArchive" else _tar_differs(system, args, state)
    state["wrong"] = _wrong_owner(args, state)
    state["there"] = attributes.look(system.stat(dest, follow=True))
    return state


def _archive(system: System, args: Args) -> str:
    """Its path. What came with the step, or from a server, lies in a file without a name: other programs find it through our process."""
    if args["content_blob"]:
        return _unnamed(system.blob(args["content_blob"]))
    src = os.path.expanduser(args["src"])
    if "://" in src and not os.path.exists(src):
        return _unnamed(system.held(src) or _fetched(system, args, src))
    if not os.path.isfile(src):
        raise Failed(f"Source '{src}' does not exist")
    return str(os.path.abspath(src))


def _unnamed(file: BinaryIO) -> str:
    return f"/proc/{os.getpid()}/fd/{file.fileno()}"


def _fetched(system: System, args: Args, url: str) -> BinaryIO:
    asked = {**{name: param.default for name, param in web.PARAMS.items()}, "validate_certs": args["validate_certs"]}
    reply = web.fetch(asked, url)
    if reply.status != 200:
        raise Failed(f"Failure downloading {web.shown(url)}: {reply.msg}")
    file = system.hold(url, tempfile.TemporaryFile(prefix="nodectl-"))  # noqa: SIM115 -- read again after the write
    web.save(system, reply, file)
    file.flush()
    return file


def _kind(archive: str) -> _Kind:
    with open(archive, "rb") as file:
        start = file.read(6)
    if not start:
        raise Failed(f"Invalid archive '{archive}', the file is 0 bytes")
    if zipfile.is_zipfile(archive):
        return _Kind("ZipArchive")
    flag = next((flag for magic, flag in COMPRESSIONS if start.startswith(magic)), "")
    return _Kind({"-z": "TgzArchive", "-j": "TarBzipArchive", "-J": "TarXzArchive", "": "TarArchive"}.get(flag, "TarZstdArchive"), flag)


def _refuse_outside(names: List[str], archive: str) -> List[str]:
    """Raises Failed for a name that would leave the folder: before anything is unpacked, and not some files later."""
    outside = [name for name in names if ".." in name.split("/")]
    if outside:
        raise Failed(f"{archive} holds names that lead out of the folder, nothing was unpacked: {', '.join(outside[:3])}")
    return [name.lstrip("/") for name in names]


# -- tar


def _tar(system: System, args: Args, state: State, *what: str) -> Completed:
    flag = [state["kind"].flag] if state["kind"].flag else []
    options = ["--show-transformed-names", *args["extra_opts"]] if args["extra_opts"] else []
    owner = [f"--{name}={args[name]}" for name in ("owner", "group") if args[name] is not None and "--list" not in what]
    newer = ["--keep-newer-files"] if args["keep_newer"] and "--list" not in what else []
    left_out = [f"--exclude={name.rstrip('/')}" for name in args["exclude"]]
    argv = ["tar", *what, "-C", state["dest"], *flag, *options, *owner, *newer, *left_out, "-f", state["archive"], *args["include"]]
    return system.run(argv, timeout=LIMIT, cwd=state["dest"])


def _tar_differs(system: System, args: Args, state: State) -> List[str]:
    listed = _tar(system, args, state, "--list")
    if listed.rc != 0:
        raise Failed(f"Failed to find handler for \"{args['src']}\": tar cannot read it: {listed.stderr.strip()}", rc=listed.rc, stderr=listed.stderr)
    names = [codecs.escape_decode(line.encode())[0].decode("utf-8", "surrogateescape") for line in listed.stdout.splitlines()]
    state["names"] = [name for name in _refuse_outside(names, args["src"]) if not any(fnmatch.fnmatch(name, one) for one in args["exclude"])]
    if not state["names"]:
        raise Failed(f"there is nothing in {args['src']} that was asked for")
    compared = _tar(system, args, state, "--diff")
    own = [text for name, text in _BY_PARAMETER.items() if args[name] is None and (name == "mode" or os.geteuid() == 0)]
    said = [*compared.stdout.splitlines(), *compared.stderr.splitlines()]
    # A name of which --strip-components left nothing is no file.
    lines = [line for line in said if (_DIFFERS.search(line) or line.endswith(tuple(own))) and ": : " not in line]
    return [line for line in lines if line not in _newer(system, args, state, lines)]


def _newer(system: System, args: Args, state: State, lines: List[str]) -> List[str]:
    """With keep_newer: the lines about files that are newer than in the archive, and stay."""
    if not args["keep_newer"] or not lines:
        return []
    times = {}
    for line in _tar(system, args, state, "--list", "--verbose", "--full-time", "--utc").stdout.splitlines():
        found = _LISTED.match(line)
        if found:
            times[found.group(2)] = calendar.timegm(time.strptime(found.group(1), "%Y-%m-%d %H:%M:%S"))
    there = {name: attributes.look(system.stat(os.path.join(state["dest"], name))) for name in times}
    newer = [name for name, when in times.items() if there[name]["kind"] == "file" and there[name]["mtime"] > when]
    return [line for line in lines if line.startswith(tuple(f"{name}: " for name in newer))]


# -- zip


def _zip_differs(args: Args, state: State) -> List[str]:
    try:
        with zipfile.ZipFile(state["archive"]) as opened:
            entries = [entry for entry in opened.infolist() if _chosen(entry.filename, args)]
    except (zipfile.BadZipFile, OSError) as error:
        raise Failed(f"Failed to find handler for \"{args['src']}\": {error}") from None
    state["names"] = _refuse_outside([entry.filename for entry in entries], args["src"])
    if not entries:
        raise Failed(f"there is nothing in {args['src']} that was asked for")
    told = [(entry.filename, _entry_differs(entry, args, state)) for entry in entries]
    return [f"{name}: {why}" for name, why in told if why]


def _chosen(name: str, args: Args) -> bool:
    if args["include"]:
        return any(fnmatch.fnmatch(name, one) for one in args["include"])
    return not any(fnmatch.fnmatch(name, one) for one in args["exclude"])


def _entry_differs(entry: zipfile.ZipInfo, args: Args, state: State) -> str:
    path = os.path.join(state["dest"], entry.filename.lstrip("/"))
    there = attributes.look(os.lstat(path) if os.path.lexists(path) else None)
    mode = entry.external_attr >> 16
    kind = "directory" if entry.is_dir() else "link" if stat.S_ISLNK(mode) else "file"
    if there["kind"] != kind:
        return f"is {there['kind']}, not {kind}"
    if kind == "file":
        when = _changed_at(entry)
        if args["keep_newer"] and there["mtime"] > when:
            return ""
        if int(there["mtime"]) != when:
            return "Mod time differs"
        if there["size"] != entry.file_size or _crc(path) != entry.CRC:
            return "Contents differ"
    wished = attributes.wished_mode(args["mode"], there["mode"], kind == "directory") if args["mode"] else _mode(entry)
    if kind != "link" and wished != there["mode"]:
        return "Mode differs"
    ids = state["ids"]
    own = (os.geteuid() if ids["uid"] is None else ids["uid"], os.getegid() if ids["gid"] is None else ids["gid"])
    return "" if (there["uid"], there["gid"]) == own else "Owner differs"


def _mode(entry: zipfile.ZipInfo) -> int:
    """A zip that was made on another system has no modes of ours."""
    mode = entry.external_attr >> 16 & 0o777
    return mode if entry.create_system == 3 and mode else (0o755 if entry.is_dir() else 0o644)


def _changed_at(entry: zipfile.ZipInfo) -> int:
    """Seconds since 1970: from the entry's Unix field, else from its local time in steps of two seconds."""
    extra = entry.extra
    while len(extra) >= 4:
        field, length = struct.unpack("<HH", extra[:4])
        if field == UNIX_TIMES and length >= 5 and extra[4] & 1:
            return int(struct.unpack("<i", extra[5:9])[0])
        extra = extra[4 + length :]
    return int(time.mktime((*entry.date_time, 0, 0, -1)))


def _crc(path: str) -> int:
    total = 0
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(CHUNK), b""):
            total = zlib.crc32(piece, total)
    return total


# -- both


def _paths(state: State) -> List[str]:
    """Every member, and the folders at the top that hold them."""
    tops = [name.partition("/")[0] for name in state["names"] if "/" in name]
    return [os.path.join(state["dest"], name.rstrip("/")) for name in dict.fromkeys([*state["names"], *tops]) if name.strip("./")]


def _wrong_owner(args: Args, state: State) -> List[str]:
    if all(args[name] is None for name in ("owner", "group", "mode")):
        return []
    looked = [(path, attributes.look(os.lstat(path))) for path in _paths(state) if os.path.lexists(path)]
    return [action for path, there in looked for action in attributes.differences(path, args, state["ids"], there)]


def diff(args: Args, state: State) -> Change:
    if state["needless"]:
        return Change()
    what = [f"unpack {args['src']} into {state['dest']}"] if state["differing"] else []
    return Change([*what, *state["wrong"]], "", "".join(f"{line}\n" for line in state["differing"] or state["wrong"]), state["dest"], args["src"])


def write(system: System, args: Args, state: State, change: Change) -> None:
    attributes.known(args, state["ids"])
    if state["differing"]:
        done = _unzip(system, args, state) if state["kind"].handler == "ZipArchive" else _tar(system, args, state, "--extract")
        if done.rc != 0:
            raise Failed(f"failed to unpack {args['src']} to {state['dest']}: {done.stderr.strip()}", rc=done.rc, stderr=done.stderr, cmd=list(done.argv))
    if any(args[name] is not None for name in ("owner", "group", "mode")):
        for path in _paths(state):
            attributes.apply(path, args, state["ids"])


def _unzip(system: System, args: Args, state: State) -> Completed:
    left_out = ["-x", *args["exclude"]] if args["exclude"] else []
    argv = ["unzip", "-o", *args["extra_opts"], state["archive"], *left_out, *args["include"], "-d", state["dest"]]
    return system.run(argv, timeout=LIMIT, cwd=state["dest"])


def values(args: Args, state: State, change: Change) -> Args:
    if state["needless"]:
        return {"msg": f"skipped, since {state['needless']} exists", "skipped": True}
    files = {"files": state["names"]} if args["list_files"] else {}
    return {"dest": args["dest"], "src": args["src"], "handler": state["kind"].handler, **files, **attributes.returned(state["dest"], state["there"])}
