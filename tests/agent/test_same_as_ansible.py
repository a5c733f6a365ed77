"""ansible-core is the oracle: its modules on equal trees must give the same trees, the same `changed` and the same return values.

One process runs its modules for all cases (ansible_oracle.py): a playbook would take a second for each.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agent.conftest import run_module
from tests.agent.test_cases import CASES, filled, plant

ORACLE = frozenset(["file", "copy", "lineinfile", "blockinfile", "stat", "command", "shell", "slurp"])
# Where nodectl deviates, or where the case speaks of what only nodectl has; each with its reason.
DEVIATES = {
    "file-mode_decimal_refused": "nodectl refuses mode: 644, Ansible takes it for octal 01204",
    "file-recurse_does_not_follow_links": "Ansible changes what links inside the tree point to, which may lie anywhere; nodectl stays inside",
    "lineinfile-insertafter_last_line": "Ansible glues the new line to a last line that has no newline",
    "command-both": "the controller's half of Ansible refuses it",
    "copy-content_as_json": "the controller's half of Ansible makes JSON of it",
    "copy-content_into_directory": "the controller's half of Ansible refuses it",
    "copy-checksum_wrong": "the controller's half of Ansible computes the checksum",
}
# Values that both give and that do not depend on the time.
COMPARED = ("state", "mode", "size", "checksum", "rc", "stdout", "stderr", "found", "content", "encoding", "dest", "path", "src")
CHOSEN = [path for path in CASES if path.parent.name in ORACLE and f"{path.parent.name}-{path.stem}" not in DEVIATES]


def name_of(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """case name -> {first, second, root} as ansible-core did it."""
    base = tmp_path_factory.mktemp("oracle")
    jobs = []
    for path in CHOSEN:
        root = base / name_of(path)
        root.mkdir()
        case = filled(json.loads(path.read_text()), root)
        plant(root, case["tree"])
        jobs.append({"name": name_of(path), "module": case["module"], "args": case["args"], "root": str(root)})
    (base / "jobs.json").write_text(json.dumps(jobs))
    script = Path(__file__).with_name("ansible_oracle.py")
    done = subprocess.run(
        [sys.executable, str(script), str(base / "jobs.json"), str(base / "results.json")], capture_output=True, text=True, timeout=120, check=False,
        stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    results = json.loads((base / "results.json").read_text())
    return {name: {**result, "root": base / name} for name, result in results.items()}


def tree(root: Path) -> dict[str, Any]:
    """Kind, mode, content of everything below, names relative."""
    seen: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        mode = "" if path.is_symlink() else f"{stat.S_IMODE(path.stat().st_mode):04o}"
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        seen[str(path.relative_to(root))] = (path.is_dir(), mode, content)
    return seen


def relative(value: Any, root: Path) -> Any:
    return value.replace(str(root), "{root}").rstrip("/") if isinstance(value, str) else value


@pytest.mark.parametrize("path", CHOSEN, ids=name_of)
def test_same(path: Path, oracle: dict[str, Any], tmp_path: Path) -> None:
    theirs = oracle[name_of(path)]
    case = filled(json.loads(path.read_text()), tmp_path)
    plant(tmp_path, case["tree"])
    ours = run_module(case["module"], case["args"])
    assert ours.failed == theirs["first"].get("failed", False), (ours.msg, theirs["first"].get("msg"))
    snapshot = Path(f"{theirs['root']}.first")
    assert tree(tmp_path) == tree(snapshot)
    if ours.failed:
        return
    assert ours.changed == theirs["first"].get("changed", False)
    result = ours.to_result()
    for key in COMPARED:
        if key in result and key in theirs["first"]:
            assert relative(result[key], tmp_path) == relative(theirs["first"][key], theirs["root"]), key
    for key, value in result.get("stat", {}).items():
        if key in theirs["first"].get("stat", {}) and key not in ("atime", "mtime", "ctime", "inode", "dev", "blocks"):
            assert relative(value, tmp_path) == relative(theirs["first"]["stat"][key], theirs["root"]), f"stat.{key}"
    again = run_module(case["module"], case["args"])
    assert again.changed == theirs["second"].get("changed", False)


def test_deviations_name_cases() -> None:
    assert set(DEVIATES) <= {name_of(path) for path in CASES}, "a deviation of a case that does not exist"
