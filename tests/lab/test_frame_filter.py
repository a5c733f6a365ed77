"""The programs that lose frames, run by a small interpreter of their instructions: right frames are lost, right ones spared."""

from __future__ import annotations

import struct

import pytest

from nodectl.lab import frame_filter
from nodectl.lab.frame_filter import DROP, PASS

CONTROLLER, STORE, N1, N2 = "10.77.1.1", "10.77.1.2", "10.77.1.11", "10.77.1.12"
ARP = 0x0806


def frame(source: str, destination: str, length: int = 100, kind: int = 0x0800) -> bytes:
    header = bytes(12) + struct.pack("!H", kind) + bytes(12)
    addresses = b"".join(bytes(map(int, address.split("."))) for address in (source, destination))
    return (header + addresses).ljust(length + 14, b"\0")


def run(text: str, data: bytes, random: int = 0) -> int:
    """What the kernel does with a classic BPF program; raises IndexError where a jump leads out of it."""
    count, *lines = text.split(",")
    program = [tuple(map(int, line.split())) for line in lines]
    assert int(count) == len(program)
    held, at = 0, 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        if code == 0x20:
            held = random if operand == 0xFFFFF038 else struct.unpack_from("!I", data, operand)[0]
        elif code == 0x28:
            held = struct.unpack_from("!H", data, operand)[0]
        elif code == 0x80:
            held = len(data)
        elif code in (0x15, 0x25):
            at += if_true if (held == operand if code == 0x15 else held > operand) else if_false
        else:
            assert code == 0x06
            return operand


@pytest.mark.parametrize(("percent", "random", "verdict"), [
    (10, 0, DROP), (10, 429496729, DROP), (10, 429496730, PASS), (10, 2**32 - 1, PASS), (1, 42949672, DROP), (1, 42949673, PASS), (100, 2**32 - 1, DROP), (50, 2**31 - 1, DROP), (50, 2**31 + 1, PASS),
])
def test_a_share_of_frames_is_lost(percent: int, random: int, verdict: int) -> None:
    assert run(frame_filter.lose_share(percent), frame(N1, N2), random) == verdict


@pytest.mark.parametrize(("source", "destination", "length", "kind", "verdict"), [
    (N1, N2, 1301, 0x0800, DROP), (N1, N2, 1300, 0x0800, PASS), (N2, N1, 65000, 0x0800, DROP), (N1, CONTROLLER, 1500, 0x0800, PASS), (CONTROLLER, N1, 1500, 0x0800, PASS),
    (STORE, N1, 1500, 0x0800, PASS), (N1, N2, 1500, ARP, PASS), (N1, N2, 60, 0x0800, PASS), (N1, N2, 1500, 0x86DD, PASS),
])
def test_large_frames_are_lost_between_peers(source: str, destination: str, length: int, kind: int, verdict: int) -> None:
    assert run(frame_filter.lose_large(1300, [CONTROLLER, STORE]), frame(source, destination, length, kind)) == verdict


@pytest.mark.parametrize(("source", "destination", "kind", "verdict"), [
    (N1, N2, 0x0800, DROP), (N2, N1, 0x0800, DROP), (N1, CONTROLLER, 0x0800, PASS), (CONTROLLER, N1, 0x0800, PASS), (N1, STORE, 0x0800, PASS), (STORE, N1, 0x0800, PASS), (N1, N2, ARP, PASS),
])
def test_all_is_lost_between_peers(source: str, destination: str, kind: int, verdict: int) -> None:
    assert run(frame_filter.lose_all([CONTROLLER, STORE]), frame(source, destination, kind=kind)) == verdict


def test_without_spared_addresses_nobody_is_spared() -> None:
    assert run(frame_filter.lose_all([]), frame(CONTROLLER, N1)) == DROP
    assert run(frame_filter.lose_all([]), frame(CONTROLLER, N1, kind=ARP)) == PASS
