"""One headless Chromium for all tests of a process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodectl.report.fold import fold
from nodectl.report.page import page
from nodectl.wire.event import Event
from tests.report.browser import CHROMIUM, Browser, Tab


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if not CHROMIUM and os.environ.get("CI") != "true":
        pytest.skip("chromium is not installed (apt-get install chromium)")
    running = Browser(tmp_path_factory.mktemp("chromium"))
    yield running
    running.stop()


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    """A tab of 1280 by 900 in which nothing may be complained about, and from which nothing may be asked."""
    with browser.tab() as found:
        yield found
        found.run("0")  # whatever the page still had to say has come before this answer
        assert found.complaints == []
        assert [address for address in found.requests if not address.startswith("data:")] == []


def written(path: Path, events: list[Event]) -> Path:
    """The page of these events as a file."""
    file = path / "report.html"
    file.write_text(page(fold(events)), encoding="utf-8")
    return file
