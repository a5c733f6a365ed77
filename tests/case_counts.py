"""How many cases each group of comparisons had, printed at the end of a test run. Switched on by importing the hook in conftest.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import pytest

# Group -> the tests of which each passed one is a case. With Ansible as the oracle, unless the group says otherwise.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "templates and conditions": ("tests/lang/test_oracle.py::test_expression", "tests/lang/test_oracle.py::test_condition", "tests/lang/test_oracle.py::test_template_file"),
    "playbooks": ("tests/engine/test_oracle.py::test_same_as_ansible",),
    "inventories": ("tests/inventory/test_oracle.py::test_the_same_hosts_in_the_same_groups",),
    "vault, sealed here": ("tests/lang/test_vault.py::test_ansible_opens_what_was_sealed_here",),
    "vault, sealed by Ansible": ("tests/lang/test_vault.py::test_what_ansible_sealed_opens_here",),
    "modules": ("tests/agent/test_same_as_ansible.py::test_same", "tests/differential/test_twins.py::test_same"),
    "mistakes (no oracle)": ("tests/diagnostics/test_cases.py::test_what_a_person_sees",),
}


def counted(passed: Iterable[str]) -> dict[str, int]:
    """Cases by group, of the tests that ``passed`` (their node ids); groups without any are left out."""
    tests = Counter(name.partition("[")[0] for name in passed)
    found = {group: sum(tests[test] for test in of_group) for group, of_group in GROUPS.items()}
    return {group: number for group, number in found.items() if number}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    found = counted(report.nodeid for report in terminalreporter.stats.get("passed", []))
    if found:
        terminalreporter.write_line("cases compared: " + ", ".join(f"{group} {number}" for group, number in found.items()))
