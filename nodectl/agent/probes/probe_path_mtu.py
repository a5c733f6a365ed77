"""probe_path_mtu: do packets as large as the interface allows reach the peers and come back? Nothing on the way tells when they do not."""

from __future__ import annotations

import ipaddress
import os
import secrets
import select
import socket
import struct
import time
from typing import Any, Dict, Tuple

from nodectl.agent.contract import Args
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Ping each peer with a small packet and with one of the full MTU that must not be cut up on the way.",
    params={
        "peers": Param("list", "addresses of other nodes", default=[], elements="str"),
        "mtu": Param("int", "bytes of the largest packet, IP header and all", required=True),
        "timeout": Param("float", "seconds for each answer", default=1.0),
    },
    returns={
        "peers": "per peer: address, way (ping: there and back; udp: there, where this account may not ping), small, full (whether the answer came), "
        "error (why it could not be tried)",
    },
    example="- probe_path_mtu:\n    peers: [10.0.0.2]\n    mtu: 9000\n",
)
# Some links lose a packet now and then (ARP on the first one): three tries each.
TRIES = 3
_SMALL = 56
_ICMP, _HEADER = 8, {4: 20, 6: 40}
# <linux/in.h> and <linux/in6.h>; not in Python's socket module. PROBE sets "do not fragment" and believes no earlier note of a smaller path.
_IP_MTU_DISCOVER, _IPV6_MTU_DISCOVER, _PROBE = 10, 23, 3
# Where traceroute sends its datagrams, because nobody listens there.
_UNUSED, _SPAN = 33434, 90
_REQUEST, _REPLY = {4: 8, 6: 128}, {4: 0, 6: 129}


def act(system: System, args: Args, check: bool) -> Outcome:
    return Outcome(values={"peers": [_peer(peer, args["mtu"], args["timeout"]) for peer in args["peers"]]})


def _peer(peer: str, mtu: int, timeout: float) -> Dict[str, Any]:
    facts: Dict[str, Any] = {"address": peer, "way": "", "small": False, "full": False, "error": ""}
    try:
        version = ipaddress.ip_address(peer).version
        full = mtu - _HEADER[version] - _ICMP
        ask = _echo if _may_ping(version) else _refusal
        facts["way"] = "ping" if ask is _echo else "udp"
        facts["small"] = ask(peer, version, _SMALL, timeout)
        facts["full"] = facts["small"] and ask(peer, version, full, timeout)
    except (OSError, ValueError) as error:
        facts["error"] = getattr(error, "strerror", None) or str(error)
    return facts


def _may_ping(version: int) -> bool:
    try:
        _socket(version).close()
    except PermissionError:
        return False
    return True


def _refusal(peer: str, version: int, size: int, timeout: float) -> bool:
    """Without the right to ping: a datagram to a port that nobody listens on. The peer's kernel says so, and that it came is all we ask."""
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    for number in range(TRIES):
        with socket.socket(family, socket.SOCK_DGRAM) as line:
            _never_cut(line, version)
            line.settimeout(timeout)
            try:
                line.connect((peer, _UNUSED + secrets.randbelow(_SPAN) + number))
                line.send(bytes(size))
                line.recv(1)
                return True
            except ConnectionRefusedError:
                return True
            except OSError:  # larger than the own interface allows, or no answer in time
                continue
    return False


def _never_cut(line: socket.socket, version: int) -> None:
    level, option = (socket.IPPROTO_IP, _IP_MTU_DISCOVER) if version == 4 else (socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER)
    line.setsockopt(level, option, _PROBE)


def _echo(peer: str, version: int, size: int, timeout: float) -> bool:
    for _ in range(TRIES):
        with _socket(version) as line:
            token = secrets.token_bytes(8)
            payload = token + bytes(max(0, size - len(token)))
            message = struct.pack(">BBHHH", _REQUEST[version], 0, 0, os.getpid() & 0xFFFF, 1) + payload
            try:
                line.sendto(_with_checksum(message) if version == 4 else message, (peer, 0))
            except OSError:
                return False  # larger than the own interface allows
            if _answered(line, version, token, len(payload), timeout):
                return True
    return False


def _socket(version: int) -> socket.socket:
    """A ping socket, which most systems allow everybody; a raw one for root where they do not. Raises OSError."""
    family, protocol = (socket.AF_INET, socket.IPPROTO_ICMP) if version == 4 else (socket.AF_INET6, socket.IPPROTO_ICMPV6)
    try:
        line = socket.socket(family, socket.SOCK_DGRAM, protocol)
    except PermissionError:
        line = socket.socket(family, socket.SOCK_RAW, protocol)
    _never_cut(line, version)
    return line


def _answered(line: socket.socket, version: int, token: bytes, size: int, timeout: float) -> bool:
    """The peer's echo with our token, whole."""
    end = time.monotonic() + timeout
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([line], [], [], left)[0]:
            return False
        kind, body = _icmp(line.recv(65536), version, line.type == socket.SOCK_RAW)
        if kind == _REPLY[version] and body[:8] == token and len(body) == size:
            return True


def _icmp(packet: bytes, version: int, raw: bool) -> Tuple[int, bytes]:
    """(type, payload); a raw IPv4 socket gives the IP header too."""
    if raw and version == 4 and packet:
        packet = packet[(packet[0] & 0x0F) * 4 :]
    return (packet[0], packet[8:]) if len(packet) >= 8 else (-1, b"")


def _with_checksum(message: bytes) -> bytes:
    padded = message + b"\x00" * (len(message) % 2)
    total = sum(struct.unpack(f">{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return message[:2] + struct.pack(">H", ~total & 0xFFFF) + message[4:]
