"""kill -9 at any moment of a step that writes: the file is wholly the old or wholly the new one, and the next run takes away what was left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nodectl.agent.own_folder import PREFIX

# Large enough that writing it takes as long as everything else of a step.
LONG = "".join(f"line {number} of a file that is written\n" for number in range(8000))
KILLS = 50
# With the module's own programs a kill takes longer.
SLOW_KILLS = 15


def steps(folder: Path) -> dict[str, tuple[list[Any], Path]]:
    """Module -> (two steps, the file that they write)."""
    file, fstab, sysctl = folder / "file", folder / "fstab", folder / "sysctl.conf"
    lines = {"path": str(file), "insertbefore": "BOF"}
    mount = {"path": "/mnt/of-a-test", "src": "none", "fstype": "tmpfs", "fstab": str(fstab), "state": "present"}
    return {
        "copy": ([["copy", {"content": text + LONG, "dest": str(file), "mode": mode}] for text, mode in (("a\n", "0640"), ("b\n", "0640"))], file),
        "lineinfile": ([["lineinfile", {**lines, "regexp": "^first", "line": f"first {word}"}] for word in ("a", "b")], file),
        "blockinfile": ([["blockinfile", {**lines, "block": word * 2000}] for word in ("a", "b")], file),
        "replace": ([["replace", {"path": str(file), "regexp": old, "replace": new}] for old, new in (("^line", "LINE"), ("^LINE", "line"))], file),
        "mount": ([["mount", {**mount, "opts": f"size={size}m"}] for size in (1, 2)], fstab),
        "sysctl": ([["sysctl", {"name": "kernel.hostname", "value": word, "sysctl_file": str(sysctl), "reload": False}] for word in ("a", "b")], sysctl),
    }


def killed(order: dict[str, Any], around: tuple[str, ...] = ()) -> dict[str, Any]:
    argv = [*around, sys.executable, "-m", "tests.agent.killed"]
    done = subprocess.run(argv, input=json.dumps(order), capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("module", ["copy", "lineinfile", "blockinfile", "replace", "mount", "sysctl"])
def test_old_or_new_and_never_half(module: str, tmp_path: Path) -> None:
    given, file = steps(tmp_path)[module]
    if module not in ("mount", "sysctl"):
        file.write_text("first\n" + LONG)
    else:
        file.write_text("# of the machine\n" * 3000)
    file.chmod(0o640)
    found = killed({"steps": given, "file": str(file), "kills": KILLS, "seed": 7})
    assert found["differ"], "both steps make the same of it: nothing was tested"
    assert found["wrong"] == []
    assert found["after"] == []


def test_what_a_validation_left_is_gone_after_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    given = [["copy", {"content": word, "dest": str(tmp_path / "file"), "validate": "test -s %s"}] for word in ("a", "b")]
    found = killed({"steps": given, "file": str(tmp_path / "file"), "kills": KILLS, "seed": 7, "longest": 0.03})
    assert [name for name in found["left"] if name.startswith(PREFIX)], "no kill fell into a validation: nothing was tested"
    assert found["wrong"] == []
    assert found["after"] == []


def test_kills_fall_into_writes(tmp_path: Path) -> None:
    """They leave files behind, and a write in place would be seen as half a file."""
    given, file = steps(tmp_path)["copy"]
    order = {"steps": given, "file": str(file), "kills": KILLS, "seed": 7}
    assert killed(order)["left"] == [".file.nodectl-0"]
    assert "half" in killed({**order, "in_place": True})["wrong"][0]


@pytest.mark.lab
def test_accounts_too(tmp_path: Path) -> None:
    """In an /etc of its own: nothing of this machine's is touched."""
    setup = (
        f"mount -t tmpfs none {tmp_path} && mkdir {tmp_path}/up {tmp_path}/work && "
        f"mount -t overlay overlay -o lowerdir=/etc,upperdir={tmp_path}/up,workdir={tmp_path}/work /etc && exec \"$@\""
    )
    given = [["user", {"name": "of-a-test", "comment": word, "create_home": False}] for word in ("a", "b")]
    order = {"steps": given, "file": "/etc/passwd", "kills": SLOW_KILLS, "seed": 7, "longest": 0.15, "settle": 0.3}
    found = killed(order, ("unshare", "--mount", "sh", "-c", setup, "sh"))
    assert found["differ"]
    assert found["wrong"] == []
    assert [name for name in found["after"] if name not in ("passwd-", "shadow-", "group-", "gshadow-")] == []
