"""copy: the controller's half finds the source (a file, a folder, or given text) and sends its bytes; the node compares first."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from nodectl.engine.actions import copy_folder
from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.engine.actions.files import find_source, sha1_of
from nodectl.lang.vault import MAGIC, VaultError
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

# Up to here the bytes are sent unasked: asking first costs a round trip, sending this much costs less.
SEND_UNASKED = 256 * 1024

SPEC = Spec(
    summary="Copy a file, a folder or a text to the node",
    params={
        "src": Param("path", "File or folder on the controller (searched in files/), on the node with remote_src; a folder ending in / gives its contents."),
        "content": Param("raw", "The text of the file, in place of src."),
        "dest": Param("path", "Where on the node; a folder, or a name ending in /, takes the file under its own name.", required=True),
        "mode": Param("mode", "Permissions, or preserve."),
        "owner": Param("str", "Owner."),
        "group": Param("str", "Group."),
        "directory_mode": Param("mode", "Permissions of folders that are made on the way."),
        "backup": Param("bool", "Keep the old file under a name with its time.", default=False),
        "force": Param("bool", "Replace a file that differs; false only makes missing ones.", default=True),
        "remote_src": Param("bool", "src is on the node.", default=False),
        "follow": Param("bool", "Write through a link at dest.", default=False),
        "local_follow": Param("bool", "Copy what links of the controller's folder point to; false: the links themselves.", default=True),
        "validate": Param("str", "A command that must accept the new file before it takes the old one's place; %s is its name."),
        "checksum": Param("str", "SHA-1 that the source must have."),
        "decrypt": Param("bool", "Put the clear text of a vault-encrypted src on the node.", default=True),
    },
    mutually_exclusive=(("src", "content"),),
    required_one_of=(("src", "content"),),
    returns={"dest": "the file on the node", "checksum": "SHA-1 of its content"},
    example="- copy:\n    src: nccl.conf\n    dest: /etc/nccl.conf\n    mode: \"0644\"\n",
)
# What goes to the node as it was given.
PASSED_ON = ("mode", "owner", "group", "directory_mode", "backup", "force", "follow", "validate")


def run(context: Context, args: Args) -> Outcome:
    if args["remote_src"]:
        return context.node.step("copy", {name: args[name] for name in context.given})
    if args["content"] is not None:
        return send_bytes(context, args, _as_text(args["content"]).encode(), "")
    source = find_source(args["src"], context.task, context.playbook_dir, "files")
    if source.is_dir():
        return _folder(context, args, source)
    return _file(context, args, source)


def send_bytes(context: Context, args: Mapping[str, Any], data: bytes, name: str) -> Outcome:
    """One file's content to ``dest``. ``name`` is its own name, for a dest that is a folder."""
    return _send(context, args, hashlib.sha1(data, usedforsecurity=False).hexdigest(), name, io.BytesIO(data))


def unseen(outcome: Outcome) -> Outcome:
    """The outcome without its diff: what was encrypted is not shown in clear."""
    return replace(outcome, diff=[])


def _file(context: Context, args: Args, source: Path) -> Outcome:
    try:
        clear = decrypted(context, source) if args["decrypt"] else None
        if clear is not None:
            return unseen(send_bytes(context, args, clear, source.name))
        checksum = sha1_of(source)
        wanted = args["checksum"]
        if wanted and wanted.lower() != checksum:
            raise ActionFailed(f"{source} has the checksum {checksum}, not {wanted}")
        if args["mode"] == "preserve":
            args = {**args, "mode": format(source.stat().st_mode & 0o7777, "04o")}
        if source.stat().st_size > SEND_UNASKED:
            outcome = _send(context, args, checksum, source.name, None)
            if not outcome.values.get("needs_content"):
                return outcome
        with source.open("rb") as data:
            return _send(context, args, checksum, source.name, data)
    except OSError as error:
        raise ActionFailed(f"{source}: {error.strerror}") from None


def decrypted(context: Context, source: Path) -> bytes | None:
    """What a file holds that ansible-vault encrypted; None for any other. Raises OSError."""
    with source.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC.encode():
            return None
    try:
        return context.vault.open(source.read_bytes().decode("utf-8", "replace"))
    except VaultError as error:
        raise ActionFailed(f"{source}: {error}{f' ({error.hint})' if error.hint else ''}") from None


def _send(context: Context, args: Mapping[str, Any], checksum: str, name: str, data: BinaryIO | None) -> Outcome:
    """Without ``data`` the node only compares, and says ``needs_content`` where the file differs."""
    sent = {key: args[key] for key in PASSED_ON if key in context.given and args[key] is not None}
    sent.update(dest=args["dest"], checksum=checksum)
    if name:
        sent["src"] = name
    if data is None:
        return context.node.step("copy", sent)
    return context.node.step("copy", {**sent, "content_blob": "content"}, {"content": data})


def _folder(context: Context, args: Args, source: Path) -> Outcome:
    top = args["dest"].rstrip("/") + ("" if args["src"].endswith("/") else f"/{source.name}")

    def clear(path: Path) -> bytes | None:
        return decrypted(context, path) if args["decrypt"] else None

    try:
        return copy_folder.run(context, args, source, top, clear, lambda path, dest: _file(context, {**args, "dest": dest, "checksum": None}, path))
    except OSError as error:
        raise ActionFailed(f"{error.filename or source}: {error.strerror}") from None


def _as_text(content: Any) -> str:
    """A mapping or list becomes JSON, as in Ansible."""
    return json.dumps(content) if isinstance(content, (dict, list)) else str(content)
