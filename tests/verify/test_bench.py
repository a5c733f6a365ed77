"""The published table of detection: its script runs, its figures are those of the page, and they are good enough."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_isolation", ROOT / "bench" / "isolation.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


BENCH = load()


def published() -> dict[tuple[str, str], list[str]]:
    text = (ROOT / "docs" / "verification.md").read_text("utf-8")
    inside = text.partition(BENCH.BEGIN)[2].partition(BENCH.END)[0]
    cells = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in inside.splitlines()[2:]]
    return {(row[0], row[1]): row[2:] for row in cells}


def test_the_page_has_every_case() -> None:
    assert list(published()) == [(case.name, case.noise.name) for case in BENCH.cases()]


@pytest.mark.parametrize("case", BENCH.cases(), ids=lambda case: f"{case.name}, {case.noise.name}")
def test_the_page_says_what_the_code_does(case: object) -> None:
    """One column of each row is made anew; the others come from the same run."""
    row = published()[case.name, case.noise.name]  # type: ignore[attr-defined]
    assert row[BENCH.NODES.index(4)] == case.score(4).shown  # type: ignore[attr-defined]


def test_no_healthy_node_of_the_page_is_blamed() -> None:
    alarms = {row[-1].partition(" of ")[0] for row in published().values()}
    assert alarms == {"0"}


@pytest.mark.parametrize("nodes", [8, 16, 64])
def test_what_is_clearly_bad_is_always_named(nodes: int) -> None:
    for (bad, _), row in published().items():
        if bad.endswith(("dead", "a tenth of the speed")):
            assert row[BENCH.NODES.index(nodes)] == "100 %", bad


def test_a_fault_that_is_none_is_not_found() -> None:
    """The table can fail: a bad node of full speed is not named."""
    case = BENCH.Case("x", -1, BENCH.Fault("none", 1.0), BENCH.NOISES[0])
    assert case.score(8, 5).shown == "0 %"
