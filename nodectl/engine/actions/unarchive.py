"""unarchive: an archive of the controller travels with the step, unless what it makes is there already."""

from __future__ import annotations

import io
from typing import BinaryIO

from nodectl.agent.modules.unarchive import SPEC
from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.engine.actions.copy import decrypted
from nodectl.engine.actions.files import find_source
from nodectl.wire.outcome import Outcome

__all__ = ["SPEC", "run"]


def run(context: Context, args: Args) -> Outcome:
    remote = args["remote_src"] if args["copy"] is None else not args["copy"]
    sent = {name: args[name] for name in context.given if args[name] is not None and name not in ("copy", "remote_src", "decrypt")}
    if remote:
        return context.node.step("unarchive", {**sent, "remote_src": True})
    if args["creates"] and context.node.step("stat", {"path": args["creates"], "get_checksum": False}).values.get("stat", {}).get("exists"):
        return Outcome(skipped=True, msg=f"skipped, since {args['creates']} exists")
    if "://" in args["src"]:
        raise ActionFailed("src may be a URL only with remote_src: true: the node fetches it")
    source = find_source(args["src"], context.task, context.playbook_dir, "files")
    try:
        clear = decrypted(context, source) if args["decrypt"] else None
        content: BinaryIO = io.BytesIO(clear) if clear is not None else source.open("rb")
    except OSError as error:
        raise ActionFailed(f"{source}: {error.strerror}") from None
    with content:
        return context.node.step("unarchive", {**sent, "content_blob": "content"}, {"content": content})
