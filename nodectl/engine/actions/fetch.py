"""fetch: bring one small file from the node to the controller."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.engine.actions.files import sha1_of
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Bring a file from the node to the controller",
    params={
        "src": Param("path", "The file on the node.", required=True),
        "dest": Param("path", "Folder on the controller: the file lands at DEST/HOST/SRC; with flat, at DEST itself.", required=True),
        "flat": Param("bool", "Do not add the host's name and the path.", default=False),
        "fail_on_missing": Param("bool", "A missing file is a failure.", default=True),
        "validate_checksum": Param("bool", "Taken for Ansible's sake: the frames carry the bytes whole or not at all.", default=True),
    },
    returns={"dest": "the file on the controller", "checksum": "its SHA-1", "md5sum": "its MD5", "remote_checksum": "SHA-1 on the node"},
    example="- fetch:\n    src: /etc/nccl.conf\n    dest: collected/\n",
)


def run(context: Context, args: Args) -> Outcome:
    outcome = context.node.step("slurp", {"src": args["src"]})
    if outcome.failed:
        if args["fail_on_missing"]:
            return outcome
        return Outcome(msg=f"the file is not there, and fail_on_missing is off: {outcome.msg}")
    data = base64.b64decode(outcome.values["content"])
    place = _place(context, args)
    checksum = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    changed = not place.is_file() or sha1_of(place) != checksum
    if changed and not context.check:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        except OSError as error:
            raise ActionFailed(f"{place}: {error.strerror}") from None
    md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
    values = {"dest": str(place), "checksum": checksum, "md5sum": md5, **({"remote_checksum": checksum, "remote_md5sum": None} if changed else {})}
    return Outcome(changed=changed, values=values)


def _place(context: Context, args: Args) -> Path:
    dest = context.playbook_dir / str(args["dest"])
    if args["flat"]:
        return dest / Path(args["src"]).name if args["dest"].endswith("/") else dest
    place = dest / context.host / str(args["src"]).lstrip("/")
    if dest.resolve() not in place.resolve().parents:
        raise ActionFailed(f"{args['src']} would land outside {dest}")
    return place
