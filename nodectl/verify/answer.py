"""What a probe said, read by name and type. Pure.

An answer that lacks what it promises is no evidence: it becomes `unknown`, never a default that happens to pass.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class Garbled(ValueError):
    """An answer that does not hold what it promises; names the probe, the key and what stood there."""


@dataclass(frozen=True)
class Answer:
    """``who`` is the probe, for messages. Every method raises Garbled."""

    who: str
    values: Mapping[str, Any]

    def number(self, key: str, least: float = 0.0) -> float:
        """A finite number of at least ``least``."""
        value = self.values.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= sys.float_info.max:
            return float(value)
        raise self._garbled(key, f"a number from {least:g}")

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if isinstance(value, str):
            return value
        raise self._garbled(key, "a text")

    def address(self, key: str) -> str:
        """An IP address, or "" for none."""
        value = self.text(key)
        try:
            return str(ipaddress.ip_address(value)) if value else ""
        except ValueError:
            raise self._garbled(key, "an IP address") from None

    def truth(self, key: str) -> bool:
        value = self.values.get(key)
        if isinstance(value, bool):
            return value
        raise self._garbled(key, "true or false")

    def part(self, key: str) -> Answer:
        value = self.values.get(key)
        if isinstance(value, Mapping):
            return Answer(f"{self.who}, {key}", value)
        raise self._garbled(key, "a mapping")

    def parts(self, key: str) -> list[Mapping[str, Any]]:
        value = self.values.get(key)
        if isinstance(value, (list, tuple)) and all(isinstance(item, Mapping) for item in value):
            return list(value)
        raise self._garbled(key, "a list of mappings")

    def texts(self, key: str) -> list[str]:
        value = self.values.get(key)
        if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
            return list(value)
        raise self._garbled(key, "a list of texts")

    def _garbled(self, key: str, expected: str) -> Garbled:
        found = f"{self.values[key]!r}"[:80] if key in self.values else "nothing"
        return Garbled(f"{self.who} gave {found} for {key}; expected {expected}: nothing can be concluded from it")
