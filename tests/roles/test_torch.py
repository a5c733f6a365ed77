"""The interpreter that has torch: named, found or made. The torch here is a wheel of a few bytes: the role never imports it."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.roles.stage import Stages

pytestmark = pytest.mark.lab
VENV = "/opt/nodectl/torch"


def wheel(folder: Path, version: str) -> None:
    info = f"torch-{version}.dist-info"
    with zipfile.ZipFile(folder / f"torch-{version}-py3-none-any.whl", "w") as file:
        file.writestr("torch/__init__.py", f"__version__ = {version!r}\n")
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", f"torch/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    wheel(folder, "1.0")
    wheel(folder, "2.0")
    return folder


def wish(wheels: Path, *packages: str) -> dict[str, Any]:
    return {"torch_python": "", "torch_wheels": str(wheels), "torch_packages": list(packages or ["torch==1.0"])}


def version(stages: Stages) -> str:
    """As the account that trains, which did not make the environment."""
    return stages.as_user(f"{VENV}/bin/python -c 'import torch; print(torch.__version__)'").strip()


@pytest.mark.parametrize(
    ("python", "reason"),
    [("/usr/bin/python3", "ops finds no torch with it (there is no torch)"), ("/nowhere/python", "program not found: /nowhere/python"), ("/root/own/python3", "finds no torch")],
)
def test_an_interpreter_without_torch_is_named(provisioned: Stages, python: str, reason: str) -> None:
    """The last one has torch for root only, who does not train."""
    provisioned.shell("mkdir -p /root/own && cp /usr/bin/python3 /root/own/ && chmod 700 /root")
    done = provisioned("torch", torch_python=python)
    assert (done.code, done.changed) == (2, set())
    assert f"torch_python is {python}, and " in done.reason
    assert reason in done.reason


def test_an_environment_is_made_from_pushed_wheels(provisioned: Stages, wheels: Path) -> None:
    provisioned.shell(f"rm -rf {VENV} {VENV}-wheels")
    check, real = provisioned.rehearsed("torch", **wish(wheels))
    assert (check.code, real.code) == (0, 0), check.out + real.out
    assert check.changed == real.changed != set()
    assert version(provisioned) == "1.0"
    again = provisioned("torch", **wish(wheels))
    assert (again.code, again.changed) == (0, set()), again.out


def test_a_wheel_that_is_not_there_fails_with_pips_words_each_time(provisioned: Stages, wheels: Path) -> None:
    for _ in range(2):
        done = provisioned("torch", **wish(wheels, "torch==9.9"))
        assert done.code == 2
        assert "No matching distribution found for torch==9.9" in done.reason


def test_what_was_cut_off_is_made_to_its_end_and_other_packages_are_installed(provisioned: Stages, wheels: Path) -> None:
    provisioned.shell(f"rm -rf {VENV} && python3 -m venv --without-pip {VENV}")
    newer = provisioned("torch", **wish(wheels, "torch==2.0"))
    assert newer.code == 0, newer.out
    assert version(provisioned) == "2.0"
    older = provisioned("torch", **wish(wheels, "torch==1.0"))
    assert older.code == 0, older.out
    assert version(provisioned) == "1.0"
