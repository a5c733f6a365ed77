"""Command lines as they may be written down: the values of -e stay out, for they may be passwords."""

from __future__ import annotations

from collections.abc import Sequence

from nodectl.wire.secret import MASK

LONG = "--extra-vars"
# Short options that take a value: what follows them in the same word is that value, and no option.
VALUED = frozenset("eilftuT")


def hidden_argv(argv: Sequence[str], short: bool = True) -> list[str]:
    """``argv`` with `-e key=value` as `-e key=********`; `-e @file` names no value and stays. ``short`` False: -e is something else here, and only
    --extra-vars is hidden."""
    shown: list[str] = []
    waiting = ""  # the option whose value the next word is
    for word in argv:
        if waiting:
            shown.append(_hidden(word) if waiting in ("e", LONG) else word)
            waiting = ""
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            shown.append(f"{name}={_hidden(value)}" if equals and name == LONG else word)
            waiting = LONG if word == LONG else ""
        elif word.startswith("-") and short:
            text, waiting = _short(word)
            shown.append(text)
        else:
            shown.append(word)
    return shown


def _short(word: str) -> tuple[str, str]:
    """(the word as it may be shown, the option that waits for its value): several short options may stand in one word."""
    for place, letter in enumerate(word[1:], 1):
        if letter in VALUED:
            rest = word[place + 1 :]
            return word[: place + 1] + (_hidden(rest) if letter == "e" and rest else rest), "" if rest else letter
    return word, ""


def _hidden(text: str) -> str:
    if text.startswith("@"):
        return text
    # Several assignments in one word, or JSON: not taken apart here, so nothing of it is shown but the first name.
    name, equals, _ = text.partition("=")
    return f"{name}={MASK}" if equals and name.isidentifier() else MASK
