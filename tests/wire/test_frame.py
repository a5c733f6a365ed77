"""Frames: pinned bytes, any cut of the stream, garbage, limits."""

from __future__ import annotations

import ast
import itertools
import json
import re
import struct
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nodectl.wire.frame as frame_module
from nodectl.wire.frame import HEAD, MAX_HEADER, MAX_PAYLOAD, PROTOCOL, BadFrame, Decoder, Frame, encode

ROOT = Path(frame_module.__file__).parents[1]
PINNED: list[dict[str, str]] = tomllib.loads((Path(__file__).parent / "frames.toml").read_text())["frame"]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=6,
)
HEADS = st.dictionaries(st.text(max_size=4), JSON, max_size=3).flatmap(lambda rest: st.text(max_size=6).map(lambda kind: {**rest, "t": kind}))
FRAMES = st.lists(st.builds(Frame, HEADS, st.binary(max_size=20)), max_size=5)
FEW = settings(deadline=None, max_examples=30)


def whole(data: bytes) -> list[Frame]:
    return list(Decoder().feed(data))


def in_pieces(data: bytes, cuts: list[int]) -> tuple[list[Frame], bool]:
    """The frames of ``data`` read in pieces that end at ``cuts``, and whether the stream was found damaged."""
    decoder, found = Decoder(), []
    edges = [0, *sorted({cut for cut in cuts if cut < len(data)}), len(data)]
    try:
        for begin, end in itertools.pairwise(edges):
            for frame in decoder.feed(data[begin:end]):
                found.append(frame)
    except BadFrame:
        return found, True
    return found, False


# -- the bytes on the line


@pytest.mark.parametrize("case", PINNED, ids=lambda case: str(case["name"]))
def test_bytes_are_pinned(case: dict[str, str]) -> None:
    head, payload = json.loads(case["head"]), bytes.fromhex(case["payload"])
    data = bytes.fromhex(case["lengths"]) + case["header"].encode("ascii") + payload
    assert encode(head, payload) == data
    assert whole(data) == [Frame(head, payload)]


def test_the_protocol_has_the_number_whose_bytes_are_pinned() -> None:
    """Another layout is another protocol: change both this number and frames.toml."""
    assert (PROTOCOL, HEAD.format, HEAD.size) == ("1", ">II", 8)
    assert next(json.loads(case["head"]) for case in PINNED if '"hello"' in case["head"])["version"] == PROTOCOL


def sent_types() -> set[str]:
    """Every literal {"t": "..."} in the sources of both ends."""
    found = set()
    for path in [*(ROOT / "agent").glob("*.py"), *(ROOT / "transport").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Dict):
                keys = {key.value: value for key, value in zip(node.keys, node.values, strict=True) if isinstance(key, ast.Constant)}
                kind = keys.get("t")
                if isinstance(kind, ast.Constant):
                    found.add(str(kind.value))
    return found


def test_every_type_that_is_sent_is_pinned_and_told() -> None:
    pinned = {json.loads(case["head"])["t"] for case in PINNED}
    told = set(re.findall(r'\{"t": "(\w+)"', str(frame_module.__doc__)))
    assert sent_types() == pinned == told


# -- any cut


@FEW
@given(FRAMES, st.lists(st.integers(0, 400), max_size=12))
def test_any_split_gives_the_same_frames(frames: list[Frame], cuts: list[int]) -> None:
    data = b"".join(encode(head, payload) for head, payload in frames)
    assert in_pieces(data, cuts) == (frames, False)


@FEW
@given(FRAMES, st.lists(st.integers(0, 400), max_size=12))
def test_the_frames_before_garbage_arrive_however_it_was_cut(frames: list[Frame], cuts: list[int]) -> None:
    """An outcome that was received counts, also where a crashing interpreter writes its last words right behind it."""
    data = b"".join(encode(head, payload) for head, payload in frames) + b"Fatal Python error: Segmentation fault\n"
    assert in_pieces(data, cuts) == (frames, True)


def test_a_frame_arrives_byte_by_byte() -> None:
    data = encode({"t": "blob", "id": "x", "last": True}, b"123")
    decoder = Decoder()
    arrived = [list(decoder.feed(data[index : index + 1])) for index in range(len(data))]
    assert [len(frames) for frames in arrived] == [0] * (len(data) - 1) + [1]
    assert arrived[-1][0].payload == b"123"


def test_frames_that_were_not_taken_come_with_the_next_bytes() -> None:
    """boot stops taking at a `bye`; whoever asks again must not have lost what was read."""
    decoder = Decoder()
    assert next(decoder.feed(encode({"t": "bye"}) + encode({"t": "beat"}))).type == "bye"
    assert [frame.type for frame in decoder.feed(b"")] == ["beat"]


# -- garbage


@FEW
@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_a_bad_frame(data: bytes) -> None:
    in_pieces(data, [7, 9])


@FEW
@given(FRAMES.filter(bool), st.data())
def test_a_flipped_byte_is_noticed_or_harmless(frames: list[Frame], data: st.DataObject) -> None:
    """Never another exception than BadFrame, never a frame without a type."""
    stream = bytearray(b"".join(encode(head, payload) for head, payload in frames))
    place = data.draw(st.integers(0, len(stream) - 1))
    stream[place] ^= data.draw(st.integers(1, 255))
    found, _ = in_pieces(bytes(stream), [])
    assert all(isinstance(frame.head["t"], str) for frame in found)


def raw(header: bytes, payload: bytes = b"") -> bytes:
    return struct.pack(">II", len(header), len(payload)) + header + payload


BAD = [
    (b"Traceback (most recent call last)", "lengths"),
    (struct.pack(">II", 0, 0), "lengths"),
    (struct.pack(">II", 1, 0), "lengths"),
    (struct.pack(">II", MAX_HEADER + 1, 0), "lengths"),
    (struct.pack(">II", 10, MAX_PAYLOAD + 1), "lengths"),
    (raw(b"{}"), "not an object with a type"),
    (raw(b"[1]"), "not an object with a type"),
    (raw(b"null"), "not an object with a type"),
    (raw(b'{"t": 1}'), "not an object with a type"),
    (raw(b'{"t": null}'), "not an object with a type"),
    (raw(b'{"t": "x"'), "not JSON"),
    (raw(b"\xff\xfe\xfd"), "not JSON"),
    (raw(b'{"t": "x", "n": ' + b"9" * 5000 + b"}"), "not JSON"),
    (raw(b'{"t": ' + b"[" * 100_000), "nested too deep"),
]


@pytest.mark.parametrize(("data", "words"), BAD, ids=[f"{words} {index}" for index, (_, words) in enumerate(BAD)])
def test_what_is_no_frame_is_refused_and_stays_refused(data: bytes, words: str) -> None:
    decoder = Decoder()
    for more in (data, b"", encode({"t": "beat"})):  # there is no way back into a damaged stream
        with pytest.raises(BadFrame, match=words):
            list(decoder.feed(more))


def test_a_length_beyond_the_limit_is_refused_before_its_bytes_are_awaited() -> None:
    """Eight bytes are enough to tell: nobody fills memory with 4 GiB first."""
    with pytest.raises(BadFrame, match="lengths 4294967295"):
        whole(b"\xff" * 8)


def test_the_longest_payload_fits() -> None:
    (frame,) = whole(encode({"t": "blob"}, b"x" * MAX_PAYLOAD))
    assert len(frame.payload) == MAX_PAYLOAD


def test_a_header_of_an_outcome_with_full_output_fits() -> None:
    """1 MiB of bytes that JSON writes as six characters each, on both streams: what the agent may keep, the line must carry."""
    worst = "\x00" * 2**20
    head = {"t": "outcome", "id": 1, "outcome": {"values": {"stdout": worst, "stderr": worst}}}
    data = encode(head)
    assert len(data) < MAX_HEADER
    assert whole(data) == [Frame(head)]


TOO_MUCH: list[tuple[dict[str, Any], bytes, str]] = [
    ({"t": "blob"}, b"x" * (MAX_PAYLOAD + 1), "payload 262145"),
    ({}, b"", "needs a type"),
    ({"t": 3}, b"", "needs a type"),
]


@pytest.mark.parametrize(("head", "payload", "words"), TOO_MUCH, ids=[words for _, _, words in TOO_MUCH])
def test_what_the_peer_must_refuse_is_not_sent(head: dict[str, Any], payload: bytes, words: str) -> None:
    with pytest.raises(BadFrame, match=words):
        encode(head, payload)


def test_a_header_past_the_limit_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_module, "MAX_HEADER", 20)
    encode({"t": "a", "x": "y"})
    with pytest.raises(BadFrame, match="header 21"):
        encode({"t": "a", "x": "yyyyy"})
