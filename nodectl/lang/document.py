"""The only door to YAML: text in, plain values with positions out.

A mapping is a ``Map``, a list a ``Seq``: ordinary dict and list that also know where they and their parts stand.
Everything wrong is collected; a file that is no YAML at all gives its first syntax error and None.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from nodectl.diagnostics.model import Collector
from nodectl.lang.scalars import is_sexagesimal, plain
from nodectl.lang.unsafe import Unsafe, has_template
from nodectl.lang.vault import MAGIC, NO_PASSWORDS, Vault, VaultError, is_encrypted
from nodectl.wire.origin import Origin
from nodectl.wire.secret import Secret

# Deeper than any playbook that a person wrote (blocks in blocks reach 10), far below Python's own recursion limit of 1000.
MAX_DEPTH = 100
# Values after aliases are followed: an inventory of 2,000 nodes has 50,000; a "billion laughs" file has 10^9.
MAX_VALUES = 1_000_000
# Bytes. The largest real vars files (vendored package lists) are below 2 MiB.
MAX_BYTES = 16 * 1024 * 1024
_STANDARD = "tag:yaml.org,2002:"
_VAULT_TAGS = ("!vault", "!vault-encrypted")


class Map(dict[Any, Any]):
    """A mapping with the places of its keys and values."""

    __slots__ = ("key_at", "origin", "value_at")

    def __init__(self, origin: Origin) -> None:
        super().__init__()
        self.origin = origin
        self.key_at: dict[Any, Origin] = {}
        self.value_at: dict[Any, Origin] = {}


class Seq(list[Any]):
    """A list with the places of its items."""

    __slots__ = ("item_at", "origin")

    def __init__(self, origin: Origin) -> None:
        super().__init__()
        self.origin = origin
        self.item_at: list[Origin] = []


def bare(value: Any) -> Any:
    """``value`` as plain dict, list and scalars, without positions."""
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items()}
    if isinstance(value, list):
        return [bare(item) for item in value]
    return value


class Text(NamedTuple):
    """A file that was read. ``file`` is its name in messages; ``sealed`` says that it was encrypted."""

    text: str
    file: str
    sealed: bool = False


def read_text(path: Path, found: Collector, at: Origin | None = None, vault: Vault = NO_PASSWORDS) -> Text | None:
    """The file as text, decrypted where it is a vault; or None with a diagnostic (at ``at``, the place that named the file) saying why not."""
    text = _read(path, found, at)
    if text is None or not is_encrypted(text):
        return None if text is None else Text(text, str(path))
    try:
        # Another name: lines and columns of the clear text are not those of the file, and a message must not quote a line of either.
        return Text(vault.text(text), f"{path} (decrypted)", True)
    except VaultError as error:
        found.error("E105", f"{path}: {error}", Origin(str(path), 1, 1, len(MAGIC)), label="encrypted", help=error.hint)
        return None


def _read(path: Path, found: Collector, at: Origin | None) -> str | None:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        found.error("E109", f"cannot read {path}: {said}", at or Origin(str(path), 1, 1), help="check the path and the permissions")
        return None
    if len(data) > MAX_BYTES:
        found.error("E106", f"{path} is larger than {MAX_BYTES // 1024 // 1024} MiB", at or Origin(str(path), 1, 1))
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        found.error("E109", f"{path} is not UTF-8 text", Origin(str(path), line, column), label="this byte is not UTF-8", help="save the file as UTF-8")
        return None


def load(path: Path, found: Collector, at: Origin | None = None, vault: Vault = NO_PASSWORDS) -> Any:
    """The value of a YAML file; None when it is empty, unreadable or not YAML (the latter two are in ``found``)."""
    read = read_text(path, found, at, vault)
    return None if read is None else parse(read.text, read.file, found, vault)


def load_variables(path: Path, found: Collector, vault: Vault = NO_PASSWORDS) -> Any:
    """``load`` for a file of variables: where it is encrypted, each text in it is a Secret (templates stay templates)."""
    read = read_text(path, found, None, vault)
    value = None if read is None else parse(read.text, read.file, found, vault)
    return _sealed(value, vault) if read is not None and read.sealed else value


def _sealed(value: Any, vault: Vault) -> Any:
    """The same containers, with their places, holding Secrets."""
    if isinstance(value, Map):
        for key in value:
            value[key] = _sealed(value[key], vault)
    elif isinstance(value, Seq):
        value[:] = [_sealed(item, vault) for item in value]
    elif isinstance(value, str) and value and not has_template(value):
        vault.opened.append(Secret(value))
        return vault.opened[-1]
    return value


def parse(text: str, file: str, found: Collector, vault: Vault = NO_PASSWORDS) -> Any:
    """The value of a YAML text; see ``load``."""
    builder = _Builder(file, text, found, vault)
    try:
        return builder.build(yaml.parse(text, Loader=yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader))
    except _Stop:
        return None
    except yaml.MarkedYAMLError as error:
        builder.syntax(error)
    except yaml.reader.ReaderError as error:
        line, column = text.count("\n", 0, error.position) + 1, error.position - text.rfind("\n", 0, error.position)
        found.error("E101", "a character that YAML does not allow", Origin(file, line, max(column, 1)), label=str(error.reason))
    except (yaml.YAMLError, ValueError) as error:
        found.error("E101", f"not valid YAML: {error}", Origin(file, 1, 1))
    return None


def from_yaml(text: str) -> Any:
    """For the filters: the plain value of one YAML text; raises ValueError with the first mistake."""
    found = Collector()
    value = parse(text, "text", found)
    for mistake in found.errors:
        raise ValueError(f"not YAML: {mistake.message} ({mistake.origin})")
    return bare(value)


def from_yaml_all(text: str) -> list[Any]:
    """For the filter: the plain values of all documents of a text; raises ValueError with the first mistake."""
    parts = re.split(r"^---(?=\s|$)", text, flags=re.MULTILINE)
    return [from_yaml(part) for number, part in enumerate(parts) if number or part.strip()]


def to_yaml(value: Any, *, flow: bool | None = None, indent: int | None = None, width: int | None = None, sort_keys: bool = True) -> str:
    """For the filters: ``value`` as YAML text. ``flow`` None puts innermost collections on one line, as PyYAML does."""
    text = str(yaml.dump(value, Dumper=_Dumper, default_flow_style=flow, indent=indent, width=width, sort_keys=sort_keys, allow_unicode=True))
    # PyYAML marks the end of a lone scalar, which only matters in a stream of documents.
    return text.removesuffix("...\n") if text.endswith("\n...\n") else text


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_data(self, data: Any) -> Any:
        if isinstance(data, str):
            return self.represent_str(str(data))
        if isinstance(data, bool):
            return self.represent_bool(data)
        return self.represent_int(int(data)) if isinstance(data, int) else super().represent_data(data)


class _Stop(Exception):
    """The rest of the file is not worth reading: the mistake is in the collector."""


@dataclass
class _Open:
    """A collection that has begun and not ended. ``key`` is the pending key of a mapping."""

    value: Map | Seq
    anchor: str | None
    key: Any = None
    key_at: Origin | None = None
    size: int = 1
    merges: list[tuple[Any, Origin]] = field(default_factory=list)
    braces: bool = False


BRACES = "{{ quotes_are_missing }}"
_NO_KEY = object()
_MERGE = object()


class _Builder:
    """Puts values together from the parser's events; no recursion, so no depth of text can exhaust the stack."""

    def __init__(self, file: str, text: str, found: Collector, vault: Vault) -> None:
        self.file = file
        self.text = text
        self.found = found
        self.vault = vault
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.total = 0
        self.root: Any = None
        self.roots = 0

    def build(self, events: Iterator[Any]) -> Any:
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                at = self.place(event)
                self.add(self.scalar(event, at), at, 1, event.anchor)
            elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                self.open(event)
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                self.close()
            elif isinstance(event, yaml.AliasEvent):
                self.alias(event)
            elif isinstance(event, yaml.DocumentStartEvent) and self.roots:
                self.stop("E101", "a second document in one file", self.place(event), "everything after this line would be ignored", "remove the `---`")
        return self.root

    def stop(self, code: str, message: str, at: Origin, label: str = "", help: str = "") -> None:
        self.found.error(code, message, at, label=label, help=help)
        raise _Stop

    def place(self, event: Any) -> Origin:
        start, end = event.start_mark, event.end_mark
        if start.line == end.line:
            return Origin(self.file, start.line + 1, start.column + 1, max(end.column - start.column, 1))
        return Origin(self.file, start.line + 1, start.column + 1)

    def open(self, event: Any) -> None:
        at = Origin(self.file, event.start_mark.line + 1, event.start_mark.column + 1)
        if len(self.stack) >= MAX_DEPTH:
            self.stop("E106", f"nested more than {MAX_DEPTH} levels deep", at, "this level is too much")
        if event.tag and event.tag not in (_STANDARD + "map", _STANDARD + "seq", "!", _STANDARD + "omap"):
            self.tag(event.tag, at)
        value = Map(at) if isinstance(event, yaml.MappingStartEvent) else Seq(at)
        self.stack.append(_Open(value, event.anchor, _NO_KEY))

    def close(self) -> None:
        done = self.stack.pop()
        if done.braces:
            # Reported already; a text in its place keeps later checks from stumbling over it.
            self.add(BRACES, done.value.origin, 1, done.anchor)
            return
        if done.merges and isinstance(done.value, Map):
            self.merge(done.value, done.merges)
        self.add(done.value, done.value.origin, done.size, done.anchor)

    def alias(self, event: Any) -> None:
        at = self.place(event)
        if event.anchor not in self.anchors:
            self.stop("E101", f"alias *{event.anchor} names no anchor before it", at, "no such anchor", "an anchor cannot be used inside itself either")
        value, size = self.anchors[event.anchor]
        self.add(value, at, size, None)

    def add(self, value: Any, at: Origin, size: int, anchor: str | None) -> None:
        """A finished value goes to where it belongs: the root, the open list, or the open mapping as key or value."""
        if anchor:
            self.anchors[anchor] = (value, size)
        if not self.stack:
            self.root, self.roots = value, self.roots + 1
            return
        top = self.stack[-1]
        top.size += size
        if top.size > MAX_VALUES:
            self.stop("E106", f"more than {MAX_VALUES} values once aliases are followed", at, "reached here")
        if isinstance(top.value, Seq):
            top.value.append(value)
            top.value.item_at.append(at)
        elif top.key is _NO_KEY:
            self.key(top, value, at)
        else:
            self.pair(top, top.value, value, at)

    def key(self, top: _Open, value: Any, at: Origin) -> None:
        if isinstance(value, (Map, Seq)):
            if isinstance(value, Map):
                advice = 'write "{{ … }}" in double quotes'
                self.found.error("E108", "a template needs quotes here", top.value.origin, label="YAML reads this brace as the start of a mapping", help=advice)
                top.braces, top.key, top.key_at = True, BRACES, at
                return
            self.stop("E107", "a list cannot be a key", at, "expected a name")
        top.key, top.key_at = (_MERGE if value == "<<" and at.width == 2 else value), at

    def pair(self, top: _Open, mapping: Map, value: Any, at: Origin) -> None:
        key, key_at = top.key, top.key_at or at
        top.key = _NO_KEY
        if key is _MERGE:
            top.merges.append((value, at))
        elif key in mapping:
            first = mapping.key_at[key]
            label = f"already given on line {first.line}"
            self.found.error("E102", f"duplicate key '{key}'", key_at, label=label, help="YAML would silently keep only the last one: remove one of them")
        else:
            mapping[key], mapping.key_at[key], mapping.value_at[key] = value, key_at, at

    def merge(self, into: Map, merges: list[tuple[Any, Origin]]) -> None:
        for value, at in merges:
            for source in value if isinstance(value, Seq) else [value]:
                if not isinstance(source, Map):
                    self.found.error("E107", "`<<` merges mappings only", at, label="this is not a mapping")
                    continue
                for key in source:
                    if key not in into:
                        into[key], into.key_at[key], into.value_at[key] = source[key], source.key_at[key], source.value_at[key]

    def scalar(self, event: Any, at: Origin) -> Any:
        if event.tag and event.tag != "!":
            return self.tagged(event, at)
        if not event.implicit[0] or event.style:
            return event.value
        if is_sexagesimal(event.value):
            message = f"{event.value} is the number {plain(event.value)} in YAML"
            self.found.warning("E110", message, at, label="a base-60 number", help=f"write '{event.value}' in quotes")
        return plain(event.value)

    def tagged(self, event: Any, at: Origin) -> Any:
        if event.tag == "!unsafe":
            return Unsafe(event.value)
        if event.tag == _STANDARD + "str":
            return event.value
        if event.tag in tuple(_STANDARD + kind for kind in ("int", "float", "bool", "null")):
            return plain(event.value)
        if event.tag in _VAULT_TAGS:
            return self.decrypted(event.value, at)
        self.tag(event.tag, at)
        return event.value

    def decrypted(self, text: str, at: Origin) -> Any:
        try:
            return self.vault.secret(text)
        except VaultError as error:
            self.found.error("E105", f"this value stays closed: {error}", at, label="encrypted here", help=error.hint)
            return ""

    def tag(self, tag: str, at: Origin) -> None:
        shown = tag.replace(_STANDARD, "!!")
        self.found.error("E104", f"unknown YAML tag {shown}", at, label="not understood", help="only !vault, !unsafe and the standard tags are read")

    def syntax(self, error: yaml.MarkedYAMLError) -> None:
        """One diagnostic from the parser's complaint, in the words of the mistakes that people make."""
        # What was never closed is shown where it was opened, not at the end of the file.
        unclosed = "end of stream" in str(error.problem) or "expected ',' or" in str(error.problem)
        mark = (error.context_mark if unclosed else None) or error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        lines = self.text.splitlines() or [""]
        at = Origin(self.file, line + 1, column + 1)
        row = lines[min(line, len(lines) - 1)]
        problem = error.problem or "not valid YAML"
        tabbed = row[: len(row) - len(row.lstrip())].find("\t")
        if unclosed and error.context_mark:
            what = "quote" if "quoted" in str(error.context) else "bracket"
            self.found.error("E101", f"a {what} is not closed", at, label="opened here", help=f"add the closing {what}: the parser says {problem}")
        elif tabbed >= 0 or "'\\t'" in problem:
            where = at._replace(column=tabbed + 1) if tabbed >= 0 else at
            self.found.error("E103", "a tab in the indentation", where, label="YAML indents with spaces only", help="replace the tab by spaces")
        elif "mapping values are not allowed" in problem:
            advice = "quote a value that holds `: `, and check the indentation of this line"
            self.found.error("E101", "a `: ` where YAML expects no further key", at, label="here", help=advice)
        else:
            advice = "check indentation, quotes and brackets on this line and the one before"
            self.found.error("E101", f"not valid YAML: {problem}", at, label=error.context or "here", help=advice)
