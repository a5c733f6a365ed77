"""Host names with ranges: `gpu-[01:16].rack1`, `n[a:c]`, `n[0:10:2]`."""

from __future__ import annotations

import re
import string
from itertools import product

_RANGE = re.compile(r"\[([^\[\]]*)\]")
_PORT = re.compile(r"^(.+?):(\d{1,5})$")
_ADDRESS = re.compile(r"^\[([0-9a-fA-F]*:[0-9a-fA-F:.]*:[0-9a-fA-F.]*)\]:(\d{1,5})$")
# One pattern of a real cluster gives at most a few thousand hosts; a slip of a digit must not fill the memory.
MAX_HOSTS = 100_000


class BadRange(ValueError):
    """The text is no host name; the message says which part is wrong."""


def has_range(text: str) -> bool:
    return bool(_RANGE.search(text))


def expand(text: str) -> list[str]:
    """All names that a host pattern of an inventory stands for. Raises BadRange."""
    pieces = _RANGE.split(text)
    if "[" in "".join(pieces[::2]) or "]" in "".join(pieces[::2]):
        raise BadRange("a bracket is not closed")
    choices = [[piece] if place % 2 == 0 else _range(piece) for place, piece in enumerate(pieces)]
    total = 1
    for choice in choices:
        total *= len(choice)
    if total > MAX_HOSTS:
        raise BadRange(f"stands for {total} hosts; at most {MAX_HOSTS} are taken")
    return ["".join(parts) for parts in product(*choices)]


def split_port(text: str) -> tuple[str, int | None]:
    """`name:2222` as name and port; an IPv6 address needs brackets for that and stays whole."""
    address = _ADDRESS.match(text)
    if address:
        return address.group(1), int(address.group(2))
    match = _PORT.match(text)
    if not match or ":" in _RANGE.sub("", match.group(1)) or match.group(1).count("[") != match.group(1).count("]"):
        return text, None
    return match.group(1), int(match.group(2))


def _range(text: str) -> list[str]:
    parts = text.split(":")
    if len(parts) not in (2, 3) or not parts[1]:
        raise BadRange(f"[{text}] is no range; expected [first:last] or [first:last:step]")
    first, last, step = parts[0] or "0", parts[1], parts[2] if len(parts) == 3 else "1"
    if not step.isdecimal() or int(step) == 0:
        raise BadRange(f"[{text}]: the step {step!r} is not a whole number above 0")
    if first.isdecimal() and last.isdecimal():
        return _numbers(text, first, last, int(step))
    letters = string.ascii_letters
    if len(first) == len(last) == 1 and first in letters and last in letters:
        chosen = letters[letters.index(first) : letters.index(last) + 1 : int(step)]
        if chosen:
            return list(chosen)
        raise BadRange(f"[{text}] is empty: {last!r} comes before {first!r}")
    raise BadRange(f"[{text}]: both ends must be numbers or single letters")


def _numbers(text: str, first: str, last: str, step: int) -> list[str]:
    if int(last) < int(first):
        raise BadRange(f"[{text}] is empty: {last} is below {first}")
    if (int(last) - int(first)) // step >= MAX_HOSTS:
        raise BadRange(f"[{text}] stands for more than {MAX_HOSTS} hosts")
    width = len(first) if first.startswith("0") and len(first) > 1 else 0
    if width and len(last) != width:
        raise BadRange(f"[{text}]: ends with leading zeros must have the same number of digits")
    return [str(number).zfill(width) for number in range(int(first), int(last) + 1, step)]
