"""With CI=true a lab test that was skipped is a failure: a suite that passes because it could not run proves nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest


def silent_skips(stats: dict[str, list[Any]]) -> list[str]:
    """Node ids of the lab tests that did not run."""
    return sorted({report.nodeid for report in stats.get("skipped", []) if "lab" in getattr(report, "keywords", {})})


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") == "true" and reporter and session.exitstatus == pytest.ExitCode.OK and silent_skips(reporter.stats):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    skipped = silent_skips(terminalreporter.stats)
    if skipped and os.environ.get("CI") == "true":
        terminalreporter.section("lab tests that did not run (CI=true: this is a failure)")
        for nodeid in skipped:
            terminalreporter.line(nodeid)
