"""One DNS question, with the standard library: does this name server answer at all? Any answer counts, also "no such name"."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import struct
from typing import List

# A question for the name servers of the root: a resolver has them in its cache, or refuses; both are answers.
_QUESTION = b"\x00" + struct.pack(">HH", 2, 1)
_PORT = 53
SERVFAIL = 2


def servers(resolv_conf: str) -> List[str]:
    """Addresses of the nameserver lines, as the C library reads them: the first three."""
    found = []
    for line in resolv_conf.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == "nameserver":
            try:
                ipaddress.ip_address(words[1].split("%")[0])
            except ValueError:
                continue
            found.append(words[1])
    return found[:3]


def ask(server: str, timeout: float, port: int = _PORT) -> str:
    """ "" when it answered within ``timeout`` seconds, otherwise why not."""
    number = secrets.randbits(16)
    query = struct.pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0) + _QUESTION
    try:
        place = socket.getaddrinfo(server, port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST)[0]
        with socket.socket(place[0], socket.SOCK_DGRAM) as line:
            line.settimeout(timeout)
            line.connect(place[4])
            line.send(query)
            return judged(line.recv(4096), number)
    except socket.timeout:
        return f"no answer within {timeout:g} s"
    except OSError as error:
        return error.strerror or str(error)


def judged(answer: bytes, number: int) -> str:
    """A resolver that says SERVFAIL to everything cannot reach those that it asks itself."""
    if len(answer) < 12 or struct.unpack_from(">H", answer)[0] != number or not answer[2] & 0x80:
        return "what came back is no answer to the question"
    return "it answers SERVFAIL: it cannot reach the servers that it asks itself" if answer[3] & 0x0F == SERVFAIL else ""
