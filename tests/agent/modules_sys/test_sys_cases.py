"""Each file under cases/MODULE/ is one case: a scripted node, arguments, what must come out. Held for all: check mode does nothing and foretells,
the run does what is expected, and a second run finds nothing to do.

Keys: says · args · files (path -> text; below {root} they are real) · devices · mounts ("source target fstype options root device") · environment · lists · list_stamps ·
lock_holder · silent (why a mount does not answer) · run (argv as glob, rc, stdout, stderr, missing, acts, after, then = files afterwards, mounts, unmounts, kernel = real files)
expect: changed, failed, skipped, msg (pattern), values (subset), facts, warnings (patterns), diff (before/after of the first), acted (globs: all that was done, in order), fed (standard
inputs) · foretold: what check mode says instead, where it differs · again: true where a second run works again · after (path -> text; null = not there).
"""

from __future__ import annotations

import fnmatch
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nodectl.agent.runner import OUR_BUG, run_step
from nodectl.wire.outcome import Outcome
from nodectl.wire.step import Step
from tests.agent.modules_sys.scripted_node import Node, stand_in

CASES = sorted((Path(__file__).parent / "cases").rglob("*.toml"))
KEYS = {"says", "args", "files", "devices", "mounts", "environment", "lists", "list_stamps", "lock_holder", "silent", "run", "expect", "foretold", "again", "after"}
Case = dict[str, Any]


def filled(value: Any, root: Path) -> Any:
    if isinstance(value, str):
        return value.replace("{root}", str(root))
    if isinstance(value, list):
        return [filled(item, root) for item in value]
    return {filled(key, root): filled(item, root) for key, item in value.items()} if isinstance(value, dict) else value


def load(path: Path, root: Path) -> Case:
    """The case, with its real files in place."""
    case: Case = filled(tomllib.loads(path.read_text("utf-8")), root)
    assert set(case) <= KEYS
    for name, content in case.get("files", {}).items():
        if name.startswith(str(root)):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(content)
    case["files"] = {name: content for name, content in case.get("files", {}).items() if not name.startswith(str(root))}
    return case


def do(node: Node, path: Path, case: Case, check: bool = False) -> Outcome:
    outcome = run_step(node, Step(1, path.parent.name, case["args"], check=check, diff=True, environment=case.get("environment", {})))
    assert OUR_BUG not in outcome.msg, outcome.values["exception"]
    return outcome


def hold(outcome: Outcome, expect: Case) -> None:
    assert outcome.failed == expect.get("failed", False), outcome.msg
    assert outcome.skipped == expect.get("skipped", False)
    if not outcome.failed:
        assert outcome.changed == expect.get("changed", False), outcome.msg
    assert re.search(expect.get("msg", ""), outcome.msg, re.DOTALL), outcome.msg
    for key, wanted in expect.get("values", {}).items():
        assert outcome.values.get(key) == wanted, key
    if "facts" in expect:
        assert outcome.facts == expect["facts"]
    for pattern in expect.get("warnings", []):
        assert any(re.search(pattern, warning) for warning in outcome.warnings), outcome.warnings
    assert bool(outcome.warnings) == bool(expect.get("warnings"))
    for key, wanted in expect.get("diff", {}).items():
        assert outcome.diff[0][key] == wanted


def hold_after(node: Node, after: Case) -> None:
    for path, wanted in after.items():
        found = node.read(path)
        assert (found.decode() if found is not None else None) == (wanted if wanted != "absent" else None), path


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_case(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = load(path, tmp_path)
    expect = case["expect"]

    node = Node(case, tmp_path)
    stand_in(monkeypatch, node, case)
    foretold = do(node, path, case, check=True)
    assert node.acted == [], "check mode did something"
    rehearsed = node.used
    hold(foretold, {**{key: expect[key] for key in ("changed", "failed", "skipped", "warnings") if key in expect}, **case.get("foretold", {})})

    node = Node(case, tmp_path)
    stand_in(monkeypatch, node, case)
    outcome = do(node, path, case)
    hold(outcome, expect)
    if "acted" in expect:
        assert len(node.acted) == len(expect["acted"]), node.acted
        assert all(map(fnmatch.fnmatchcase, node.acted, expect["acted"])), node.acted
    if "fed" in expect:
        assert node.fed == expect["fed"]
    hold_after(node, case.get("after", {}))
    if not outcome.failed:
        done = list(node.acted)
        second = do(node, path, case)
        assert (second.changed, second.failed) == (case.get("again", False), False), second.msg
        assert case.get("again") or node.acted == done, "the second run did something"
    assert rehearsed | node.used == set(range(len(node.programs))), "an answer that nobody asked for"


def test_there_are_cases() -> None:
    modules = Counter(path.parent.name for path in CASES)
    assert set(modules) >= {"apt", "package", "service", "systemd", "user", "group", "authorized_key", "getent", "sysctl", "mount", "filesystem", "modprobe"}
    assert sum(modules.values()) >= 120
