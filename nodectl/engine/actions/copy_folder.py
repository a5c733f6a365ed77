"""A folder of the controller, brought to the node: one comparison for all of it, then what differs in as few pieces as possible."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from nodectl.engine.actions.contract import Context
from nodectl.engine.actions.files import sha1_of
from nodectl.wire.outcome import Outcome

# What travels in one piece lies on the node's disk once more until it is in place (bytes), and so many names make one frame.
PIECE = 64 * 1024 * 1024
NAMES = 2000

PASSED_ON = ("mode", "owner", "group", "directory_mode", "backup", "force", "validate")
# An agent holds a file of a piece in memory; a larger one goes by itself (bytes).
LARGE = 8 * 1024 * 1024

Clear = Callable[[Path], bytes | None]
One = Callable[[Path, str], Outcome]


class _File(NamedTuple):
    """One entry, as the node reads it; ``clear`` is the content of a file that is encrypted here."""

    path: Path
    entry: dict[str, Any]
    clear: bytes | None = None


def run(context: Context, args: Mapping[str, Any], source: Path, top: str, clear: Clear, one: One) -> Outcome:
    """``clear`` gives the content of an encrypted file, None for any other; ``one`` copies a large file by itself. Raises OSError."""
    whole = Outcome(values={"dest": args["dest"].rstrip("/") + "/"})
    files = list(_files(args, source, clear))
    needed: list[_File] = []
    for start in range(0, len(files), NAMES):
        part = files[start : start + NAMES]
        outcome = _step(context, args, top, part, None)
        if _add(whole, outcome, source).failed:
            return whole
        needed += [part[number] for number in outcome.values["needed"]]
    whole.changed = whole.changed or bool(needed)
    if context.check and not context.diff:
        return whole
    for large in (file for file in needed if file.entry["size"] > LARGE):
        if _add(whole, one(large.path, f"{top}/{large.entry['name']}"), source).failed:
            return whole
    for piece in _pieces([file for file in needed if file.entry["size"] <= LARGE]):
        with io.BufferedReader(_Content(piece)) as content:
            if _add(whole, _step(context, args, top, piece, content), source).failed:
                return whole
    return whole


def _add(whole: Outcome, one: Outcome, source: Path) -> Outcome:
    whole.changed = whole.changed or one.changed
    whole.diff += one.diff
    whole.warnings += one.warnings
    if one.failed:
        whole.failed, whole.msg = True, f"{source}: {one.msg}"
        whole.values.update(one.values)
    return whole


def _step(context: Context, args: Mapping[str, Any], top: str, files: list[_File], content: BinaryIO | None) -> Outcome:
    sent = {name: args[name] for name in PASSED_ON if name in context.given and args[name] is not None}
    if sent.get("mode") == "preserve":
        del sent["mode"]
    sent.update(dest=top, entries=[file.entry for file in files], show=context.diff)
    if content is None:
        return context.node.step("copy_folder", sent)
    return context.node.step("copy_folder", {**sent, "content_blob": "content"}, {"content": content})


def _files(args: Mapping[str, Any], source: Path, clear: Clear) -> Iterator[_File]:
    """The folder itself first, each folder before what is in it. Links are followed, unless local_follow is off; a circle ends where it closes."""
    yield _File(source, {"name": "", "kind": "directory"})
    follow = args["local_follow"]
    seen = {os.path.realpath(source)}
    for folder, folders, names in os.walk(source, followlinks=follow):
        if follow:
            folders[:] = [name for name in folders if os.path.realpath(os.path.join(folder, name)) not in seen]
            seen.update(os.path.realpath(os.path.join(folder, name)) for name in folders)
        for name in sorted(folders) + sorted(names):
            yield _file(args, Path(folder) / name, source, follow, clear)


def _file(args: Mapping[str, Any], path: Path, source: Path, follow: bool, clear: Clear) -> _File:
    name = str(path.relative_to(source))
    if path.is_symlink() and not follow:
        return _File(path, {"name": name, "kind": "link", "link": os.readlink(path)})
    if path.is_dir():
        return _File(path, {"name": name, "kind": "directory"})
    mode = {"mode": format(path.stat().st_mode & 0o7777, "04o")} if args["mode"] == "preserve" else {}
    content = clear(path)
    checksum = sha1_of(path) if content is None else hashlib.sha1(content, usedforsecurity=False).hexdigest()
    size = path.stat().st_size if content is None else len(content)
    return _File(path, {"name": name, "kind": "file", "size": size, "checksum": checksum, **mode}, content)


def _pieces(files: list[_File]) -> Iterator[list[_File]]:
    piece: list[_File] = []
    size = 0
    for file in files:
        if piece and (size + file.entry["size"] > PIECE or len(piece) >= NAMES):
            yield piece
            piece, size = [], 0
        piece.append(file)
        size += file.entry["size"]
    if piece:
        yield piece


class _Content(io.RawIOBase):
    """The files of one piece, read one after the other: no more of them is in memory than is asked for."""

    def __init__(self, files: list[_File]) -> None:
        self._files = iter(files)
        self._open: BinaryIO | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while self._open is not None or self._next():
            assert self._open is not None
            data = self._open.read(len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)
            self._open.close()
            self._open = None
        return 0

    def _next(self) -> bool:
        file = next(self._files, None)
        if file is not None:
            self._open = io.BytesIO(file.clear) if file.clear is not None else file.path.open("rb")
        return file is not None
