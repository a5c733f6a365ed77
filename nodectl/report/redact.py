"""The last net under secrets: known texts are masked in everything that is journalled or shown.

Secrets are kept out of events where events are made (the type Secret, no_log, secret parameters). This net is for the text
that came back by another way, such as a password that a program printed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from nodectl.wire.event import Event
from nodectl.wire.secret import MASK, Secret

# Shorter texts occur in ordinary words and numbers: masking "ab" everywhere would shred the journal and give the secret away.
SHORTEST = 4


class Redactor:
    """Masks the texts it was given. A value that is itself a ``Secret`` is masked whether known or not."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        self._texts: list[str] = []
        for secret in secrets:
            self.add(secret)

    def add(self, secret: Secret | None) -> None:
        text = secret.reveal() if secret else ""
        if len(text) >= SHORTEST and text not in self._texts:
            # Longest first: a secret that contains another must not leave its tail behind.
            self._texts = sorted([*self._texts, text], key=len, reverse=True)

    def text(self, text: str) -> str:
        for secret in self._texts:
            text = text.replace(secret, MASK)
        return text

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Secret):
            return MASK
        if isinstance(value, dict):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.value(item) for item in value]
        return value

    def event(self, event: Event) -> Event:
        return replace(event, data=self.value(event.data))
