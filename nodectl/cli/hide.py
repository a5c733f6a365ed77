"""Command lines as they may be written down: the values of -e stay out, for they may be passwords."""

from __future__ import annotations

from collections.abc import Sequence

from nodectl.wire.secret import MASK

OPTIONS = ("-e", "--extra-vars")


def hidden_argv(argv: Sequence[str]) -> list[str]:
    """``argv`` with `-e key=value` as `-e key=********`; `-e @file` names no value and stays."""
    shown: list[str] = []
    for word in argv:
        if shown and shown[-1] in OPTIONS:
            shown.append(_hidden(word))
        elif word.startswith("--extra-vars="):
            shown.append("--extra-vars=" + _hidden(word.partition("=")[2]))
        elif word.startswith("-e") and not word.startswith("--") and len(word) > 2:
            shown.append("-e" + _hidden(word[2:]))
        else:
            shown.append(word)
    return shown


def _hidden(text: str) -> str:
    if text.startswith("@"):
        return text
    # Several assignments in one word, or JSON: not taken apart here, so nothing of it is shown but the first name.
    name, equals, _ = text.partition("=")
    return f"{name}={MASK}" if equals and name.isidentifier() else MASK
