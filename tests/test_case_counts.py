"""The groups name tests that exist, and a case is counted once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.case_counts import GROUPS, counted

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("test", [test for tests in GROUPS.values() for test in tests])
def test_the_tests_are_there(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"\ndef {name}(" in (ROOT / file).read_text("utf-8")


def test_cases_are_counted_by_group() -> None:
    passed = [f"tests/lang/test_oracle.py::{name}" for name in ("test_expression[a]", "test_expression[b[0]]", "test_condition[a]", "test_expressions[a]")]
    assert counted([*passed, "tests/engine/test_oracle.py::test_same_as_ansible[x]", "tests/x.py::test_same"]) == {"templates and conditions": 3, "playbooks": 1}
    assert counted([]) == {}
