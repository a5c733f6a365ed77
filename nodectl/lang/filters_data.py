"""Filters over numbers, lists and mappings; pure functions."""

from __future__ import annotations

import itertools
import math
import random as randomness
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

_MERGES = ("replace", "keep", "append", "prepend", "append_rp", "prepend_rp")
# Not "y", "t", "n", "f": for Ansible's filter all four are false.
_TRUE = ("yes", "on", "1", "true")
_FALSE = ("no", "off", "0", "false", "")


def boolean(value: Any) -> bool:
    """Ansible turns any unknown word into false; here it is refused."""
    if value is None or isinstance(value, bool):
        return bool(value)
    word = str(value).strip().lower()
    if word in _TRUE or word in ("1.0",):
        return True
    if word in _FALSE or word in ("0.0",):
        return False
    raise ValueError(f"{value!r} is neither true nor false for the filter 'bool'")


def combine(*given: Any, recursive: bool = False, list_merge: str = "replace") -> dict[Any, Any]:
    """Mappings laid over each other, the last one wins. Lists of mappings count as their items."""
    if list_merge not in _MERGES:
        raise ValueError(f"list_merge is one of {', '.join(_MERGES)}")
    maps = [item for value in given for item in (value if isinstance(value, (list, tuple)) else [value])]
    result: dict[Any, Any] = {}
    for item in maps:
        if item is None:
            continue
        if not isinstance(item, Mapping):
            raise TypeError(f"combine wants mappings, not {item!r}")
        result = _merged(result, item, recursive, list_merge)
    return result


def _merged(low: Mapping[Any, Any], high: Mapping[Any, Any], recursive: bool, list_merge: str) -> dict[Any, Any]:
    result = dict(low)
    for key, value in high.items():
        old = result.get(key)
        if recursive and isinstance(old, Mapping) and isinstance(value, Mapping):
            result[key] = _merged(old, value, recursive, list_merge)
        elif isinstance(old, list) and isinstance(value, list):
            result[key] = _merged_lists(old, value, list_merge)
        else:
            result[key] = value
    return result


def _merged_lists(low: list[Any], high: list[Any], how: str) -> list[Any]:
    if how in ("replace", "keep"):
        return high if how == "replace" else low
    if how.endswith("_rp"):
        low = [item for item in low if item not in high]
    return low + high if how.startswith("append") else high + low


def dict2items(value: Any, key_name: str = "key", value_name: str = "value") -> list[dict[str, Any]]:
    if not isinstance(value, Mapping):
        raise TypeError(f"dict2items wants a mapping, not {value!r}")
    return [{key_name: key, value_name: item} for key, item in value.items()]


def items2dict(value: Iterable[Any], key_name: str = "key", value_name: str = "value") -> dict[Any, Any]:
    if isinstance(value, (str, Mapping)):
        raise TypeError(f"items2dict wants a list, not {value!r}")
    for item in value:
        if not isinstance(item, Mapping) or key_name not in item or value_name not in item:
            raise TypeError(f"items2dict wants mappings with '{key_name}' and '{value_name}', not {item!r}")
    return {item[key_name]: item[value_name] for item in value}


def unique(value: Iterable[Any], case_sensitive: bool | None = None, attribute: str | None = None) -> list[Any]:
    """Order is kept. As in Jinja, texts that differ only in case count as equal unless ``case_sensitive`` is true."""
    seen: list[Any] = []
    result = []
    for item in value:
        mark = _at(item, attribute) if attribute else item
        mark = mark.lower() if not case_sensitive and isinstance(mark, str) else mark
        if mark not in seen:
            seen.append(mark)
            result.append(item)
    return result


def _at(item: Any, path: str) -> Any:
    for part in path.split("."):
        item = item[int(part)] if part.isdecimal() and isinstance(item, Sequence) else item[part]
    return item


def union(first: Iterable[Any], second: Iterable[Any]) -> list[Any]:
    return unique([*first, *second], True)


def intersect(first: Iterable[Any], second: Iterable[Any]) -> list[Any]:
    other = list(second)
    return unique([item for item in first if item in other], True)


def difference(first: Iterable[Any], second: Iterable[Any]) -> list[Any]:
    other = list(second)
    return unique([item for item in first if item not in other], True)


def symmetric_difference(first: Iterable[Any], second: Iterable[Any]) -> list[Any]:
    one, two = list(first), list(second)
    return unique([*(item for item in one if item not in two), *(item for item in two if item not in one)], True)


def flatten(value: Iterable[Any], levels: int | None = None, skip_nulls: bool = True) -> list[Any]:
    result: list[Any] = []
    for item in value:
        if item in (None, "None", "null") and skip_nulls:
            continue
        if isinstance(item, (list, tuple)) and (levels is None or levels > 0):
            result += flatten(item, None if levels is None else levels - 1, skip_nulls)
        else:
            result.append(item)
    return result


def ternary(value: Any, true: Any, false: Any, none: Any = None) -> Any:
    if value is None and none is not None:
        return none
    return true if bool(value) else false


def extract(item: Any, container: Any, morekeys: Any = None) -> Any:
    for key in [item] if morekeys is None else [item, *(morekeys if isinstance(morekeys, list) else [morekeys])]:
        container = container[key]
    return container


def subelements(value: Any, path: Any, skip_missing: bool = False) -> list[tuple[Any, Any]]:
    """Pairs of each mapping and each item of the list under ``path`` in it."""
    if not isinstance(value, (list, Mapping)) or (isinstance(value, Mapping) and not all(isinstance(item, Mapping) for item in value.values())):
        raise TypeError(f"subelements wants a list, or a mapping of mappings, not {value!r}")
    names = path if isinstance(path, list) else str(path).split(".")
    result = []
    for element in value.values() if isinstance(value, Mapping) else value:
        below: Any = element
        for name in names:
            if not isinstance(below, Mapping):
                raise TypeError(f"subelements: {'.'.join(names)!r} leads through {below!r}, which is no mapping")
            if name not in below:
                if skip_missing:
                    below = []
                    break
                raise ValueError(f"subelements: no {'.'.join(names)!r} in {element!r}")
            below = below[name]
        if not isinstance(below, list):
            raise TypeError(f"subelements: {'.'.join(names)!r} is not a list in {element!r}")
        result += [(element, item) for item in below]
    return result


def rekey_on_member(value: Any, key: str, duplicates: str = "error") -> dict[Any, Any]:
    """The mappings of a list (or of a mapping's values) under their own ``key``."""
    if duplicates not in ("error", "overwrite"):
        raise ValueError(f"duplicates is error or overwrite, not {duplicates!r}")
    found: dict[Any, Any] = {}
    for item in value.values() if isinstance(value, Mapping) else value:
        if not isinstance(item, Mapping) or key not in item:
            raise TypeError(f"rekey_on_member: no {key!r} in {item!r}")
        if item[key] in found and duplicates == "error":
            raise ValueError(f"rekey_on_member: {item[key]!r} is there twice")
        found[item[key]] = item
    return found


def random(end: Any, start: int | None = None, step: int | None = None, seed: Any = None) -> Any:
    """A number below ``end``, or an item of it; the same for the same ``seed``, as in Ansible."""
    source = randomness.Random(seed) if seed is not None else randomness.SystemRandom()
    if isinstance(end, int):
        return source.randrange(start or 0, end, step or 1)
    if start is not None or step is not None:
        raise ValueError("start and step are for numbers only")
    if isinstance(end, Mapping):
        raise TypeError("random wants a list or a number, not a mapping")
    return source.choice(list(end))


def shuffle(value: Iterable[Any], seed: Any = None) -> list[Any]:
    result = list(value)
    (randomness.Random(seed) if seed is not None else randomness.SystemRandom()).shuffle(result)
    return result


def log(value: float, base: float = math.e) -> float:
    return math.log10(value) if base == 10 else math.log(value, base)


def root(value: float, base: float = 2) -> float:
    return math.sqrt(value) if base == 2 else math.pow(value, 1.0 / float(base))


def zip_(*lists: Iterable[Any]) -> list[Any]:
    return list(zip(*lists, strict=False))


def zip_longest(*lists: Iterable[Any], fillvalue: Any = None) -> list[Any]:
    return list(itertools.zip_longest(*lists, fillvalue=fillvalue))


def product(*lists: Iterable[Any], repeat: int = 1) -> list[Any]:
    return list(itertools.product(*lists, repeat=repeat))


def permutations(value: Iterable[Any], length: int | None = None) -> list[Any]:
    return list(itertools.permutations(value, length))


def combinations(value: Iterable[Any], length: int) -> list[Any]:
    return list(itertools.combinations(value, length))


DATA_FILTERS: Mapping[str, Callable[..., Any]] = {
    "bool": boolean, "combine": combine, "dict2items": dict2items, "items2dict": items2dict, "unique": unique, "union": union,
    "intersect": intersect, "difference": difference, "symmetric_difference": symmetric_difference, "flatten": flatten,
    "ternary": ternary, "extract": extract, "subelements": subelements, "random": random, "shuffle": shuffle,
    "log": log, "pow": math.pow, "root": root, "zip": zip_, "zip_longest": zip_longest, "product": product,
    "permutations": permutations, "combinations": combinations, "rekey_on_member": rekey_on_member,
}  # fmt: skip
