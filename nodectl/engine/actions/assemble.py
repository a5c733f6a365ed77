"""assemble: with remote_src: false the fragments are the controller's, and what they make is sent like a copy."""

from __future__ import annotations

import hashlib
from pathlib import Path

from nodectl.agent.contract import Failed
from nodectl.agent.modules.assemble import SPEC, fragments, joined
from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.engine.actions.copy import decrypted, send_bytes
from nodectl.engine.actions.files import find_source
from nodectl.wire.outcome import Outcome

__all__ = ["SPEC", "run"]


def run(context: Context, args: Args) -> Outcome:
    if args["remote_src"]:
        return context.node.step("assemble", {name: args[name] for name in context.given})
    source = find_source(args["src"], context.task, context.playbook_dir, "files")
    if not source.is_dir():
        raise ActionFailed(f"Source ({source}) is not a directory")
    try:
        paths = [Path(path) for path in fragments(str(source), args["regexp"], args["ignore_hidden"])]
        parts = [(decrypted(context, path) if args["decrypt"] else None) or path.read_bytes() for path in paths]
    except Failed as failed:
        raise ActionFailed(failed.msg) from None
    except OSError as error:
        raise ActionFailed(f"{source}: {error.strerror}") from None
    data = joined(parts, args["delimiter"])
    outcome = send_bytes(context, args, data, "")
    outcome.values["md5sum"] = hashlib.md5(data, usedforsecurity=False).hexdigest()
    return outcome
