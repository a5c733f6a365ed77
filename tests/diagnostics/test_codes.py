"""Codes in the source, codes that are explained, and pages in docs/errors are one set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nodectl.diagnostics.codes import CODES

ROOT = Path(__file__).parents[2]
_USED = re.compile(r'"(E\d{3})"')


def used() -> set[str]:
    files = (path for path in (ROOT / "nodectl").rglob("*.py") if path.name != "codes.py")
    return {code for path in files for code in _USED.findall(path.read_text())}


def test_every_code_that_is_used_is_explained_and_the_other_way_round() -> None:
    assert used() == set(CODES)


def test_every_code_has_its_page() -> None:
    pages = {path.stem: path.read_text() for path in (ROOT / "docs" / "errors").glob("*.md")}
    assert pages == {code: entry.page(code) for code, entry in CODES.items()}, "write the pages anew from Code.page"


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_page_says_what_it_is_shows_it_and_mends_it(code: str) -> None:
    entry = CODES[code]
    assert all((entry.title, entry.explanation, entry.example, entry.fix))
    assert not entry.title.endswith(".")
    assert entry.explanation.endswith(".")
    assert entry.fix.endswith((".", "`", "…"))
