"""Each file under cases/ is one case: a tree, arguments, what must come out. Check mode, the run and a second run are held for all.

Keys: says, module, tree, args ({root} stands for the folder), expect (changed, failed, msg as pattern, values as subset, diff), after (what the
tree then holds; null = not there), again (what the second run reports as changed, default false).
expect.predicted: whether check mode says changed, where that is not what the run says; expect.skipped_in_check: the module skips itself there.
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from nodectl.wire.outcome import Outcome
from tests.agent.conftest import RunModule

CASES = sorted((Path(__file__).parent / "cases").rglob("*.json"))
Tree = dict[str, Any]


def filled(value: Any, root: Path) -> Any:
    if isinstance(value, str):
        return value.replace("{root}", str(root))
    if isinstance(value, list):
        return [filled(item, root) for item in value]
    return {key: filled(item, root) for key, item in value.items()} if isinstance(value, dict) else value


def plant(root: Path, tree: Tree) -> None:
    for name, node in tree.items():
        path = root / name
        if node.get("dir"):
            path.mkdir()
        elif "link" in node:
            path.symlink_to(node["link"])
        else:
            path.write_bytes(node["content"].encode())
        if "link" not in node:
            path.chmod(int(node.get("mode", "0755" if node.get("dir") else "0644"), 8))


def picture(root: Path) -> dict[str, tuple[Any, ...]]:
    """Everything that a change could show in: kind, mode, content, modification time."""
    seen = {}
    for path in sorted(root.rglob("*")):
        found = os.lstat(path)
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        seen[str(path.relative_to(root))] = (stat.S_IFMT(found.st_mode), found.st_mode, content, found.st_mtime_ns)
    return seen


def hold(root: Path, after: Tree) -> None:
    for name, node in after.items():
        path = root / name
        if node is None:
            assert not os.path.lexists(path), f"{name} is there"
            continue
        assert os.path.lexists(path), f"{name} is not there"
        if "link" in node:
            assert os.readlink(path) == node["link"]
        if "content" in node:
            assert not path.is_symlink()
            assert path.read_bytes().decode() == node["content"]
        if "mode" in node:
            assert f"{stat.S_IMODE(path.stat().st_mode):04o}" == node["mode"]


def hold_outcome(outcome: Outcome, expect: Tree) -> None:
    assert outcome.failed == expect.get("failed", False), outcome.msg
    if "changed" in expect:
        assert outcome.changed == expect["changed"]
    assert re.search(expect.get("msg", ""), outcome.msg, re.DOTALL), outcome.msg
    for key, wanted in expect.get("values", {}).items():
        found = outcome.values.get(key)
        if isinstance(wanted, dict) and isinstance(found, dict):
            found = {name: found.get(name) for name in wanted}
        assert found == wanted, key
    for key, wanted in expect.get("diff", {}).items():
        assert outcome.diff[0][key] == wanted


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_case(path: Path, tmp_path: Path, run: RunModule) -> None:
    case = filled(json.loads(path.read_text()), tmp_path)
    expect = case["expect"]
    plant(tmp_path, case["tree"])
    before = picture(tmp_path)

    check = run(case["module"], case["args"], check=True)
    assert picture(tmp_path) == before, "check mode changed something"
    assert check.changed == expect.get("predicted", expect.get("changed", False)), check.msg
    assert check.skipped == expect.get("skipped_in_check", check.skipped)

    outcome = run(case["module"], case["args"])
    hold_outcome(outcome, expect)
    hold(tmp_path, case.get("after", {}))
    json.dumps(outcome.to_json())
    if outcome.failed:
        assert outcome.values.get("rc", 1) != 0 or not outcome.changed
        return
    now = picture(tmp_path)
    again = run(case["module"], case["args"])
    assert (again.changed, again.failed) == (case.get("again", False), False), again.msg
    if not case.get("again"):
        assert picture(tmp_path) == now, "the second run changed something"


def test_there_are_cases() -> None:
    assert len(CASES) > 90, "the case files were not found"
