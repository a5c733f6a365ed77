"""Filters over texts, paths and encodings; pure functions."""

from __future__ import annotations

import base64
import glob
import hashlib
import json
import ntpath
import os.path
import re
import shlex
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from nodectl.lang import document

# Ansible's own namespace, so that `to_uuid` gives the same ids in both tools.
ANSIBLE_NAMESPACE = uuid.UUID("361E6D51-FAEC-444A-9079-341386DA8E2E")
_UNITS = ("Y", "Z", "E", "P", "T", "G", "M", "K", "B")
_COMMENTS = {
    "plain": {"decoration": "# "},
    "erlang": {"decoration": "% "},
    "c": {"decoration": "// "},
    "cblock": {"beginning": "/*", "decoration": " * ", "end": " */"},
    "xml": {"beginning": "<!--", "decoration": " - ", "end": "-->"},
}


def _flags(ignorecase: bool, multiline: bool) -> int:
    return (re.IGNORECASE if ignorecase else 0) | (re.MULTILINE if multiline else 0)


def regex_replace(
    value: Any, pattern: str = "", replacement: str = "", ignorecase: bool = False, multiline: bool = False, count: int = 0, mandatory_count: int = 0
) -> str:
    text, made = re.compile(pattern, _flags(ignorecase, multiline)).subn(replacement, str(value), count)
    if mandatory_count and made != mandatory_count:
        raise ValueError(f"{pattern!r} should match {mandatory_count} times, but matched {made} times")
    return text


def regex_search(value: Any, pattern: str, *groups: str, ignorecase: bool = False, multiline: bool = False) -> Any:
    match = re.compile(pattern, _flags(ignorecase, multiline)).search(str(value))
    wanted = [_group(group) for group in groups]
    if match is None:
        return None
    return [match.group(group) for group in wanted] if wanted else match.group()


def _group(name: str) -> int | str:
    named = re.match(r"\\g<(\S+)>$", name)
    numbered = re.match(r"\\(\d+)$", name)
    if named:
        return named.group(1)
    if numbered:
        return int(numbered.group(1))
    raise ValueError(f"{name!r} is not a group: write '\\\\1' or '\\\\g<name>'")


def regex_findall(value: Any, pattern: str, multiline: bool = False, ignorecase: bool = False) -> list[Any]:
    return re.compile(pattern, _flags(ignorecase, multiline)).findall(str(value))


def regex_escape(value: Any, re_type: str = "python") -> str:
    if re_type == "python":
        return re.escape(str(value))
    if re_type == "posix_basic":
        return re.sub(r"([].[^$*\\])", r"\\\1", str(value))
    raise ValueError(f"re_type {re_type!r} is not known; use python or posix_basic")


def _plain(value: Any) -> Any:
    """For json: undefined values fail by name, unknown ones say their type."""
    fail = getattr(type(value), "_fail_with_undefined_error", None)
    if fail:
        fail(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "__iter__"):
        return list(value)
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


def _bare(value: Any) -> Any:
    """For yaml: as ``_plain``, however deep. Keys keep their types."""
    if isinstance(value, Mapping):
        return {key: _bare(item) for key, item in value.items()}
    if value is None or isinstance(value, (str, int, float)):
        return value
    return [_bare(item) for item in (value if isinstance(value, (list, tuple)) else _plain(value))]


def to_json(value: Any, **options: Any) -> str:
    options.pop("vault_to_text", None)
    options.pop("preprocess_unsafe", None)
    return json.dumps(value, default=_plain, **options)


def to_nice_json(value: Any, indent: int = 4, sort_keys: bool = True, **options: Any) -> str:
    return to_json(value, indent=indent, sort_keys=sort_keys, separators=(",", ": "), **options)


def from_json(value: Any, **_options: Any) -> Any:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"from_json wants text, not {value!r}")
    return json.loads(value)


def to_yaml(value: Any, default_flow_style: bool | None = None, indent: int | None = None, width: int | None = None, sort_keys: bool = True) -> str:
    return document.to_yaml(_bare(value), flow=default_flow_style, indent=indent, width=width, sort_keys=sort_keys)


def to_nice_yaml(value: Any, indent: int = 4, width: int | None = None, sort_keys: bool = True, default_flow_style: bool | None = False) -> str:
    return to_yaml(value, default_flow_style=default_flow_style, indent=indent, width=width, sort_keys=sort_keys)


def from_yaml(value: Any) -> Any:
    return document.from_yaml(value) if isinstance(value, str) else value


def from_yaml_all(value: Any) -> Any:
    """The documents of a text that holds several."""
    return document.from_yaml_all(value) if isinstance(value, str) else [] if value is None else value


def to_datetime(value: str, format: str = "%Y-%m-%d %H:%M:%S") -> datetime:
    return datetime.strptime(value, format)


def strftime_at(format: str, second: float, utc: bool) -> str:
    """``second`` since 1970, in the controller's time zone or in UTC."""
    moment = datetime.fromtimestamp(second, UTC)
    return (moment if utc else moment.astimezone()).strftime(format)


def fileglob(pattern: str) -> list[str]:
    """Files of the controller that match."""
    return sorted(path for path in glob.glob(pattern) if os.path.isfile(path))


def win_dirname(value: str) -> str:
    return ntpath.dirname(value)


def win_splitdrive(value: str) -> list[str]:
    return list(ntpath.splitdrive(value))


def b64encode(value: Any, encoding: str = "utf-8") -> str:
    return base64.b64encode(str(value).encode(encoding)).decode("ascii")


def b64decode(value: Any, encoding: str = "utf-8") -> str:
    return base64.b64decode(str(value)).decode(encoding)


def hash_(value: Any, hashtype: str = "sha1") -> str:
    if hashtype not in hashlib.algorithms_available:
        raise ValueError(f"no hash named {hashtype!r}")
    return hashlib.new(hashtype, str(value).encode(), usedforsecurity=False).hexdigest()


def to_uuid(value: Any, namespace: Any = ANSIBLE_NAMESPACE) -> str:
    return str(uuid.uuid5(namespace if isinstance(namespace, uuid.UUID) else uuid.UUID(namespace), str(value)))


def quote(value: Any) -> str:
    return shlex.quote("" if value is None else str(value))


def split(value: str, separator: str | None = None, count: int = -1) -> list[str]:
    return value.split(separator, count)


def path_join(value: Any) -> str:
    if not isinstance(value, (str, list, tuple)):
        raise TypeError(f"path_join wants a text or a list of texts, not {value!r}")
    return os.path.join(value) if isinstance(value, str) else os.path.join(*value)


def url(value: str, query: str = "") -> Any:
    parts = urlsplit(str(value or ""))
    values = {name: getattr(parts, name) for name in ("fragment", "hostname", "netloc", "password", "path", "port", "query", "scheme", "username")}
    if query and query not in values:
        raise ValueError(f"urlsplit knows {', '.join(values)}, not {query!r}")
    return values[query] if query else values


def human_readable(size: Any, isbits: bool = False, unit: str | None = None) -> str:
    """`1536 | human_readable` is '1.50 KB': powers of 1024, as Ansible writes them."""
    if isinstance(size, str):
        raise TypeError(f"human_readable wants a number, not the text {size!r}: convert it with `| int`")
    number = float(size)
    for place, letter in enumerate(reversed(_UNITS)):
        wanted = unit is not None and unit.upper()[:1] == letter
        if wanted or (unit is None and (number < 1024 ** (place + 1) or letter == "Y")):
            name = {True: "bits" if letter == "B" else letter + "b", False: "Bytes" if letter == "B" else letter + "B"}[isbits]
            return f"{number / 1024**place:.2f} {name}"
    raise ValueError(f"{unit!r} is not a unit; known are {', '.join(_UNITS)}")


def human_to_bytes(size: Any, default_unit: str | None = None, isbits: bool = False) -> int:
    """'10M', '1.5 GB' or '2 KB' as a number of bytes (or bits with ``isbits``): powers of 1024."""
    match = re.match(r"^\s*(\d*\.?\d+)\s*([A-Za-z]+)?\s*$", str(size))
    if not match:
        raise ValueError(f"{size!r} is not a size such as 10M or 1.5 GB")
    unit = match.group(2) or default_unit or "B"
    short = unit[0].upper()
    small = unit[1:].lower()
    fits = small in ("", "b") if short != "B" else unit in ("B", "b") or unit.lower() in ("byte", "bytes", "bit", "bits")
    if short not in _UNITS or not fits:
        raise ValueError(f"{unit!r} is not a unit; known are {', '.join(_UNITS)}")
    return round(float(match.group(1)) * float(1024 ** (len(_UNITS) - 1 - _UNITS.index(short))))


def comment(
    text: str,
    style: str = "plain",
    *,
    decoration: str | None = None,
    beginning: str | None = None,
    end: str | None = None,
    newline: str = "\n",
    prefix: str | None = None,
    prefix_count: int = 1,
    postfix: str | None = None,
    postfix_count: int = 1,
) -> str:
    """Each line of ``text`` as a comment of the style, with an empty comment line before and after, as Ansible does."""
    if style not in _COMMENTS:
        raise ValueError(f"comment style {style!r} is not known; known are {', '.join(_COMMENTS)}")
    kind = {"beginning": "", "end": "", **_COMMENTS[style]}
    mark = kind["decoration"] if decoration is None else decoration
    begin, close = kind["beginning"] if beginning is None else beginning, kind["end"] if end is None else end
    bare = mark.rstrip()
    before = (bare if prefix is None else prefix) + newline
    after = newline + (bare if postfix is None else postfix)
    *lines, last = text.split(newline)
    # Ansible leaves the blank of the mark on a last line that is empty.
    lines = [*(f"{mark}{line}" if line else bare for line in lines), f"{mark}{last}"]
    return (begin + newline if begin else "") + before * prefix_count + newline.join(lines) + after * postfix_count + (newline + close if close else "")


def win_basename(value: str) -> str:
    return ntpath.basename(value)


def sha1(value: Any) -> str:
    return hash_(value, "sha1")


def md5(value: Any) -> str:
    return hash_(value, "md5")


def commonpath(value: Sequence[str]) -> str:
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"commonpath wants a list of paths, not {value!r}")
    return os.path.commonpath(value)


TEXT_FILTERS: Mapping[str, Callable[..., Any]] = {
    "regex_replace": regex_replace, "regex_search": regex_search, "regex_findall": regex_findall, "regex_escape": regex_escape,
    "to_json": to_json, "to_nice_json": to_nice_json, "from_json": from_json, "to_yaml": to_yaml, "to_nice_yaml": to_nice_yaml, "from_yaml": from_yaml,
    "from_yaml_all": from_yaml_all, "to_datetime": to_datetime, "fileglob": fileglob, "win_dirname": win_dirname, "win_splitdrive": win_splitdrive,
    "b64encode": b64encode, "b64decode": b64decode, "hash": hash_, "sha1": sha1, "md5": md5, "checksum": sha1, "to_uuid": to_uuid,
    "quote": quote, "split": split, "urlsplit": url, "urldecode": unquote_plus, "human_readable": human_readable, "human_to_bytes": human_to_bytes,
    "comment": comment,
    "basename": os.path.basename, "dirname": os.path.dirname, "splitext": os.path.splitext, "expanduser": os.path.expanduser, "expandvars": os.path.expandvars,
    "realpath": os.path.realpath, "relpath": os.path.relpath, "normpath": os.path.normpath, "commonpath": commonpath, "path_join": path_join,
    "win_basename": win_basename,
}  # fmt: skip
