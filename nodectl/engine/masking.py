"""Keeps secrets out of events: whatever was marked secret is replaced before an event leaves the engine."""

from __future__ import annotations

import base64
import threading
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from nodectl.lang.secrets import SHORTEST_INSIDE
from nodectl.wire.secret import MASK, Secret


class Masker:
    """Knows the secret texts of a run; any thread may add one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: frozenset[str] = frozenset()

    def remember(self, value: Any) -> None:
        """Take every text inside ``value`` (a secret parameter's value or a Secret) as one to hide.

        Where a part of a text is hidden already, what stands around that part may be seen.
        """
        for text in sorted(filter(None, _texts(value)), key=len):
            if self._mask_text(text) == text:
                with self._lock:
                    self._texts |= set(_forms(text))

    def remember_secrets(self, value: Any) -> None:
        """Take only what is typed as Secret inside ``value``."""
        if isinstance(value, Secret):
            self.remember(value)
        elif isinstance(value, Mapping):
            for item in value.values():
                self.remember_secrets(item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self.remember_secrets(item)

    def mask(self, value: Any) -> Any:
        """``value`` as JSON types, with the secrets hidden. Never raises: an odd object becomes its text."""
        if isinstance(value, Secret):
            return MASK
        if isinstance(value, str):
            return self._mask_text(str(value))
        if isinstance(value, Mapping):
            return {self._mask_text(str(key)): self.mask(item) for key, item in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.mask(item) for item in value]
        if value is None or isinstance(value, (bool, int, float)):
            return value
        return self._mask_text(str(value)) if isinstance(value, PurePath) else self._mask_text(repr(value))

    def _mask_text(self, text: str) -> str:
        for secret in self._texts:
            if text == secret:
                return MASK
            if len(secret) >= SHORTEST_INSIDE and secret in text:
                text = text.replace(secret, MASK)
        return text


def _forms(text: str) -> list[str]:
    """The text, and as it stands in kubeconfigs, headers and netrc-like files."""
    return [text, base64.b64encode(text.encode()).decode()] if len(text) >= SHORTEST_INSIDE else [text]


def _texts(value: Any) -> list[str]:
    if isinstance(value, Secret):
        return [value.reveal()]
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in _texts(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]
