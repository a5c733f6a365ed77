"""The case files: one small YAML file per case, and what is made of all of them together: one playbook.

Keys of a case (cases/MODULE/NAME.yml):
- ``says``       what the case is about
- ``tasks``      run in order; ``{{ root }}`` is a folder of the case's own, ``{{ fetched }}`` one on the controller
- ``prepare``    shell lines, run as root on both hosts before anything else, in the case's folder
- ``controller`` files beside the playbook (path -> text), for ``copy: src=`` and ``template:``
- ``check``, ``diff``  the whole case in check mode, with diffs
- ``refused``    the code with which nodectl refuses the case at load; Ansible must fail on the node, unless a deviation says otherwise
- ``deviation``  a heading of docs/deviations.md, and ``differs``: task number -> fields that then differ (both ways: what does not differ fails)
- ``leaves``     paths on the node that differ afterwards because of that deviation
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
CASES = FOLDER / "cases"
DEVIATIONS = FOLDER.parent.parent / "docs" / "deviations.md"
KEYS = frozenset(["says", "tasks", "prepare", "controller", "check", "diff", "refused", "deviation", "differs", "leaves", "vars"])
# Every case has a folder of its own on the node below this one.
ROOT = "/srv/twins"
# Pictures of the node lie here: one per module, and the one before the first.
PICTURES = "/run/twins"
FIRST = "first"


@dataclass(frozen=True)
class Case:
    """One case; ``id`` is MODULE/NAME."""

    id: str
    data: dict[str, Any]

    @property
    def module(self) -> str:
        return self.id.split("/")[0]

    @property
    def root(self) -> str:
        return f"{ROOT}/{self.id.replace('/', '-')}"

    @property
    def refused(self) -> str:
        return str(self.data.get("refused", ""))

    @property
    def differs(self) -> dict[str, set[str]]:
        """Task number -> the fields that differ by the case's deviation."""
        return {str(number): set(fields) for number, fields in self.data.get("differs", {}).items()}

    def block(self) -> dict[str, Any]:
        """The case as one block: its tasks carry names by which their results are found again."""
        block: dict[str, Any] = {"block": _named(self.data["tasks"], self.id), "ignore_errors": True, "vars": {"root": self.root, **self.data.get("vars", {})}}
        block.update(check_mode=bool(self.data.get("check")), diff=bool(self.data.get("diff")))
        return block


def _named(tasks: list[dict[str, Any]], prefix: str) -> list[dict[str, Any]]:
    named = []
    for number, task in enumerate(tasks, 1):
        own, parts = f"{prefix}#{number}", [key for key in ("block", "rescue", "always") if key in task]
        whole = dict(task, **({} if parts else {"name": own}))
        for key in parts:
            whole[key] = _named(task[key], f"{own}.{key}")
        named.append(whole)
    return named


def cases() -> list[Case]:
    return list(_read())


def _read() -> Iterator[Case]:
    for path in sorted(CASES.rglob("*.yml")):
        data = yaml.safe_load(path.read_text("utf-8"))
        yield Case(str(path.relative_to(CASES).with_suffix("")), data)


def playbook(chosen: list[Case], pictures: bool = False) -> str:
    """One play of all cases, module by module; with ``pictures`` of what lies on the node before the first and after each module."""
    tasks = [_picture(FIRST)] if pictures else []
    for module, group in groupby(chosen, key=lambda case: case.module):
        tasks += [case.block() for case in group] + ([_picture(module)] if pictures else [])
    return yaml.safe_dump([{"hosts": "all", "gather_facts": False, "become": True, "tasks": tasks}], sort_keys=False, allow_unicode=True)


def _picture(name: str) -> dict[str, Any]:
    return {"name": f"picture {name}", "shell": f"TWIN={{{{ inventory_hostname }}}} python3 {PICTURES}/node_state.py > {PICTURES}/{name}.json", "changed_when": False}


def headings() -> set[str]:
    """Every deviation that has a name: headings, and the bold words that begin a list entry."""
    text = DEVIATIONS.read_text("utf-8")
    bold = (" ".join(found.split()) for found in re.findall(r"^- \*\*(.+?)\*\*", text, flags=re.MULTILINE | re.DOTALL))
    return {name.rstrip(".") for name in (*re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE), *bold)}
