"""Arguments written as one text: `command: chdir=/x make all`, `file: path=/x state=absent`."""

from __future__ import annotations

import re
from collections.abc import Collection

_OPTION = re.compile(r"^([A-Za-z_]\w*)=(.*)$", re.DOTALL)


class BadText(ValueError):
    """The text cannot be split into arguments."""


def split(text: str) -> list[str]:
    """The words of a text, as they were written: quotes stay, and neither quotes nor `{{ … }}` are broken at blanks."""
    words, word, quote, depth = [], "", "", 0
    place = 0
    while place < len(text):
        here, pair = text[place], text[place : place + 2]
        if quote:
            if here == "\\" and quote == '"' and place + 1 < len(text):
                word, place = word + pair, place + 2
                continue
            quote = "" if here == quote else quote
        elif pair in ("{{", "{%", "{#", "}}", "%}", "#}"):
            depth = max(depth + (1 if pair[0] == "{" else -1), 0)
            word, place = word + pair, place + 2
            continue
        elif here in "'\"" and not depth:
            quote = here
        if here in " \t\n" and not quote and not depth:
            words += [word] if word else []
            word = ""
        else:
            word += here
        place += 1
    if quote or depth:
        raise BadText("a quote is not closed" if quote else "a template is not closed")
    return words + ([word] if word else [])


def unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


def options(text: str) -> dict[str, str]:
    """All words as name=value. Raises BadText for a word that is none."""
    result = {}
    for word in split(text):
        match = _OPTION.match(word)
        if not match:
            raise BadText(f"'{word}' is not name=value")
        if match.group(1) in result:
            raise BadText(f"'{match.group(1)}' is given twice")
        result[match.group(1)] = unquote(match.group(2))
    return result


def command_line(text: str, known: Collection[str]) -> tuple[str, dict[str, str]]:
    """(the text without its leading and trailing `name=value` options, the options): only ``known`` names are options."""
    given: dict[str, str] = {}
    rest = text
    for word in split(text):
        match = _OPTION.match(word)
        if match and match.group(1) in known and match.group(1) not in given:
            given[match.group(1)] = unquote(match.group(2))
            rest = rest.replace(word, "", 1)
    return (rest.strip() if given else text), given
