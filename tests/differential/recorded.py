"""What ansible-core said and left, kept per module: recorded/MODULE.json. `python -m tests.differential.record` writes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.differential.case_files import FOLDER, Case
from tests.differential.compare import FIELDS, module_of
from tests.differential.twins import Left, Side, Told

RECORDED = FOLDER / "recorded"
# Of what a task returned, beside the values that fields.toml names.
ALWAYS = ("changed", "failed", "skipped", "item", "results")
# What a failed task said is kept for whoever reads the recording; it is not compared.
SAID = 300


def digest(case: Case) -> str:
    """Changes with everything in the case that Ansible sees."""
    seen = {key: case.data[key] for key in sorted(case.data) if key not in ("says", "deviation", "differs", "leaves", "refused")}
    return hashlib.sha256(json.dumps(seen, sort_keys=True, default=str).encode()).hexdigest()[:16]


def path_of(module: str) -> Path:
    return RECORDED / f"{module}.json"


def save(module: str, chosen: list[Case], side: Side, by: dict[str, str]) -> None:
    """``by``: what was asked, name -> version."""
    told = {task: _kept(one, case, task) for case in chosen for task, one in side.told.items() if task.startswith(f"{case.id}#")}
    data = {"by": by, "cases": {case.id: digest(case) for case in chosen}, "told": told, "left": side.left[module]}
    RECORDED.mkdir(exist_ok=True)
    path_of(module).write_text(json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")


def load(module: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path_of(module).read_text("utf-8"))
    return data


def side(modules: Iterable[str]) -> Side:
    """All that is recorded of ``modules``, as if Ansible had just done it."""
    told: dict[str, Told] = {}
    left: dict[str, Left] = {}
    for module in modules:
        data = load(module)
        told.update({task: Told(**one) for task, one in data["told"].items()})
        left[module] = data["left"]
    return Side(told, left)


def _kept(told: Told, case: Case, task: str) -> dict[str, Any]:
    number = task.partition("#")[2].split(".")[0]
    table = FIELDS.get(module_of(case.data["tasks"][int(number) - 1]), {}) if number.isdigit() else {}
    names = {name.split(".")[0] for key in ("fields", "failed", "unchanged") for name in table.get(key, [])}
    kept: dict[str, Any] = {"status": told.status, "result": _pruned(told.result, names)}
    return {**kept, "diff": told.diff} if case.data.get("diff") and told.diff else kept


def _pruned(result: dict[str, Any], names: set[str]) -> dict[str, Any]:
    own = {key for key in result if not key.startswith("_") and key not in ("invocation", "ansible_facts", "exception")} if "*" in names else set()
    kept = {key: value for key, value in result.items() if key in ALWAYS or key in names or key in own}
    if result.get("failed") and "msg" not in kept:
        kept["msg"] = str(result.get("msg", ""))[:SAID]
    if isinstance(kept.get("results"), list):
        kept["results"] = [_pruned(one, names) if isinstance(one, dict) else one for one in kept["results"]]
    return kept
