"""What `pip install nodectl` gives: roles and playbooks travel inside the wheel, and are found from any folder."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.servers

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl"))


def files(folder: str) -> set[str]:
    return {f"nodectl/_shipped/{path.relative_to(ROOT)}" for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def test_wheel_holds_roles_playbooks_templates_and_data(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = files("playbooks") | files("roles") | files("templates") | {"nodectl/py.typed"}
    wanted |= {str(path.relative_to(ROOT)) for path in (ROOT / "nodectl" / "verify").rglob("*.toml")}
    assert wanted - held == set()
    assert [name for name in held if name.startswith(("tests/", "docs/"))] == []


def test_wheel_works_from_any_folder(wheel: Path, tmp_path: Path) -> None:
    """Installed into a folder of its own, away from the checkout: the shipped bootstrap is found and read without a mistake."""
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    zipfile.ZipFile(wheel).extractall(site)
    (elsewhere / "hosts.yaml").write_text("all: {hosts: {n1: {ansible_host: 192.0.2.1}}}\n")
    command = f"import sys; sys.path.insert(0, {str(site)!r}); from nodectl.cli.main import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", command, "check", "-i", "hosts.yaml"], cwd=elsewhere, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": ""}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(site / "nodectl" / "_shipped" / "playbooks" / "bootstrap.yml") in done.stdout
