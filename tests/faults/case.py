"""One fault as data: what is broken, what is asked, and what must come out. A new case is a new file in cases/, without code.

about     one line: what is broken, as an operator would say it
simulated why this is a stand-in, "" where the fault is real
steps     kinds of steps to run, in the order of a suite; their options come from the shipped suites
change    per kind: options that differ (a shorter deadline, larger sizes)
vars      inventory variables of this case
share     cases with the same word may run together, each on a host of its own
fault     [[fault]] name, value, and `on`: "bad" (the one host that is to be named), "all" or "store"
expect    verdict and status of the bad host (of all hosts where a fault is on all or on the store), `check` that says so, `words` of its reason,
          `also`: other checks that may say no too (patterns with *), `everyone`: true where every host is affected and shows it
bound     seconds that verify may take
login     seconds that one login may take (`--timeout`), where a case is about nodes that cannot be reached: shorter waits for the same proof
first     true: the bad host is the first of the inventory, which holds the rendezvous of every group
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent / "cases"
SUITES = Path(__file__).parents[2] / "nodectl/verify/suites"
KEYS = frozenset(["about", "simulated", "steps", "change", "vars", "share", "fault", "expect", "bound", "login", "first"])
EXPECT = frozenset(["verdict", "status", "check", "words", "also", "everyone"])
PLACES = ("bad", "all", "store")


class CaseError(ValueError):
    """A case file that says nothing that could be tried."""


@dataclass(frozen=True)
class Applied:
    """One fault of a case. ``on`` is one of PLACES."""

    name: str
    value: str = ""
    on: str = "bad"


@dataclass(frozen=True)
class Expected:
    """What the bad host (or everyone) must show. An empty ``check`` with status unreachable: nothing of it can be measured."""

    verdict: str
    check: str = ""
    words: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    status: str = "ok"
    everyone: bool = False

    def allows(self, check: str) -> bool:
        """Whether this check may say no because of the fault."""
        return any(fnmatchcase(check, pattern) for pattern in (self.check, *self.also) if pattern)


@dataclass(frozen=True)
class Case:
    name: str
    about: str
    steps: tuple[str, ...]
    faults: tuple[Applied, ...]
    expect: Expected
    bound: float
    simulated: str = ""
    share: str = ""
    first: bool = False
    login: int = 0
    change: dict[str, dict[str, Any]] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)

    @property
    def everywhere(self) -> bool:
        """Whether it is not about one host: no fault is on a bad one alone."""
        return all(fault.on in ("all", "store") for fault in self.faults)


def load_cases(folder: Path = CASES) -> list[Case]:
    """All cases by name. Raises CaseError."""
    return [case_of(path.stem, path.read_text("utf-8")) for path in sorted(folder.glob("*.toml"))]


def case_of(name: str, text: str) -> Case:
    """Raises CaseError with what is wrong."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CaseError(f"{name}: {error}") from None
    expect = data.get("expect", {})
    for what, found, known, needed in (("", data, KEYS, {"about", "steps", "fault", "expect", "bound"}), ("expect: ", expect, EXPECT, {"verdict"})):
        if set(found) - known or needed - set(found):
            raise CaseError(f"{name}: {what}unknown {sorted(set(found) - known)}, missing {sorted(needed - set(found))}")
    faults = tuple(Applied(fault["name"], str(fault.get("value", "")), fault.get("on", "bad")) for fault in data["fault"])
    if not faults or any(fault.on not in PLACES for fault in faults):
        raise CaseError(f"{name}: fault.on must be one of {', '.join(PLACES)}")
    return Case(
        name, data["about"], tuple(data["steps"]), faults,
        Expected(expect["verdict"], expect.get("check", ""), tuple(expect.get("words", ())), tuple(expect.get("also", ())), expect.get("status", "ok"), bool(expect.get("everyone", False))),
        float(data["bound"]), data.get("simulated", ""), data.get("share", ""), bool(data.get("first", False)), int(data.get("login", 0)),
        data.get("change", {}), data.get("vars", {}),
    )  # fmt: skip


def suite_text(steps: tuple[str, ...], change: dict[str, dict[str, Any]]) -> str:
    """A suite of these kinds with the shipped options, as TOML. Raises CaseError for a kind that no shipped suite has."""
    shipped: dict[str, dict[str, Any]] = {}
    for path in sorted(SUITES.glob("*.toml"), key=lambda path: path.stem != "quick", reverse=True):
        shipped.update({step["kind"]: step for step in tomllib.loads(path.read_text("utf-8"))["step"]})
    missing = [kind for kind in steps if kind not in shipped]
    if missing or set(change) - set(steps):
        raise CaseError(f"no shipped suite has {', '.join(missing)}; changed without being a step: {sorted(set(change) - set(steps))}")
    lines = ['summary = "The steps that matter for one fault"']
    for kind in steps:
        lines += ["", "[[step]]", *(f"{key} = {_toml(value)}" for key, value in {**shipped[kind], **change.get(kind, {})}.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else repr(value)
