"""Sizes as people write them."""

from __future__ import annotations

import re
from typing import Any, Optional

from nodectl.agent.contract import Failed

_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([KMGTP]?)(i?)(B?)\s*$", re.IGNORECASE)


def parse_size(text: Any) -> Optional[int]:
    """Bytes of 3840755982336, "3.84TB", "512 MiB", "4k"; None when it is no size.

    kB, MB, GB, TB are decimal, as on a drive's label; KiB, and a bare letter as fio and dd write it, are powers of 1024.
    """
    found = _SIZE.match(str(text))
    if not found:
        return None
    base = 1000 if found.group(4) and not found.group(3) else 1024
    return int(float(found.group(1)) * base ** " KMGTP".index(found.group(2).upper() or " "))


def size_of(name: str, text: Any) -> int:
    """As parse_size; raises Failed that names the parameter."""
    size = parse_size(text)
    if size is None or size <= 0:
        raise Failed(f"{name}: {text!r} is no size; write bytes or for example 256MiB")
    return size
