"""Suites as data: which checks in which order, how large, and until when."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodectl.verify.kinds import KINDS, MAY_BE_ZERO
from nodectl.verify.units import UnitError, quantity


class SuiteError(ValueError):
    """A suite that cannot be run; names the file, the step and what was expected."""


@dataclass(frozen=True)
class SuiteStep:
    """One check. ``deadline`` in seconds; ``sizes`` in bytes, ascending; ``options`` hold what else the kind takes, in base units,
    ``words`` its lists of words."""

    kind: str
    deadline: float
    sizes: tuple[int, ...] = ()
    gpu_sizes: tuple[int, ...] = ()
    options: Mapping[str, float] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
SUITES = Path(__file__).parent / "suites"


def load_suite(name_or_path: str) -> Suite:
    """A shipped suite by name, or a TOML file by path. Raises SuiteError."""
    path = Path(name_or_path) if name_or_path.endswith(".toml") else SUITES / f"{name_or_path}.toml"
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        known = ", ".join(sorted(file.stem for file in SUITES.glob("*.toml")))
        raise SuiteError(f"no suite {name_or_path!r} ({error.strerror}); shipped are {known}, or give the path of a .toml file") from None
    return suite_of(text, path.stem)


def shipped_texts() -> dict[str, str]:
    """The shipped suites' files by name."""
    return {path.stem: path.read_text("utf-8") for path in sorted(SUITES.glob("*.toml"))}


def suite_of(text: str, name: str) -> Suite:
    """The suite in ``text``. Raises SuiteError."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"suite {name} is not TOML: {error}") from None
    unknown = sorted(set(tables) - {"summary", "step"})
    if unknown:
        raise SuiteError(f"suite {name}: unknown key {', '.join(unknown)}; expected summary and [[step]] tables")
    entries = tables.get("step", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise SuiteError(f"suite {name}: step must be [[step]] tables, with two brackets")
    steps = tuple(_step(entry, f"suite {name}, step {number}") for number, entry in enumerate(entries, 1))
    if not steps:
        raise SuiteError(f"suite {name} has no [[step]]: it would prove nothing")
    doubled = sorted({step.kind for step in steps if sum(other.kind == step.kind for other in steps) > 1})
    if doubled:
        raise SuiteError(f"suite {name}: {', '.join(doubled)} stands there twice")
    for number, step in enumerate(steps):
        missing = KINDS[step.kind].after - {earlier.kind for earlier in steps[:number]}
        if missing:
            raise SuiteError(f"suite {name}: {step.kind} needs what {' and '.join(sorted(missing))} finds out: put that step before it")
    return Suite(name, str(tables.get("summary", "")), steps, text)


def _step(entry: Mapping[str, Any], where: str) -> SuiteStep:
    name = str(entry.get("kind", ""))
    if name not in KINDS:
        raise SuiteError(f"{where}: unknown kind {name!r}; expected one of {', '.join(KINDS)}")
    kind, at = KINDS[name], f"{where} ({name})"
    _check_names(entry, {"kind", "deadline", *kind.options, *kind.sized, *kind.words}, at)
    options = {key: _positive(entry[key], base, f"{at}: {key}", 0 if key in MAY_BE_ZERO else 1e-9) for key, base in kind.options.items()}
    lists = {key: _sizes(entry[key], f"{at}: {key}") for key in kind.sized}
    words = {key: _words(entry[key], allowed, f"{at}: {key}") for key, allowed in kind.words.items()}
    deadline = _positive(entry["deadline"], "s", f"{at}: deadline")
    return SuiteStep(name, deadline, lists.get("sizes", ()), lists.get("gpu_sizes", ()), options, words)


def _check_names(entry: Mapping[str, Any], known: set[str], where: str) -> None:
    for problem, names in (("unknown key", set(entry) - known), ("missing", known - set(entry))):
        if names:
            raise SuiteError(f"{where}: {problem} {', '.join(sorted(names))}; expected {', '.join(sorted(known))}")


def _sizes(value: object, where: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise SuiteError(f'{where} is {value!r}; expected a list of sizes such as ["1 MiB", "8 MiB"]')
    return tuple(sorted(int(_positive(size, "B", where, 1)) for size in value))


def _words(value: object, allowed: tuple[str, ...], where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or any(word not in allowed for word in value) or len(set(value)) < len(value):
        raise SuiteError(f"{where} is {value!r}; expected a list of some of {', '.join(allowed)}, each once")
    return tuple(value)


def _positive(value: object, base: str, where: str, least: float = 1e-9) -> float:
    try:
        number = quantity(value, base)
    except UnitError as error:
        raise SuiteError(f"{where}: {error}") from None
    if number < least:
        raise SuiteError(f"{where} is {value!r}; expected more than zero")
    if base == "count" and not number.is_integer():
        raise SuiteError(f"{where} is {value!r}; expected a whole number")
    if base == "s" and number > LONGEST:
        raise SuiteError(f"{where} is {value!r}; expected at most a day")
    return number
