"""Which frames a broken link loses, as classic BPF programs for `tc filter … bpf da bytecode`. Pure.

netem is not in every kernel (in the one of this lab's first machine it is not); the bpf classifier is, and it can draw random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address

# Verdicts of a classifier with direct action.
PASS, DROP = 0, 2
# Instructions: load from the frame or about it, compare, return. Offsets above _ABOUT are no bytes of the frame.
_LOAD_WORD, _LOAD_HALF, _LENGTH, _EQUAL, _GREATER, _RETURN = 0x20, 0x28, 0x80, 0x15, 0x25, 0x06
_ABOUT_RANDOM = 0xFFFFF000 + 56
_ETHERTYPE, _IPV4, _SOURCE, _DESTINATION = 12, 0x0800, 26, 30
_HEADER = 14  # bytes of an Ethernet header: an MTU does not count them
_WORD = 1 << 32

Instruction = tuple[int, int, int, int]


def lose_share(percent: int) -> str:
    """Each frame is lost with this probability, whatever happened to the one before."""
    threshold = min(_WORD - 1, _WORD * percent // 100)
    return _text([(_LOAD_WORD, 0, 0, _ABOUT_RANDOM), (_GREATER, 1, 0, threshold), (_RETURN, 0, 0, DROP), (_RETURN, 0, 0, PASS)])


def lose_large(mtu: int, spared: Sequence[str]) -> str:
    """Packets above ``mtu`` bytes are lost without a word, except those from and to the ``spared`` addresses."""
    return _text(_spare(spared, [(_LENGTH, 0, 0, 0), (_GREATER, 0, 1, mtu + _HEADER), (_RETURN, 0, 0, DROP), (_RETURN, 0, 0, PASS)]))


def lose_all(spared: Sequence[str]) -> str:
    """All IPv4 is lost, except from and to the ``spared`` addresses."""
    return _text(_spare(spared, [(_RETURN, 0, 0, DROP)]))


def _spare(spared: Sequence[str], rest: list[Instruction]) -> list[Instruction]:
    """``rest`` for IPv4 between others than ``spared``; all else passes. Jumps count from the next instruction."""
    tests: list[Instruction] = []
    for place in (_SOURCE, _DESTINATION):
        tests.append((_LOAD_WORD, 0, 0, place))
        tests += [(_EQUAL, -1, 0, int(IPv4Address(address))) for address in spared]
    body: list[Instruction] = [(_LOAD_HALF, 0, 0, _ETHERTYPE), (_EQUAL, 0, -1, _IPV4), *tests, *rest, (_RETURN, 0, 0, PASS)]
    end = len(body) - 1
    return [tuple(end - at - 1 if jump == -1 else jump for jump in line) for at, line in enumerate(body)]  # type: ignore[misc]


def _text(program: Sequence[Instruction]) -> str:
    """As `tc` takes it: the count, then code, jump if true, jump if false and operand of each."""
    return ",".join([str(len(program)), *(" ".join(map(str, line)) for line in program)])
