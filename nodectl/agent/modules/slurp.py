"""Fetch a small file's bytes."""

from __future__ import annotations

import base64

from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

# base64 makes four bytes of three, and a frame holds 64 MiB with everything else in it.
LIMIT = 32 * 1024 * 1024
CHUNK = 64 * 1024

SPEC = Spec(
    summary="Bring the bytes of a file from the node, as base64",
    params={"src": Param("path", required=True, aliases=("path",), help="the file on the node")},
    returns={"content": "the bytes in base64", "encoding": "base64", "source": "the path"},
    example="- slurp: {src: /etc/nccl.conf}\n  register: conf\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    found = system.stat(args["src"], follow=True)
    if found is None:
        raise Failed(f"file not found: {args['src']}")
    if found.st_size > LIMIT:
        raise Failed(f"{args['src']} has {found.st_size} bytes, slurp takes at most {LIMIT}: use fetch")
    data = bytearray()
    with open(args["src"], "rb") as file:  # files of /proc say size 0, and give no memory for one large read
        for piece in iter(lambda: file.read(CHUNK), b""):
            data += piece
            if len(data) > LIMIT:
                raise Failed(f"{args['src']} has more than {LIMIT} bytes: use fetch")
    return Outcome(values={"content": base64.b64encode(data).decode("ascii"), "encoding": "base64", "source": args["src"]})
