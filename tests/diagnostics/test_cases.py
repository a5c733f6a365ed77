"""Every mistake that has a code, as a person sees it: one command line in a folder, and the whole text that it answers with.

Each case is CODE_what.yml with the files and the command, and CODE_what.txt with the exit code and the text.
`NODECTL_WRITE_CASES=1 pytest tests/diagnostics/test_cases.py` writes the texts anew; read the difference before it is committed.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodectl.cli.main import run
from nodectl.diagnostics.codes import CODES
from nodectl.shipped import shipped

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.yml"))
# What a command line that found mistakes must never have made: a run's folder.
RUNS = Path(".nodectl") / "runs"
# Warnings: they are told, and the command goes on.
WARNINGS = {"E110", "E214", "E223", "E224", "E307", "E314"}


def lay_out(data: dict[str, Any]) -> None:
    for name, text in data["files"].items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "latin-1" if name in data.get("latin1", ()) else "utf-8")
        if name in data.get("executable", ()):
            path.chmod(0o755)


def answer(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    data = yaml.safe_load((CASES / f"{name}.yml").read_text("utf-8"))
    lay_out(data)
    code = run(shlex.split(data["command"]))
    captured = capsys.readouterr()
    text = f"$ nodectl {data['command']}\n{captured.out}{captured.err}exit {code}\n"
    return text.replace(str(Path.cwd()), "HERE").replace(str(shipped("roles")), "SHIPPED/roles")


@pytest.mark.parametrize("name", NAMES)
def test_what_a_person_sees(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    text = answer(name, capsys)
    expected = CASES / f"{name}.txt"
    if os.environ.get("NODECTL_WRITE_CASES"):
        expected.write_text(text, "utf-8")
    assert text == expected.read_text("utf-8")
    assert not RUNS.exists()


def told(name: str) -> list[str]:
    return re.findall(r"^(?:error|warning)\[(E\d+)\]", (CASES / f"{name}.txt").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_has_a_case(code: str) -> None:
    own = [name for name in NAMES if name.startswith(f"{code}_")]
    assert own
    assert all(code in told(name) for name in own)


@pytest.mark.parametrize("name", NAMES)
def test_mistakes_end_with_exit_1_and_warnings_do_not(name: str) -> None:
    text = (CASES / f"{name}.txt").read_text("utf-8")
    assert text.endswith("exit 0\n" if set(told(name)) <= WARNINGS else "exit 1\n")


@pytest.mark.parametrize("name", NAMES)
def test_every_mistake_says_what_to_do_or_what_was_expected(name: str) -> None:
    blocks = re.split(r"\n\n", (CASES / f"{name}.txt").read_text("utf-8"))
    for block in (block for block in blocks if re.search(r"^(error|warning)\[", block, re.MULTILINE)):
        assert "help:" in block or "^ " in block, block
