"""The configuration space of a PCI device, decoded: bytes in, settings out. Pure.

sysfs gives the whole 4 KiB to root and the first 64 bytes to everybody else; the offsets are those of the PCI Express specification.
A device that fell off the bus answers every read with ones.
"""

from __future__ import annotations

import struct
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

STATUS, CAPABILITIES, HEADER_TYPE = 0x06, 0x34, 0x0E
HAS_CAPABILITIES, BRIDGE = 0x10, 0x01
PCI_EXPRESS = 0x10
DEVICE_CONTROL, LINK_CAPABILITIES, LINK_STATUS = 0x08, 0x0C, 0x12
RELAXED_ORDERING = 0x10
EXTENDED, ACS = 0x100, 0x000D
ACS_CONTROL = 0x06
# Bits of the ACS control word, in its order. Redirects send peer-to-peer traffic up to the root complex; source validation alone does not.
ACS_BITS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
REDIRECTS = frozenset(["ReqRedir", "CmpltRedir", "EgressCtrl"])
# One capability takes at least 4 bytes, so no chain is longer than this: a broken one must not loop.
MOST = 1024


class Config(NamedTuple):
    """``whole`` False: only the first 64 bytes could be read, and what lies beyond is None. Sizes in bytes; ``acs`` lists the bits that are on."""

    alive: bool
    whole: bool
    bridge: bool
    max_read_request: Optional[int] = None
    relaxed_ordering: Optional[bool] = None
    acs: Optional[Tuple[str, ...]] = None


def decode(data: bytes) -> Config:
    """What a device's config file says. Too little of it counts as a device that does not answer."""
    if len(data) < 64 or data[:4] == b"\xff" * 4:
        return Config(False, False, False)
    bridge = bool(data[HEADER_TYPE] & 0x7F == BRIDGE)
    if len(data) < 256:
        return Config(True, False, bridge)
    express = dict(_capabilities(data)).get(PCI_EXPRESS)
    control = _word(data, express + DEVICE_CONTROL) if express else None
    acs = dict(_extended(data)).get(ACS)
    return Config(
        True, True, bridge,
        None if control is None else 128 << (control >> 12 & 7),
        None if control is None else bool(control & RELAXED_ORDERING),
        None if acs is None else _acs(_word(data, acs + ACS_CONTROL) or 0),
    )


def redirecting(config: Config) -> List[str]:
    """The ACS bits that send traffic between two devices up to the root complex."""
    return [name for name in config.acs or () if name in REDIRECTS]


def _acs(control: int) -> Tuple[str, ...]:
    return tuple(name for bit, name in enumerate(ACS_BITS) if control >> bit & 1)


def _word(data: bytes, place: int) -> Optional[int]:
    return int(struct.unpack_from("<H", data, place)[0]) if place + 2 <= len(data) else None


def _capabilities(data: bytes) -> Iterator[Tuple[int, int]]:
    if not (_word(data, STATUS) or 0) & HAS_CAPABILITIES:
        return
    seen: Dict[int, bool] = {}
    place = data[CAPABILITIES] & 0xFC
    while place >= 0x40 and place not in seen and place + 2 <= len(data):
        seen[place] = True
        yield data[place], place
        place = data[place + 1] & 0xFC


def _extended(data: bytes) -> Iterator[Tuple[int, int]]:
    place = EXTENDED
    for _ in range(MOST):
        if place < EXTENDED or place + 4 > len(data):
            return
        (head,) = struct.unpack_from("<I", data, place)
        if head in (0, 0xFFFFFFFF):
            return
        yield head & 0xFFFF, place
        place = head >> 20 & 0xFFC
