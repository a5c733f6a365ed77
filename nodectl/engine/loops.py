"""The items of a loop: `loop` and the with_ kinds that roles use."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any

# seq-like shortcut of with_sequence: start-end/stride:format, e.g. "4-16/2:host%02d".
_SEQUENCE = re.compile(r"^(?:(\d+)-)?(\d+)(?:/(\d+))?(?::(.+))?$")


class BadLoop(ValueError):
    """The value cannot be looped over; the text says what was expected."""


def items_of(kind: str, value: Any) -> list[Any]:
    """``value`` is rendered. Raises BadLoop."""
    if kind not in KINDS:
        raise BadLoop(f"with_{kind} is not known; known are loop and {', '.join('with_' + name for name in KINDS if name != 'loop')}")
    return KINDS[kind](value)


def _loop(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, Mapping):
        raise BadLoop("loop wants a list, but this is a mapping: write `| dict2items`")
    raise BadLoop(f"loop wants a list, but this is {value!r}: write `| list`, or [ … ] around it")


def _flat(value: Any, depth: int = 1) -> list[Any]:
    found: list[Any] = []
    for item in value if isinstance(value, (list, tuple)) else [value]:
        found += _flat(item, depth - 1) if isinstance(item, (list, tuple)) and depth else [item]
    return found


def _dict(value: Any) -> list[Any]:
    for part in value if isinstance(value, list) else [value]:
        if not isinstance(part, Mapping):
            raise BadLoop(f"with_dict wants a mapping, but this is {part!r}")
    return [{"key": key, "value": item} for part in (value if isinstance(value, list) else [value]) for key, item in part.items()]


def _lists(name: str, value: Any) -> list[list[Any]]:
    if not isinstance(value, list) or not all(isinstance(part, (list, tuple)) for part in value):
        raise BadLoop(f"with_{name} wants a list of lists")
    return [list(part) for part in value]


def _subelements(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) < 2:
        raise BadLoop("with_subelements wants a list and the name of a key")
    outer, path = value[0], str(value[1]).split(".")
    missing_ok = isinstance(value[2], Mapping) and bool(value[2].get("skip_missing")) if len(value) > 2 else False
    found = []
    for element in outer.values() if isinstance(outer, Mapping) else outer:
        inner = element
        for key in path:
            inner = inner.get(key) if isinstance(inner, Mapping) else None
        if inner is None and not missing_ok:
            raise BadLoop(f"with_subelements: {'.'.join(path)!r} is missing in {element!r}")
        found += [[element, item] for item in inner or []]
    return found


def _sequence(value: Any) -> list[Any]:
    found: list[Any] = []
    for text in value if isinstance(value, list) else [value]:
        found += _one_sequence(str(text))
    return found


def _one_sequence(text: str) -> list[str]:
    short = _SEQUENCE.match(text.strip())
    if short:
        given: dict[str, str] = {key: value or "" for key, value in zip(("start", "end", "stride", "format"), short.groups(), strict=True)}
    else:
        given = dict(part.split("=", 1) for part in text.split() if "=" in part)
    try:
        start, stride = int(given.get("start") or "1", 0), int(given.get("stride") or "1", 0)
        end = int(given["end"], 0) if given.get("end") else start + stride * (int(given["count"], 0) - 1)
        form = given.get("format") or "%d"
        return [form % number for number in range(start, end + (1 if stride > 0 else -1), stride)]
    except (KeyError, TypeError, ValueError):
        raise BadLoop(f"with_sequence: cannot read {text!r}; write for example start=1 end=4 format=n%d") from None


KINDS: Mapping[str, Callable[[Any], list[Any]]] = {
    "loop": _loop,
    "items": _flat,
    "list": _loop,
    "flattened": lambda value: _flat(value, 100),
    "dict": _dict,
    "indexed_items": lambda value: [[index, item] for index, item in enumerate(_flat(value))],
    "nested": lambda value: [list(row) for row in itertools.product(*_lists("nested", value))],
    "cartesian": lambda value: [list(row) for row in itertools.product(*_lists("cartesian", value))],
    "together": lambda value: [list(row) for row in itertools.zip_longest(*_lists("together", value))],
    "subelements": _subelements,
    "sequence": _sequence,
}
