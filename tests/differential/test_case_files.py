"""The case files themselves: well formed, enough of them, and each deviation stands in docs/deviations.md."""

from __future__ import annotations

from collections import Counter

import pytest

from nodectl.diagnostics.codes import CODES
from tests.differential import recorded
from tests.differential.case_files import KEYS, Case, cases, headings
from tests.differential.compare import FIELDS, module_of

ALL = cases()
CHECK = [case for case in ALL if case.data.get("check")]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_case_is_well_formed(case: Case) -> None:
    assert set(case.data) <= KEYS
    assert case.data["says"]
    assert {module_of(task) for task in case.data["tasks"]} <= {*FIELDS, "set_fact", "fail", "setup", "package"}
    assert case.refused in (*CODES, "")
    assert set(case.differs) <= {str(number + 1) for number in range(len(case.data["tasks"]))}


@pytest.mark.parametrize("case", [case for case in ALL if "deviation" in case.data or case.differs or "leaves" in case.data], ids=lambda case: case.id)
def test_deviation_is_documented(case: Case) -> None:
    assert case.data["deviation"] in headings()


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_recording_is_of_this_case(case: Case) -> None:
    kept = recorded.load(case.module)["cases"]
    assert kept.get(case.id) == recorded.digest(case), f"python -m tests.differential.record --lab DIR --ansible PROGRAM {case.module}"


def test_no_recording_is_left_over() -> None:
    assert {path.stem for path in recorded.RECORDED.glob("*.json")} == {case.module for case in ALL}


def test_there_are_enough(capsys: pytest.CaptureFixture[str]) -> None:
    modules = Counter(case.module for case in ALL)
    with capsys.disabled():
        print(f"\ndifferential cases: {len(ALL)}:", ", ".join(f"{module} {count}" for module, count in sorted(modules.items())))
    assert len(ALL) >= 490
    assert len(CHECK) >= 60
    assert {"apt", "package", "service", "systemd", "user", "group", "getent", "command", "shell", "wait_for", "setup", "file", "copy"} <= set(modules)
