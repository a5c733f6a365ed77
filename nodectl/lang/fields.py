"""Reads the keys of one mapping with the types the language wants; each mistake is told at the very key or value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from nodectl.diagnostics.model import Collector
from nodectl.lang import document
from nodectl.lang.document import Map, Seq, bare
from nodectl.lang.seen import Seen
from nodectl.lang.task import Become, Template
from nodectl.lang.template import Templar
from nodectl.lang.unsafe import Unsafe, has_template
from nodectl.lang.vault import NO_PASSWORDS, Vault
from nodectl.wire.origin import Origin
from nodectl.wire.params import Param, Wrong, convert

_IDENTIFIER = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
# Words that an expression could never mean as a name (Jinja's own list, as in ansible-core).
_RESERVED = frozenset(["true", "false", "none", "True", "False", "None", "not"])
_BOOL = Param(type="bool")


def nearest(word: str, known: Iterable[str]) -> str:
    """'did you mean …?' for a misspelt word, or nothing."""
    near = get_close_matches(word, list(known), n=1)
    return f"did you mean '{near[0]}'?" if near else ""


def looked_in(folders: Iterable[Path]) -> str:
    """Where something was searched. Absolute: whoever reads it need not know where the command ran."""
    return "looked in " + ", ".join(dict.fromkeys(str(folder.absolute()) for folder in folders))


def is_variable_name(name: Any) -> bool:
    """Whether an expression can use ``name``: letters, digits and _, and no word of the language."""
    return isinstance(name, str) and bool(_IDENTIFIER.match(name)) and name not in _RESERVED


def kind_of(value: Any) -> str:
    names = {dict: "a mapping", Map: "a mapping", list: "a list", Seq: "a list", str: "text", bool: "a boolean", type(None): "nothing"}
    return names.get(type(value), "a number" if isinstance(value, (int, float)) else "text")


def is_template(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, Unsafe) and has_template(value)


class Checker:
    """Collects mistakes, and knows Jinja's syntax. One per load."""

    def __init__(self, found: Collector, vault: Vault = NO_PASSWORDS) -> None:
        self.found = found
        self.vault = vault
        self.seen = Seen()
        self._templar = Templar()

    def read(self, path: Path, at: Origin | None = None) -> Any:
        """The value of a YAML file, decrypted where it is a vault; ``at`` is the place that names it."""
        self.seen.files.add(path.resolve())
        return document.load(path, self.found, at, self.vault)

    def read_variables(self, path: Path) -> Any:
        """``read`` for a file of variables: what was encrypted is secret."""
        self.seen.files.add(path.resolve())
        return document.load_variables(path, self.found, self.vault)

    def error(self, code: str, message: str, at: Origin | None, label: str = "", help: str = "") -> None:
        self.found.error(code, message, at, label=label, help=help)

    def templates(self, value: Any, at: Origin) -> None:
        """Checks the syntax of every template in a value, however deep."""
        if is_template(value):
            self._syntax(value, at, False)
        elif isinstance(value, Map):
            for key, item in value.items():
                self.templates(item, value.value_at[key])
        elif isinstance(value, Seq):
            for item, where in zip(value, value.item_at, strict=True):
                self.templates(item, where)

    def condition(self, value: Any, at: Origin) -> None:
        """Checks one bare expression (when, until, …)."""
        if isinstance(value, (bool, type(None))) or value == "":
            return
        if not isinstance(value, str):
            self.error("E209", f"a condition is an expression, not {kind_of(value)}", at, "expected an expression", "write it as text: `x == 1`")
        elif is_template(value):
            whole = value.strip()
            inner = whole[2:-2].strip() if whole.startswith("{{") and whole.endswith("}}") and whole.count("{{") == 1 else ""
            advice = f"write it without braces: {inner}" if inner else "a condition is an expression already: write it without {{ }}"
            self.found.warning("E214", "a condition with {{ }}", at, label="braces are not needed here", help=advice)
            self._syntax(value, at, False)
        else:
            self._syntax(value, at, True)

    def _syntax(self, text: str, at: Origin, expression: bool) -> None:
        (self.seen.expression if expression else self.seen.template)(text)
        wrong = self._templar.syntax_error(text, expression=expression)
        if wrong:
            message, line = wrong
            where = f"in line {line} of this text" if line > 1 else "here"
            kind = "expression" if expression else "template"
            advice = "to compare, write ==" if message.startswith("unexpected '='") else self._templar.nearest_name(message)
            self.error("E213", f"the {kind} cannot be read: {message}", at, where, advice)

    def file(self, text: str, path: str) -> None:
        """Checks the syntax of a template file."""
        self.seen.template(text)
        self.seen.files.add(Path(path).resolve())
        wrong = self._templar.file_syntax_error(text)
        if wrong:
            row = (text.splitlines() or [""])[max(wrong[1] - 1, 0) :][:1] or [""]
            indent = len(row[0]) - len(row[0].lstrip())
            self.error("E213", f"the template cannot be read: {wrong[0]}", Origin(path, max(wrong[1], 1), indent + 1, max(len(row[0].strip()), 1)), "here")


class Fields:
    """The keys of one mapping; every reader gives a default for what is absent or wrong."""

    def __init__(self, value: Map, checker: Checker) -> None:
        self.map = value
        self.check = checker

    @property
    def start(self) -> Origin:
        """The first key: where a person says that this task or play stands."""
        return next(iter(self.map.key_at.values()), self.map.origin)

    def __contains__(self, key: str) -> bool:
        return key in self.map

    def at(self, key: str) -> Origin:
        return self.map.value_at.get(key, self.map.origin)

    def key_at(self, key: str) -> Origin:
        return self.map.key_at.get(key, self.map.origin)

    def wrong(self, key: str, expected: str, help: str = "") -> None:
        self.check.error("E209", f"'{key}' wants {expected}, not {kind_of(self.map[key])}", self.at(key), f"expected {expected}", help)

    def text(self, key: str, default: str = "") -> str:
        """Text without templates evaluated; numbers count as text."""
        value = self.map.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            self.wrong(key, "text", "write it in quotes" if isinstance(value, bool) else "")
            return default
        self.check.templates(value, self.at(key))
        return str(value)

    def template(self, key: str, default: Template = None) -> Template:
        """Any value in which texts may be templates."""
        value = self.map.get(key, default)
        self.check.templates(value, self.at(key))
        return bare(value)

    def flag(self, key: str, default: Template = None) -> Template:
        """A boolean, or a template that gives one later."""
        value = self.map.get(key)
        if value is None:
            return default
        if is_template(value):
            self.check.templates(value, self.at(key))
            return str(value)
        try:
            return convert(_BOOL, value)
        except Wrong as wrong:
            self.check.error("E209", f"'{key}' {wrong}", self.at(key), "expected true or false")
            return default

    def fixed_flag(self, key: str) -> bool | None:
        """A boolean that must be known before the run."""
        value = self.flag(key)
        if isinstance(value, str):
            advice = "it steers the run itself, before any host's variables are known"
            self.check.error("E209", f"'{key}' cannot be a template", self.at(key), "expected true or false", advice)
            return None
        return value if isinstance(value, bool) else None

    def items(self, key: str) -> Iterator[tuple[Any, Origin]]:
        """The items of a list, or the one value that stands for a list."""
        value = self.map.get(key)
        if isinstance(value, Seq):
            yield from zip(value, value.item_at, strict=True)
        elif value is not None:
            yield value, self.at(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """A text or a list of texts."""
        result = []
        for item, at in self.items(key):
            if isinstance(item, (str, int, float)) and not isinstance(item, bool):
                self.check.templates(item, at)
                result.append(str(item))
            else:
                self.check.error("E209", f"'{key}' wants texts, not {kind_of(item)}", at, "expected text")
        return tuple(result)

    def words(self, key: str) -> frozenset[str]:
        """A list of words, or words with commas between (tags)."""
        return frozenset(word.strip() for text in self.texts(key) for word in text.split(",") if word.strip())

    def conditions(self, key: str) -> tuple[Template, ...]:
        """One expression or a list of them, each checked; null says nothing."""
        result = []
        for item, at in self.items(key):
            self.check.condition(item, at)
            result.append(item)
        return tuple(result)

    def variables(self, key: str = "vars") -> dict[str, Template]:
        """A mapping whose keys are names of variables."""
        value = self.map.get(key)
        if value is None:
            return {}
        if not isinstance(value, Map):
            self.wrong(key, "a mapping", "write name: value pairs")
            return {}
        return variables_of(value, self.check)

    def name(self, key: str) -> str:
        """The name of a variable (register, loop_var)."""
        value = self.text(key)
        if value and not is_variable_name(value):
            advice = "a word of the language: choose another" if value in _RESERVED else "write " + re.sub(r"\W", "_", value)
            self.check.error("E221", f"'{value}' cannot be the name of a variable", self.at(key), "expected letters, digits and _", advice)
        return value

    def environment(self) -> tuple[Template, ...]:
        """One mapping, a list of mappings, or templates of such."""
        result = []
        for item, at in self.items("environment"):
            if isinstance(item, Map) or is_template(item):
                self.check.templates(item, at)
                result.append(bare(item))
            else:
                self.check.error("E209", f"'environment' wants a mapping, not {kind_of(item)}", at, "expected NAME: value pairs")
        return tuple(result)

    def become(self) -> Become:
        return Become(self.flag("become"), self.template("become_user"), self.template("become_method"), self.template("become_flags"))

    def unknown(self, known: Sequence[str], what: str) -> None:
        """A diagnostic for each key that is not in ``known``."""
        for key in self.map:
            if key not in known:
                self.check.error("E202", f"unknown keyword '{key}' in {what}", self.map.key_at[key], "not a keyword", nearest(str(key), known))


def variables_of(value: Map, checker: Checker) -> dict[str, Template]:
    """The mapping as variables: names checked, templates checked, positions dropped."""
    result = {}
    for name, item in value.items():
        at = value.key_at[name]
        if not is_variable_name(name):
            expected = "a word of the language" if str(name) in _RESERVED else "expected letters, digits and _, not starting with a digit"
            checker.error("E221", f"'{name}' cannot be the name of a variable", at, expected)
            continue
        checker.templates(item, value.value_at[name])
        result[name] = bare(item)
    return result
