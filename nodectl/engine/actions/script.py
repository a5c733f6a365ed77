"""script: the controller's half finds the script and sends it; it is gone from the node when it has ended."""

from __future__ import annotations

import io
import shlex

from nodectl.agent.modules.script import SPEC
from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.engine.actions.copy import decrypted
from nodectl.engine.actions.files import find_source
from nodectl.wire.outcome import Outcome

__all__ = ["SPEC", "run"]


def run(context: Context, args: Args) -> Outcome:
    if args["chdir"] and not args["chdir"].startswith("/"):
        raise ActionFailed(f"chdir {args['chdir']} must be an absolute path")
    try:
        words = shlex.split(args["cmd"])
        source = find_source(words[0], context.task, context.playbook_dir, "files")
        data = (decrypted(context, source) if args["decrypt"] else None) or source.read_bytes()
    except (ValueError, IndexError) as error:
        raise ActionFailed(f"cannot split the command into words: {error}: {args['cmd']}") from None
    except OSError as error:
        raise ActionFailed(f"{args['cmd']}: {error.strerror}") from None
    sent = {name: args[name] for name in context.given}
    return context.node.step("script", {**sent, "name": words[0], "content_blob": "content"}, {"content": io.BytesIO(data)})
