"""Lookups: what a template reads from the controller. Files are found where the task's role and playbook keep them."""

from __future__ import annotations

import configparser
import csv
import itertools
import os
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nodectl.lang.filters_data import flatten, subelements
from nodectl.lang.secrets import SecretText
from nodectl.lang.vault import NO_PASSWORDS, Vault, VaultError, is_encrypted

_SEQUENCE = re.compile(r"^(?:(0?x?[0-9a-f]+)-)?(0?x?[0-9a-f]+)(?:/(0?x?[0-9a-f]+))?(?::(.+))?$", re.IGNORECASE)
# Items: a loop over more would never end on real nodes, and a slip of a digit must not fill the memory.
MAX_SEQUENCE = 100_000
REFUSED: Mapping[str, str] = {"config": "nodectl has no ansible.cfg: what it may be told stands in the inventory and on the command line"}

# Those that read files or the environment; the others are pure.
READING = ("csvfile", "env", "file", "fileglob", "first_found", "ini", "template", "unvault", "vars", "varnames")
# Those that run programs, ask the network, write or know the inventory: the engine hands them in.
OUTSIDE = ("inventory_hostnames", "lines", "password", "pipe", "url")
# (terms, options) to the items; raises LookupError or ValueError.
Reader = Callable[[list[Any], Mapping[str, Any]], list[Any]]


class Lookups:
    """All lookups but `vars`. ``folders`` gives the places where a file is looked for: called with "files", "templates" or "vars"."""

    def __init__(
        self, folders: Callable[[str], Sequence[Path]] | None = None, environ: Mapping[str, str] | None = None, outside: Mapping[str, Reader] | None = None,
        vault: Vault = NO_PASSWORDS,
    ) -> None:
        self._folders = folders or (lambda _kind: ())
        self._environ = os.environ if environ is None else environ
        self._vault = vault
        self._table: dict[str, Callable[..., list[Any]]] = {
            **(outside or {}),
            "csvfile": self._csvfile,
            "env": self._env,
            "ini": self._ini,
            "unvault": lambda terms, _options: [self._read(str(term), "files") for term in terms],
            "file": self._file,
            "fileglob": self._fileglob,
            "first_found": self._first_found,
        }

    def __call__(self, name: str, terms: Sequence[Any], options: Mapping[str, Any], variables: Mapping[str, Any], render: Callable[[str], str]) -> list[Any]:
        """The items. Raises LookupError for what is not found, ValueError for wrong terms."""
        if name in REFUSED:
            raise ValueError(f"not available: {REFUSED[name]}")
        if name == "template":
            return [render(self._read(str(term), "templates")) for term in terms]
        if name == "varnames":
            return [key for key in variables for term in terms if re.search(str(term), str(key))]
        if name in self._table:
            return self._table[name](list(terms), options)
        if name in PURE:
            return PURE[name](list(terms), options)
        if name in (*OUTSIDE, "_now"):
            raise ValueError("it cannot be used here: nothing outside the files is asked while they are read")
        raise LookupError(f"no lookup of this name; known are {', '.join(sorted(names()))}")

    def _env(self, terms: list[Any], options: Mapping[str, Any]) -> list[Any]:
        default = options.get("default", "")
        return [self._environ.get(str(term), default) for term in terms]

    def _file(self, terms: list[Any], options: Mapping[str, Any]) -> list[Any]:
        texts = [self._read(str(term), "files") for term in terms]
        texts = [_same(text, text.rstrip()) if options.get("rstrip", True) else text for text in texts]
        return [_same(text, text.lstrip()) if options.get("lstrip", False) else text for text in texts]

    def _csvfile(self, terms: list[Any], options: Mapping[str, Any]) -> list[Any]:
        """The column `col` of the first row whose column `keycol` is the term."""
        delimiter = str(options.get("delimiter", "TAB")).replace("TAB", "\t")
        rows = list(csv.reader(self._read(str(options.get("file", "ansible.csv")), "files").splitlines(), delimiter=delimiter))
        key, column = int(options.get("keycol", 0)), int(options.get("col", 1))
        found = [next((row[column] for row in rows if row and row[key] == str(term)), options.get("default")) for term in terms]
        return [value for value in found if value is not None]

    def _ini(self, terms: list[Any], options: Mapping[str, Any]) -> list[Any]:
        parser = configparser.ConfigParser(
            allow_no_value=bool(options.get("allow_no_value", options.get("allow_none", False))),
            interpolation=configparser.BasicInterpolation() if options.get("interpolation", True) else None,
        )
        if options.get("case_sensitive"):
            parser.optionxform = str  # type: ignore[assignment, method-assign]
        properties = options.get("type") == "properties"
        section = "properties" if properties else str(options.get("section", "global"))
        try:
            parser.read_string(("[properties]\n" if properties else "") + self._read(str(options.get("file", "ansible.ini")), "files"))
            if options.get("re"):
                return [value for term in terms for key, value in parser.items(section) if re.match(str(term), key)]
            parser.items(section)  # a missing key has a default, a missing section has none
            return [parser.get(section, str(term), fallback=options.get("default", "")) for term in terms]
        except configparser.Error as error:
            raise ValueError(f"ini: {error}") from None

    def _fileglob(self, terms: list[Any], _options: Mapping[str, Any]) -> list[Any]:
        """Files that match, sorted; in the first folder that has any."""
        result: list[str] = []
        for term in map(str, terms):
            places = [Path(term).parent] if os.path.isabs(term) else [folder / Path(term).parent for folder in self._folders("files")]
            for place in places:
                matches = sorted(str(path) for path in place.glob(Path(term).name) if path.is_file()) if place.is_dir() else []
                if matches:
                    result += matches
                    break
        return result

    def _first_found(self, terms: list[Any], options: Mapping[str, Any]) -> list[Any]:
        names, skip = _first_found_names(terms, options)
        for name in names:
            path = next((found for kind in ("files", "templates", "vars", "tasks") if (found := self._find(name, kind))), None)
            if path is not None:
                return [str(path)]
        if skip:
            return []
        raise LookupError(f"none of {', '.join(names)} exists")

    def _find(self, name: str, kind: str) -> Path | None:
        path = Path(os.path.expanduser(name))
        candidates = [path] if path.is_absolute() else [folder / path for folder in self._folders(kind)]
        return next((candidate for candidate in candidates if os.path.isfile(candidate)), None)

    def _read(self, name: str, kind: str) -> str:
        path = self._find(name, kind)
        if path is None:
            looked = ", ".join(map(str, self._folders(kind)))
            raise LookupError(f"file '{name}' not found" + (f"; looked in {looked}" if looked and not os.path.isabs(name) else ""))
        try:
            text = path.read_bytes().decode("utf-8")  # line ends as they are
            return SecretText(self._vault.text(text)) if is_encrypted(text) else text
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not UTF-8 text") from None
        except VaultError as error:
            raise ValueError(f"{path}: {error}") from None


def _same(before: str, after: str) -> str:
    """What was secret stays so."""
    return SecretText(after) if isinstance(before, SecretText) else after


def names() -> list[str]:
    """All lookups there are."""
    return [*READING, *OUTSIDE, *PURE]


def _first_found_names(terms: list[Any], options: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Names in their order, and whether finding none is fine. Terms are names or {files, paths, skip}."""
    names: list[str] = []
    skip = bool(options.get("skip", False))
    for term in flatten([*terms, {"files": options["files"], "paths": options.get("paths", [])}] if "files" in options else terms):
        if isinstance(term, Mapping):
            paths = _words(term.get("paths", [])) or [""]
            names += [os.path.join(path, file) for path in paths for file in _words(term.get("files", []))]
            skip = skip or bool(term.get("skip", False))
        else:
            names.append(str(term))
    return names, skip


def _words(value: Any) -> list[str]:
    return [word for word in re.split(r"[,;:]", value) if word] if isinstance(value, str) else [str(item) for item in value]


def sequence(text: str) -> list[str]:
    """`start=1 end=4 format=n%02d`, `count=3`, or short `4-16/2:host%02d`. Raises ValueError."""
    short = _SEQUENCE.match(text.strip())
    if short:
        given = dict(zip(("start", "end", "stride", "format"), short.groups(), strict=True))
    else:
        given = dict(part.split("=", 1) for part in text.split() if "=" in part)
    unknown = set(given) - {"start", "end", "stride", "format", "count"}
    if unknown or not (given.get("end") or given.get("count")):
        raise ValueError(f"sequence cannot read {text!r}; write for example 'start=1 end=4 format=n%d'")
    start, stride = int(given.get("start") or "1", 0), int(given.get("stride") or "1", 0)
    end = int(given["end"], 0) if given.get("end") else start + stride * (int(given.get("count") or "0", 0) - 1)
    if not stride:
        raise ValueError("sequence: the stride is 0")
    numbers = range(start, end + (1 if stride > 0 else -1), stride)
    if len(numbers) > MAX_SEQUENCE:
        raise ValueError(f"sequence: {len(numbers)} items are more than {MAX_SEQUENCE}")
    return [(given.get("format") or "%d") % number for number in numbers]


def _sequences(terms: list[Any], options: Mapping[str, Any]) -> list[Any]:
    texts = [str(term) for term in terms] or [" ".join(f"{name}={value}" for name, value in options.items())]
    return [item for text in texts for item in sequence(text)]


def _items(terms: list[Any], _options: Mapping[str, Any]) -> list[Any]:
    return [item for term in terms for item in (term if isinstance(term, (list, tuple)) else [term])]


def _dict(terms: list[Any], _options: Mapping[str, Any]) -> list[Any]:
    pairs = _items(terms, {})
    if not all(isinstance(term, Mapping) for term in pairs):
        raise ValueError("the lookup 'dict' wants a mapping")
    return [{"key": key, "value": value} for term in pairs for key, value in term.items()]


def _subelements(terms: list[Any], _options: Mapping[str, Any]) -> list[Any]:
    if len(terms) < 2:
        raise ValueError("the lookup 'subelements' wants a list and the name of a key")
    skip = isinstance(terms[2], Mapping) and bool(terms[2].get("skip_missing")) if len(terms) > 2 else False
    last = str(terms[1]).split(".")[-1]
    # As Ansible does it: unlike the filter of this name, the lookup leaves the list itself out of the element.
    return [[{key: value for key, value in element.items() if key != last}, item] for element, item in subelements(terms[0], terms[1], skip)]


PURE: Mapping[str, Callable[[list[Any], Mapping[str, Any]], list[Any]]] = {
    "items": _items,
    "list": lambda terms, _options: terms,
    "dict": _dict,
    "flattened": lambda terms, _options: flatten(terms),
    "nested": lambda terms, _options: [list(row) for row in itertools.product(*terms)],
    "cartesian": lambda terms, _options: [list(row) for row in itertools.product(*terms)],
    "together": lambda terms, _options: [list(row) for row in itertools.zip_longest(*terms)],
    "indexed_items": lambda terms, options: [[place, item] for place, item in enumerate(_items(terms, options))],
    "subelements": _subelements,
    "sequence": _sequences,
    "random_choice": lambda terms, _options: [random.SystemRandom().choice(terms)] if terms else [],
}
