"""The last net under secrets: known texts are masked in everything that is journalled or shown.

Secrets are kept out of events where events are made (the type Secret, no_log, secret parameters). This net is for the text
that came back by another way, such as a password that a program printed.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from nodectl.wire.event import Event
from nodectl.wire.secret import MASK, Secret

# Shorter texts occur in ordinary words and numbers: masking "ab" everywhere would shred the journal and give the secret away.
SHORTEST = 4
SHORTEST_NUMBER = 6
# A line of a secret of several: "-----END-----" and blanks of a key are no secret, but eight characters of it may be.
SHORTEST_LINE = 8
_OUR_WORDS = frozenset(["status", "verdict"])


class Redactor:
    """Masks the texts it was given. A value that is itself a ``Secret`` is masked whether known or not."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        self._texts: frozenset[str] = frozenset()
        for secret in secrets:
            self.add(secret)

    def add(self, secret: Secret | None) -> None:
        text = secret.reveal() if secret else ""
        if len(text) >= SHORTEST:
            self._texts |= _forms(text)

    def text(self, text: str) -> str:
        """Secrets that overlap, or hold one another, become one mask: no tail is left behind."""
        spans = sorted(span for secret in self._texts for span in _places(secret, text))
        if not spans:
            return text
        shown, end = [], 0
        for first, last in spans:
            if first >= end:
                shown += [text[end:first], MASK]
            end = max(end, last)
        return "".join([*shown, text[end:]])

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Secret):
            return MASK
        if isinstance(value, int) and not isinstance(value, bool):
            # A password of digits that YAML made a number; short ones are process ids and ports.
            return MASK if len(str(value)) >= SHORTEST_NUMBER and str(value) in self._texts else value
        if isinstance(value, dict):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.value(item) for item in value]
        return value

    def event(self, event: Event) -> Event:
        """``status`` and ``verdict`` stay: a password "failed" would else turn a failed run into a good one."""
        return replace(event, data={key: item if key in _OUR_WORDS else self.value(item) for key, item in event.data.items()})


def _forms(text: str) -> frozenset[str]:
    """The secret as programs repeat it: as it is, inside JSON, as Python and shells quote it, in a URL, and line by line."""
    forms = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1], shlex.quote(text)}
    forms |= {quote(text, safe="", errors="replace")}
    forms |= {line for line in text.splitlines() if len(line) >= SHORTEST_LINE}
    return frozenset(forms)


def _places(secret: str, text: str) -> Iterator[tuple[int, int]]:
    first = text.find(secret)
    while first >= 0:
        yield first, first + len(secret)
        first = text.find(secret, first + 1)
