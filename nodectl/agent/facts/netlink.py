"""The kernel's table of addresses, asked without any program."""

from __future__ import annotations

import socket
import struct
from typing import Dict, List, NamedTuple, Tuple

RTM_GETADDR = 22
RTM_NEWADDR = 20
NLMSG_ERROR = 2
NLMSG_DONE = 3
REQUEST_DUMP = 0x301
IFA_ADDRESS, IFA_LOCAL, IFA_BROADCAST = 1, 2, 4
_HEAD = struct.Struct("=IHHII")
_ADDRESS = struct.Struct("=BBBBi")
_ATTRIBUTE = struct.Struct("=HH")
SCOPES = {0: "global", 200: "site", 253: "link", 254: "host"}


class Address(NamedTuple):
    """One address of one interface. ``family`` is 4 or 6; ``broadcast`` is "" where there is none."""

    interface: str
    family: int
    address: str
    prefix: int
    broadcast: str = ""
    scope: str = "global"
    secondary: bool = False


def addresses(timeout: float = 5.0) -> List[Address]:
    """All addresses of this network namespace, in the kernel's order. Raises OSError."""
    names = dict(socket.if_nameindex())
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as line:
        line.settimeout(timeout)
        body = _ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        line.send(_HEAD.pack(_HEAD.size + len(body), RTM_GETADDR, REQUEST_DUMP, 1, 0) + body)
        found: List[Address] = []
        while True:
            messages, over = cut(line.recv(1 << 18))
            found += [parsed for parsed in (parse(message, names) for message in messages) if parsed.address]
            if over:
                return found


def cut(data: bytes) -> Tuple[List[bytes], bool]:
    """(bodies of address messages, whether the dump is over). Raises OSError for the kernel's error message."""
    messages: List[bytes] = []
    while len(data) >= _HEAD.size:
        length, kind, _, _, _ = _HEAD.unpack_from(data)
        if kind == NLMSG_DONE:
            return messages, True
        if kind == NLMSG_ERROR or length < _HEAD.size:
            raise OSError("the kernel refused to list its addresses")
        if kind == RTM_NEWADDR:
            messages.append(data[_HEAD.size : length])
        data = data[(length + 3) & ~3 :]
    return messages, False


def parse(message: bytes, names: Dict[int, str]) -> Address:
    """One message; an Address with empty text for a family that is neither 4 nor 6."""
    family, prefix, flags, scope, index = _ADDRESS.unpack_from(message)
    attributes: Dict[int, bytes] = {}
    rest = message[_ADDRESS.size :]
    while len(rest) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(rest)
        if length < _ATTRIBUTE.size:
            break
        attributes[kind] = rest[_ATTRIBUTE.size : length]
        rest = rest[(length + 3) & ~3 :]
    if family not in (socket.AF_INET, socket.AF_INET6):
        return Address("", 0, "", 0)
    # On a point-to-point link IFA_ADDRESS is the peer; IFA_LOCAL is ours.
    raw = attributes.get(IFA_LOCAL, attributes.get(IFA_ADDRESS, b""))
    wide = attributes.get(IFA_BROADCAST)
    return Address(
        names.get(index, str(index)), 4 if family == socket.AF_INET else 6, socket.inet_ntop(family, raw), prefix,
        socket.inet_ntop(family, wide) if wide else "", SCOPES.get(scope, str(scope)), bool(flags & 1),
    )
