"""A script of the controller, run on the node."""

from __future__ import annotations

import io
import os
import shlex
import shutil

from nodectl.agent import commandline
from nodectl.agent.contract import Args
from nodectl.agent.own_folder import own_folder
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Run a script of the controller on the node",
    params={
        "cmd": Param(required=True, help="the script (searched in files/) and its arguments"),
        "chdir": Param("path", help="run in this folder"),
        "creates": Param("path", help="a path; when it is there, do not run"),
        "removes": Param("path", help="a path; when it is not there, do not run"),
        "executable": Param(help="what to run it by, perhaps with options; without it, its own first line says so"),
        "decrypt": Param("bool", default=True, help="run the clear text of a vault-encrypted script"),
        "content_blob": Param(help="set by nodectl: name of the bytes that came with the step"),
        "name": Param(help="set by nodectl: name of the script"),
    },
    free_form="cmd",
    returns={name: text for name, text in commandline.RETURNS.items() if name not in ("cmd", "start", "end", "delta")},
    example="- script: files/burn-in.sh --hours 2\n  args:\n    creates: /var/lib/burn-in.done\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    """The script lies in a folder that only we can read, and only while it runs."""
    wish = {**dict.fromkeys(commandline.PARAMS), **args, "strip_empty_ends": False}
    if check:
        return _told(commandline.run(system, wish, [], args["cmd"], check))
    with own_folder() as folder:
        place = os.path.join(folder, os.path.basename(args["name"]))
        with open(place, "wb") as file:
            shutil.copyfileobj(system.blob(args["content_blob"]), file)
        os.chmod(place, 0o700)
        line = " ".join(filter(None, [args["executable"], shlex.quote(place), _arguments(args["cmd"])]))
        return _told(commandline.run(system, wish, ["/bin/sh", "-c", line], args["cmd"], check))


def _told(outcome: Outcome) -> Outcome:
    """A script that did not run is a skipped task, as in Ansible."""
    outcome.skipped = not outcome.changed
    return outcome


def _arguments(text: str) -> str:
    """What stands behind the script's name, as it was written: a shell reads it."""
    stream = io.StringIO(text.strip())
    words = shlex.shlex(stream, posix=True)
    words.whitespace_split, words.commenters = True, ""
    words.get_token()
    return stream.read()
