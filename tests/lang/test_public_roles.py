"""docs/public-roles.md says of each word whether nodectl has it; the table is held against nodectl itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nodectl.engine.catalogue import known
from nodectl.lang import keywords, lookups
from nodectl.lang.arguments import short_name, spec_of
from nodectl.lang.environment import TextEnvironment, make

PAGE = (Path(__file__).parents[2] / "docs" / "public-roles.md").read_text("utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ") and "/" in line.split("|")[1]]
ENVIRONMENT = make(TextEnvironment)


def has_keyword(word: str) -> bool:
    return word in (*keywords.TASK, *keywords.BLOCK) or (word.startswith("with_") and word.removeprefix("with_") in lookups.names())


def has_module(word: str) -> bool:
    """`module`, or `module.parameter`."""
    module, _, parameter = word.partition(".")
    spec = spec_of(short_name(module, known) or "", known)
    return spec is not None and (not parameter or spec.canonical(parameter) is not None)


HAS: dict[int, Callable[[str], bool]] = {
    2: has_keyword, 3: ENVIRONMENT.filters.__contains__, 4: ENVIRONMENT.tests.__contains__, 5: lambda word: word in lookups.names(), 6: has_module,
}


def words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_five_collections() -> None:
    assert len({row[0] for row in ROWS}) == 5


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_is_said_to_be_here_is_here(row: list[str]) -> None:
    assert [word for column, has in HAS.items() for word in words(row[column]) if not has(word)] == []
    assert len([word for column in HAS for word in words(row[column])]) >= 10, "the row is nearly empty"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_is_said_to_be_missing_is_missing(row: list[str]) -> None:
    assert [word for word in words(row[7]) if has_keyword(word) or has_module(word)] == []
