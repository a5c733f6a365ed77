"""Filters of community.general and ansible.utils over data; pure functions. The only door to jmespath, which may be absent."""

from __future__ import annotations

import collections
import configparser
import csv
import functools
import io
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nodectl.lang.filters_data import combine, difference, intersect, symmetric_difference, union
from nodectl.lang.versions import compare

# Milliseconds; a month is a twelfth of a year of 365 days, as in community.general.
_UNITS = {
    "ms": 1, "millisecond": 1, "milliseconds": 1, "msec": 1, "s": 1000, "sec": 1000, "second": 1000, "seconds": 1000, "m": 60_000, "min": 60_000,
    "minute": 60_000, "minutes": 60_000, "h": 3_600_000, "hour": 3_600_000, "hours": 3_600_000, "d": 86_400_000, "day": 86_400_000, "days": 86_400_000,
    "w": 604_800_000, "week": 604_800_000, "weeks": 604_800_000, "mo": 2_592_000_000, "month": 2_592_000_000, "months": 2_592_000_000,
    "y": 31_536_000_000, "year": 31_536_000_000, "years": 31_536_000_000,
}  # fmt: skip


def json_query(data: Any, expression: str) -> Any:
    try:
        import jmespath
    except ImportError:
        raise ValueError("json_query needs jmespath, which is not installed: pip install 'nodectl[json_query]'") from None
    try:
        return jmespath.search(expression, data)
    except jmespath.exceptions.JMESPathError as error:
        raise ValueError(f"json_query: {error}") from None


def counter(value: Any) -> dict[Any, int]:
    if not isinstance(value, Iterable):
        raise TypeError(f"counter wants a list, not {value!r}")
    return dict(collections.Counter(value))


def to_dict(value: Iterable[Sequence[Any]]) -> dict[Any, Any]:
    return dict(value)  # type: ignore[arg-type]


def dict_kv(value: Any, key: Any) -> dict[Any, Any]:
    return {key: value}


def groupby_as_dict(value: Iterable[Any], attribute: str) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for item in value:
        if not isinstance(item, Mapping) or attribute not in item:
            raise ValueError(f"groupby_as_dict: no {attribute!r} in {item!r}")
        if item[attribute] in found:
            raise ValueError(f"groupby_as_dict: {item[attribute]!r} is there twice")
        found[item[attribute]] = item
    return found


def lists_mergeby(*lists: Any, recursive: bool = False, list_merge: str = "replace") -> list[Any]:
    """Lists of mappings, laid over each other where the value under the last argument is the same; sorted by it."""
    *given, index = lists
    if not isinstance(index, str):
        raise TypeError("lists_mergeby wants the name of a key as its last argument")
    found: dict[Any, Any] = {}
    given = given[0] if len(given) == 1 and given[0] and all(isinstance(one, list) for one in given[0]) else given
    for item in (item for one in given for item in one):
        if not isinstance(item, Mapping):
            raise TypeError(f"lists_mergeby wants lists of mappings, not {item!r}")
        if index in item:
            found[item[index]] = combine(found.get(item[index], {}), item, recursive=recursive, list_merge=list_merge)
    return [found[key] for key in sorted(found)]


def _all_lists(how: Callable[[Any, Any], list[Any]]) -> Callable[..., list[Any]]:
    def over(*lists: Any, flatten: bool = False) -> list[Any]:
        parts = [part for one in lists for part in one] if flatten else list(lists)
        result = list(dict.fromkeys(parts[0])) if parts else []
        for part in parts[1:]:
            result = how(result, part)
        return result

    return over


def _matches(matching: str, targets: Sequence[str]) -> Callable[[str], bool]:
    tests: Mapping[str, Callable[[str, str], bool]] = {
        "equal": str.__eq__, "starts_with": str.startswith, "ends_with": str.endswith, "regex": lambda key, wanted: bool(re.match(wanted, key)),
    }  # fmt: skip
    if matching not in tests:
        raise ValueError(f"matching_parameter is one of {', '.join(tests)}, not {matching!r}")
    return lambda key: any(tests[matching](key, wanted) for wanted in targets)


def keep_keys(data: Iterable[Mapping[str, Any]], target: Any = None, matching_parameter: str = "equal") -> list[Any]:
    holds = _matches(matching_parameter, [target] if isinstance(target, str) else target)
    return [{key: value for key, value in item.items() if holds(key)} for item in data]


def remove_keys(data: Iterable[Mapping[str, Any]], target: Any = None, matching_parameter: str = "equal") -> list[Any]:
    holds = _matches(matching_parameter, [target] if isinstance(target, str) else target)
    return [{key: value for key, value in item.items() if not holds(key)} for item in data]


def replace_keys(data: Iterable[Mapping[str, Any]], target: Any = None, matching_parameter: str = "equal") -> list[Any]:
    pairs = [(_matches(matching_parameter, [one["before"]]), one["after"]) for one in target]
    return [{next((after for holds, after in pairs if holds(key)), key): value for key, value in item.items()} for item in data]


def _milliseconds(text: str) -> float:
    total = 0.0
    for word in str(text).split():
        match = re.fullmatch(r"(-?\d+(?:\.\d+)?)([A-Za-z]*)", word)
        if not match or (match[2].lower() if match[2] else "s") not in _UNITS:
            raise ValueError(f"{word!r} is no time such as 30m or 1h")
        total += float(match[1]) * _UNITS[match[2].lower() if match[2] else "ms"]
    return total


def to_time_unit(value: Any, unit: str = "ms", year: int = 365, month: int = 30) -> float:
    if unit.rstrip("s") not in {name.rstrip("s") for name in _UNITS}:
        raise ValueError(f"{unit!r} is no unit of time")
    return float(round(_milliseconds(value) / _UNITS[unit], 12))


def _to_unit(unit: str) -> Callable[..., float]:
    return lambda value, **options: to_time_unit(value, unit, **options)


def version_sort(value: Iterable[Any], reverse: bool = False) -> list[Any]:
    return sorted(value, key=functools.cmp_to_key(lambda a, b: compare(a, b, ">", "loose") - compare(a, b, "<", "loose")), reverse=reverse)


def from_csv(data: str, dialect: str = "excel", fieldnames: Any = None, **options: Any) -> list[Any]:
    """``options``: delimiter, skipinitialspace, strict."""
    try:
        given = {name: value for name, value in options.items() if value is not None}
        reader = csv.DictReader(io.StringIO(data), fieldnames=fieldnames, dialect=dialect, **given)
        return [dict(row) for row in reader]
    except csv.Error as error:
        raise ValueError(f"from_csv: {error}") from None


def from_ini(data: str) -> dict[str, Any]:
    parser = _parser()
    try:
        parser.read_string(data)
    except configparser.Error as error:
        raise ValueError(f"from_ini: {error}") from None
    return {name: dict(parser.items(name)) for name in parser.sections()}


def to_ini(data: Mapping[str, Mapping[str, Any]]) -> str:
    parser = _parser()
    parser.read_dict(data)
    out = io.StringIO()
    parser.write(out)
    return out.getvalue().rstrip("\n") + "\n"


def _parser() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # names keep their case
    return parser


def unicode_normalize(data: str, form: str = "NFC") -> str:
    if form not in ("NFC", "NFD", "NFKC", "NFKD"):
        raise ValueError(f"form is one of NFC, NFD, NFKC, NFKD, not {form!r}")
    return unicodedata.normalize(form, data)  # type: ignore[arg-type]


def crc32(value: str) -> str:
    return f"{zlib.crc32(value.encode()) & 0xFFFFFFFF:x}"


def get_path(var: Any, path: str, wantlist: bool = False) -> Any:
    for part in re.findall(r"\[\s*['\"]?([^'\"\]]+)['\"]?\s*\]|([^.\[\]]+)", str(path)):
        step = part[0] or part[1]
        var = var[int(step)] if isinstance(var, (list, tuple)) else var[step]
    return [var] if wantlist and not isinstance(var, list) else var


def to_paths(var: Any, prepend: str | None = None, wantlist: bool = False) -> Any:
    found = dict(_paths(var, prepend or ""))
    return [found] if wantlist else found


def _paths(value: Any, before: str) -> Iterable[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            step = f".{key}" if re.fullmatch(r"[A-Za-z_]\w*", str(key)) else f"[{key!r}]" if isinstance(key, str) else f"[{key}]"
            yield from _paths(item, (before + step).lstrip("."))
    elif isinstance(value, (list, tuple)) and value:
        for place, item in enumerate(value):
            yield from _paths(item, f"{before}[{place}]")
    else:
        yield before, value


def index_of(data: Sequence[Any], test: str, value: Any = None, key: str | None = None, wantlist: bool = False) -> Any:
    """Places in ``data`` of what equals ``value`` (of its ``key``)."""
    if test not in ("eq", "==", "equalto"):
        raise ValueError(f"index_of knows the test eq here, not {test!r}")
    found = [place for place, item in enumerate(data) if (item.get(key) if key is not None else item) == value]
    return found if wantlist or len(found) != 1 else found[0]


GENERAL_FILTERS: Mapping[str, Callable[..., Any]] = {
    "json_query": json_query, "counter": counter, "dict": to_dict, "dict_kv": dict_kv, "groupby_as_dict": groupby_as_dict, "lists_mergeby": lists_mergeby,
    "lists_union": _all_lists(union), "lists_intersect": _all_lists(intersect), "lists_difference": _all_lists(difference),
    "lists_symmetric_difference": _all_lists(symmetric_difference), "to_time_unit": to_time_unit,
    "to_milliseconds": _to_unit("ms"), "to_seconds": _to_unit("s"), "to_minutes": _to_unit("m"), "to_hours": _to_unit("h"), "to_days": _to_unit("d"),
    "to_weeks": _to_unit("w"), "to_months": _to_unit("mo"), "to_years": _to_unit("y"), "version_sort": version_sort, "from_csv": from_csv,
    "from_ini": from_ini, "to_ini": to_ini, "unicode_normalize": unicode_normalize, "crc32": crc32, "keep_keys": keep_keys, "remove_keys": remove_keys,
    "replace_keys": replace_keys,
}  # fmt: skip
UTILS_FILTERS: Mapping[str, Callable[..., Any]] = {
    "get_path": get_path, "to_paths": to_paths, "index_of": index_of, "keep_keys": keep_keys, "remove_keys": remove_keys, "replace_keys": replace_keys,
}  # fmt: skip
