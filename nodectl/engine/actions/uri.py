"""uri: a file of the controller that is to be sent travels with the step."""

from __future__ import annotations

import io

from nodectl.agent.modules.uri import SPEC
from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.engine.actions.files import find_source
from nodectl.wire.outcome import Outcome

__all__ = ["SPEC", "run"]


def run(context: Context, args: Args) -> Outcome:
    sent = {name: args[name] for name in context.given if args[name] is not None}
    if not args["src"] or args["remote_src"]:
        return context.node.step("uri", sent)
    source = find_source(args["src"], context.task, context.playbook_dir, "files")
    try:
        data = source.read_bytes()
    except OSError as error:
        raise ActionFailed(f"{source}: {error.strerror}") from None
    del sent["src"]
    return context.node.step("uri", {**sent, "content_blob": "content"}, {"content": io.BytesIO(data)})
