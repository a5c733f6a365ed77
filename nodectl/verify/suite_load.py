"""Suites as data: which checks in which order, how large, and until when."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from nodectl.diagnostics.model import Collector, Diagnostic
from nodectl.verify.judging.toml_places import Table, syntax_error, tables
from nodectl.verify.judging.units import UnitError, quantity
from nodectl.verify.kinds import KINDS, MAY_BE_ZERO, Kind
from nodectl.wire.origin import Origin


class SuiteError(ValueError):
    """A suite that cannot be run; ``diagnostics`` has each mistake with its place."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("; ".join(f"{one.origin}: {one.message}" if one.origin else one.message for one in diagnostics))
        self.diagnostics = tuple(diagnostics)


@dataclass(frozen=True)
class SuiteStep:
    """One check. ``deadline`` in seconds; ``sizes`` in bytes, ascending; ``options`` hold what else the kind takes, in base units,
    ``words`` its lists of words. It is done ``repeat`` times in a row, and has to pass each time."""

    kind: str
    deadline: float
    sizes: tuple[int, ...] = ()
    gpu_sizes: tuple[int, ...] = ()
    options: Mapping[str, float] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    repeat: int = 1

    def option(self, name: str) -> float:
        return self.options[name]


@dataclass(frozen=True)
class Suite:
    name: str
    summary: str
    steps: tuple[SuiteStep, ...]
    text: str = ""

    def step(self, kind: str) -> SuiteStep | None:
        return next((step for step in self.steps if step.kind == kind), None)


# In seconds. A step that may take longer bounds nothing: whoever waits has gone home.
LONGEST = 86_400.0
# A thousand of the shortest step take a night; more is a slip of the finger.
MOST_REPEATS = 1000
_HELP = "nodectl's suites are TOML files; name a shipped one, or give the path of yours"
SUITES = Path(__file__).parent / "suites"


def load_suite(name_or_path: str) -> Suite:
    """A shipped suite by name, or a TOML file by path. Raises SuiteError."""
    own = name_or_path.endswith(".toml")
    path = Path(name_or_path) if own else SUITES / f"{name_or_path}.toml"
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(shipped_texts())
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        message = f"no suite {name_or_path!r} ({why}); shipped are {known}, or give the path of a .toml file"
        raise SuiteError([Diagnostic("E407", message, help=_HELP)]) from None
    return suite_of(text, path.stem, name_or_path if own else path.name)


def shipped_texts() -> dict[str, str]:
    """The shipped suites' files by name."""
    return {path.stem: path.read_text("utf-8") for path in sorted(SUITES.glob("*.toml"))}


def suite_of(text: str, name: str, file: str = "") -> Suite:
    """The suite in ``text``; ``file`` is for messages. Raises SuiteError with all that is wrong in it."""
    found = Collector()
    suite = _Reader(name, file or f"{name}.toml", text, found).suite()
    if found.errors or suite is None:
        raise SuiteError(found.errors)
    return suite


class _Wrong(Exception):
    """One mistake; ``key`` is where."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass
class _Reader:
    name: str
    file: str
    text: str
    found: Collector

    def wrong(self, message: str, at: Origin | None = None) -> None:
        self.found.error("E407", f"suite {self.name}{message}", at, help=_HELP)

    def suite(self) -> Suite | None:
        try:
            parsed = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            self.wrong(f" is not TOML: {error}", syntax_error(str(error), self.file))
            return None
        unknown = sorted(set(parsed) - {"summary", "step"})
        if unknown:
            self.wrong(f": unknown key {', '.join(unknown)}; expected summary and [[step]] tables")
        entries = parsed.get("step", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            self.wrong(": step must be [[step]] tables, with two brackets")
            return None
        if not entries:
            self.wrong(" has no [[step]]: it would prove nothing")
        places = tables(self.text, self.file, "step")
        at = places if len(places) == len(entries) else [Table(Origin(self.file, 1, 1))] * len(entries)
        steps = [step for number, entry in enumerate(entries) if (step := self.step(entry, number + 1, at[number])) is not None]
        if len(steps) == len(entries):
            self.order(steps, at)
        return Suite(self.name, str(parsed.get("summary", "")), tuple(steps), self.text)

    def step(self, entry: Mapping[str, Any], number: int, at: Table) -> SuiteStep | None:
        name = entry.get("kind", "")
        if not isinstance(name, str) or name not in KINDS:
            near = get_close_matches(str(name), KINDS, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(KINDS)}"
            self.wrong(f", step {number}: unknown kind {name!r}; {advice}", at.value("kind"))
            return None
        before = len(self.found.errors)
        where, kind = f", step {number} ({name})", KINDS[name]
        known = {"kind", "deadline", *kind.options, *kind.sized, *kind.words}
        for problem, names in (("unknown key", set(entry) - known - {"repeat"}), ("missing", known - set(entry))):
            if names:
                places = [at.key(one) for one in sorted(names)]
                self.wrong(f"{where}: {problem} {', '.join(sorted(names))}; expected {', '.join(sorted(known))}", places[0])
        read: dict[str, Any] = {}
        for key in [one for one in entry if one in known | {"repeat"} and one != "kind"]:
            try:
                read[key] = _value(kind, key, entry[key])
            except _Wrong as wrong:
                self.wrong(f"{where}: {wrong.key} {wrong}", at.value(key))
        if len(self.found.errors) > before:
            return None
        return SuiteStep(
            name, read["deadline"], read.get("sizes", ()), read.get("gpu_sizes", ()), {key: read[key] for key in kind.options},
            {key: read[key] for key in kind.words}, int(read.get("repeat", 1)),
        )

    def order(self, steps: Sequence[SuiteStep], at: Sequence[Table]) -> None:
        for number, step in enumerate(steps):
            earlier = {one.kind for one in steps[:number]}
            if step.kind in earlier:
                self.wrong(f": {step.kind} stands there twice; repeat = 2 does a step twice", at[number].value("kind"))
            missing = KINDS[step.kind].after - earlier
            if missing:
                self.wrong(f": {step.kind} needs what {' and '.join(sorted(missing))} finds out: put that step before it", at[number].value("kind"))


def _value(kind: Kind, key: str, value: object) -> Any:
    """Raises _Wrong."""
    if key in kind.sized:
        return _sizes(key, value)
    if key in kind.words:
        return _words(key, value, kind.words[key])
    if key == "repeat":
        number = _positive(key, value, "count", 1)
        if number > MOST_REPEATS:
            raise _Wrong(key, f"is {value!r}; expected at most {MOST_REPEATS}")
        return number
    return _positive(key, value, "s" if key == "deadline" else kind.options[key], 0 if key in MAY_BE_ZERO else 1e-9)


def _sizes(key: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise _Wrong(key, f'is {value!r}; expected a list of sizes such as ["1 MiB", "8 MiB"]')
    return tuple(sorted(int(_positive(key, size, "B", 1)) for size in value))


def _words(key: str, value: object, allowed: tuple[str, ...]) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or any(word not in allowed for word in value) or len(set(value)) < len(value):
        raise _Wrong(key, f"is {value!r}; expected a list of some of {', '.join(allowed)}, each once")
    return tuple(value)


def _positive(key: str, value: object, base: str, least: float) -> float:
    try:
        number = quantity(value, base)
    except UnitError as error:
        raise _Wrong(key, f"is wrong: {error}") from None
    if number < least:
        raise _Wrong(key, f"is {value!r}; expected more than zero")
    if base == "count" and not number.is_integer():
        raise _Wrong(key, f"is {value!r}; expected a whole number")
    if base == "s" and number > LONGEST:
        raise _Wrong(key, f"is {value!r}; expected at most a day")
    return number
