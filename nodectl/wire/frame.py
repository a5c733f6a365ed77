"""Length-prefixed frames: one JSON header and, for bulk data, raw bytes after it.

Layout, big endian: 4 bytes header length, 4 bytes payload length, header (UTF-8 JSON object with key "t"), payload.

Controller to agent                                     Agent to controller
    {"t": "step", "step": Step.to_json()}                   {"t": "hello", version, pid, user, uid, python, hostname}
    {"t": "cancel", "id": step id}                          {"t": "outcome", "id": step id, "outcome": Outcome.to_json()}
    {"t": "blob", "id": text, "last": bool} + payload       {"t": "progress", "id": step id, "text": line}
    {"t": "sources"} + zlib-compressed JSON, name to text   {"t": "beat"}   {"t": "bye"}
    {"t": "bye"}
                                                            {"t": "crash", "text": why, "traceback": lines}  (then it leaves with 70)

Blobs come before the step that names them; the step uses them up. Sources come before the first step that imports them.
Every step gets exactly one outcome, a cancelled one too.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Dict, Iterator, NamedTuple, Tuple

# Said in the hello; controller and agent come from one source tree, so this only tells a damaged bundle.
PROTOCOL = "1"
HEAD = struct.Struct(">II")
# A header holds one outcome. Output is capped at 1 MiB per stream by the agent, JSON escapes can make that six times
# longer, two streams and a diff: 64 MiB refuses garbage without refusing work.
MAX_HEADER = 64 * 1024 * 1024
# Bulk data is cut into pieces of 256 KiB: larger than an SSH channel window of 2 MiB divided by eight, so that a beat
# or a cancel never waits behind more than one piece.
MAX_PAYLOAD = 256 * 1024


class BadFrame(ValueError):
    """The bytes are not a frame; the stream cannot be trusted any more."""


class Frame(NamedTuple):
    head: Dict[str, Any]
    payload: bytes = b""

    @property
    def type(self) -> str:
        return str(self.head["t"])


def encode(head: Dict[str, Any], payload: bytes = b"") -> bytes:
    """One frame as bytes. Raises BadFrame for what the peer must refuse: no type, or past the limits."""
    if not isinstance(head.get("t"), str):
        raise BadFrame("a frame needs a type: header key 't'")
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=True).encode("ascii")
    if len(text) > MAX_HEADER or len(payload) > MAX_PAYLOAD:
        raise BadFrame(f"frame too large: header {len(text)}, payload {len(payload)} bytes")
    return HEAD.pack(len(text), len(payload)) + text + payload


class Decoder:
    """Cuts a byte stream into frames; feed it whatever arrived."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames complete so far, one by one. Raises BadFrame at the first byte that cannot belong to one.

        The frames before that byte are given out first, however the stream was cut: an outcome that arrived counts,
        also where garbage follows it in the same read. What is not taken now comes with the next ``feed``.
        """
        self._buffer += data
        return self._frames()

    def _frames(self) -> Iterator[Frame]:
        while True:
            frame, used = self._cut()
            if not used:
                return
            del self._buffer[:used]
            yield frame

    def _cut(self) -> Tuple[Frame, int]:
        if len(self._buffer) < HEAD.size:
            return Frame({}), 0
        header, payload = HEAD.unpack_from(self._buffer)
        if header > MAX_HEADER or payload > MAX_PAYLOAD or header < 2:
            raise BadFrame(f"not a frame: lengths {header} and {payload}")
        end = HEAD.size + header + payload
        if len(self._buffer) < end:
            return Frame({}), 0
        return Frame(_head(bytes(self._buffer[HEAD.size : HEAD.size + header])), bytes(self._buffer[HEAD.size + header : end])), end


def _head(raw: bytes) -> Dict[str, Any]:
    try:
        head = json.loads(raw.decode("utf-8"))
    except ValueError as error:
        raise BadFrame(f"header is not JSON: {error}") from None
    except RecursionError:
        raise BadFrame("header is not JSON of ours: nested too deep") from None
    if not isinstance(head, dict) or not isinstance(head.get("t"), str):
        raise BadFrame("header is not an object with a type")
    return head
