"""The study beside the model: the promised ratios, and that docs/time-model.md holds what the model says today."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.time_model import PHASES, Row, main, network_rows, promised, study, table, tables
from nodectl.advise.assumptions import ASSUMED
from nodectl.advise.fields import FIELDS

PAGE = (Path(__file__).parents[2] / "docs/time-model.md").read_text("utf-8")


def test_the_promised_ratios_hold() -> None:
    rows = promised()
    assert [(row.published, row.bound) for row in rows] == [(9.0, 0.25), (10.4, 0.25), (5.88, 0.25)]
    assert all(row.good for row in rows), rows
    assert main() == 0


def test_one_row_is_calibrated_and_named() -> None:
    rows = list(network_rows(study()))
    assert [row.what for row in rows if "calibrated" in row.note] == ["Gemma 12B, step, InfiniBand"]
    assert next(row for row in rows if row.note == "calibrated on this row").off == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("title", list(tables()))
def test_the_page_holds_the_tables(title: str) -> None:
    assert f"### {title}\n\n{tables()[title]}\n" in PAGE


def test_every_published_row_stands_beside_its_prediction() -> None:
    text = "".join(tables().values())
    for published in ("39.8 s", "4.4 s", "9x", "420 s", "40.3 s", "10.4x", "0.258 s", "0.021 s", "5.88x", "3752 s", "637.7 s", *(f"{value:.4g} s" for row in PHASES.values() for value in row)):
        assert f"| {published} |" in text, published


def test_the_page_names_every_key_and_assumption() -> None:
    for section, fields in FIELDS.items():
        for key, field in fields.items():
            assert field.kind == "section" or f"| {section or 'top'} | `{key}` |" in PAGE, key
    for name, figure in ASSUMED.items():
        assert f"| {name} | " in PAGE
        assert figure.how in PAGE


@pytest.mark.parametrize(("predicted", "good"), [(1.25, True), (1.26, False), (0.75, True), (0.74, False)])
def test_a_missed_promise_is_seen(predicted: float, good: bool) -> None:
    row = Row("x", 1.0, predicted, "x", 0.25)
    assert row.good is good
    assert ("NO" in table([row])) is not good
