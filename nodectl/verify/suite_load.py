"""Suites as data: which checks in which order, how large, and until when."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodectl.verify.units import UnitError, quantity


class SuiteError(ValueError):
    """A suite that cannot be run; names the file, the step and what was expected."""


@dataclass(frozen=True)
class SuiteStep:
    """One check. ``deadline`` in seconds; ``sizes`` in bytes, ascending; ``options`` hold what else the kind takes, in base units."""

    kind: str
    deadline: float
    sizes: tuple[int, ...] = ()
    gpu_sizes: tuple[int, ...] = ()
    options: Mapping[str, float] = field(default_factory=dict)

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
_RANKS = {"iterations": "count", "warmup": "count", "timeout": "s"}
# Per kind: options and their base unit; all of them must be given, so that a suite's file says everything it does.
_KINDS: Mapping[str, Mapping[str, str]] = {
    "login": {}, "fabric": {}, "route": {}, "mounts": {}, "torch": {},
    "clock": {"max_offset": "s"},
    "node_all_reduce": _RANKS, "pairs": {**_RANKS, "rounds": "count"}, "all_reduce": _RANKS,
    "scratch": {"size": "B", "gpu_size": "B", "runtime": "s"},
    "phases": {"model_size": "B", "checkpoint_size": "B", "batches": "count", "batch_size": "B"},
}
_SIZED = {"node_all_reduce": ("gpu_sizes",), "pairs": ("sizes", "gpu_sizes"), "all_reduce": ("sizes", "gpu_sizes")}

# What a step cannot do without: which address and interpreter a group uses, and whether the folder to be measured is a mount.
_FIRST: Mapping[str, frozenset[str]] = {
    "node_all_reduce": frozenset(["torch"]), "pairs": frozenset(["route", "torch"]), "all_reduce": frozenset(["route", "torch"]),
    "scratch": frozenset(["mounts"]), "phases": frozenset(["mounts"]),
}


def load_suite(name_or_path: str) -> Suite:
    """A shipped suite by name, or a TOML file by path. Raises SuiteError."""
    shipped = Path(__file__).parent / "suites"
    path = Path(name_or_path) if name_or_path.endswith(".toml") else shipped / f"{name_or_path}.toml"
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        known = ", ".join(sorted(file.stem for file in shipped.glob("*.toml")))
        raise SuiteError(f"no suite {name_or_path!r} ({error.strerror}); shipped are {known}, or give the path of a .toml file") from None
    return suite_of(text, path.stem)


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
        missing = _FIRST.get(step.kind, frozenset()) - {earlier.kind for earlier in steps[:number]}
        if missing:
            raise SuiteError(f"suite {name}: {step.kind} needs what {' and '.join(sorted(missing))} finds out: put that step before it")
    return Suite(name, str(tables.get("summary", "")), steps, text)


def _step(entry: Mapping[str, Any], where: str) -> SuiteStep:
    kind = str(entry.get("kind", ""))
    if kind not in _KINDS:
        raise SuiteError(f"{where}: unknown kind {kind!r}; expected one of {', '.join(_KINDS)}")
    sized = _SIZED.get(kind, ())
    _check_names(entry, {"kind", "deadline", *_KINDS[kind], *sized}, f"{where} ({kind})")
    options = {key: _positive(entry[key], base, f"{where} ({kind}): {key}", 0 if key == "warmup" else 1e-9) for key, base in _KINDS[kind].items()}
    lists = {key: _sizes(entry[key], f"{where} ({kind}): {key}") for key in sized}
    return SuiteStep(kind, _positive(entry["deadline"], "s", f"{where} ({kind}): deadline"), lists.get("sizes", ()), lists.get("gpu_sizes", ()), options)


def _check_names(entry: Mapping[str, Any], known: set[str], where: str) -> None:
    for problem, names in (("unknown key", set(entry) - known), ("missing", known - set(entry))):
        if names:
            raise SuiteError(f"{where}: {problem} {', '.join(sorted(names))}; expected {', '.join(sorted(known))}")


def _sizes(value: object, where: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise SuiteError(f'{where} is {value!r}; expected a list of sizes such as ["1 MiB", "8 MiB"]')
    return tuple(sorted(int(_positive(size, "B", where, 1)) for size in value))


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
