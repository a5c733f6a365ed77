"""A verification of three lab hosts as it was recorded, the link of n3 shaped to 60 Mb/s: every view names n3 and the link.

The journal is cut: outputs to 160 characters, two of the collectives, no tasks.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodectl.report.compare import compare
from nodectl.report.fold import Summary, fold
from nodectl.report.github import github
from nodectl.report.journal import read_journal
from nodectl.report.page_data import page_data
from nodectl.report.page_top import headline
from tests.report.browser import Tab
from tests.report.conftest import written
from tests.report.test_junit import SCHEMA, outcomes
from tests.report.test_page_data import read_cells

RECORD = Path(__file__).parent / "runs" / "slow_link.jsonl"


@pytest.fixture(scope="module")
def summary() -> Summary:
    return fold(read_journal(RECORD))


def test_the_summary(summary: Summary) -> None:
    assert {name: host.verdict for name, host in summary.hosts.items()} == {"n1": "pass", "n2": "pass", "n3": "fail"}
    assert headline(summary) == "1 of 3 nodes is not ready: n3"
    assert len(summary.pairs) == 5
    assert {sweep["op"] for sweep in summary.sweeps} == {"all_reduce", "all_gather"}
    assert all(check["step"] for host in summary.hosts.values() for check in host.checks)


def test_the_matrix_shows_whose_link_it_is(summary: Summary) -> None:
    [layer] = page_data(summary)["pairs"]
    figures = {cell: step * layer["top"] / 65533 for cell, step in read_cells(layer, 3).items()}
    payload = 60e6 / 8
    assert figures[0, 1] > 10 * payload
    assert 0.7 * payload < figures[0, 2] < payload
    assert 0.7 * payload < figures[1, 2] < payload


def test_junit(summary: Summary) -> None:
    found = outcomes(read_journal(RECORD))
    assert found["n3", "network.pairs"] == "failure"
    assert found["n3", "mount.fsync:/data"] == "error"
    assert {outcome for (node, _), outcome in found.items() if node != "n3"} == {"pass"}
    from nodectl.report.junit import junit

    SCHEMA.validate(junit(summary))


def test_annotations(summary: Summary) -> None:
    first, second = github(summary).splitlines()
    assert "1 of 3 nodes is not ready" in first
    assert second.startswith("::error title=n3%3A fail::network.pairs: measured 6.535 MB/s")


def test_beside_itself_nothing_changed(summary: Summary) -> None:
    found = compare(summary, summary)
    assert (found.changes, found.verdicts, found.checks_gone) == ([], [], [])


def test_the_page_of_it(tab: Tab, tmp_path: Path) -> None:
    tab.open(written(tmp_path, read_journal(RECORD)))
    assert "Pairs without n3 are fine: n1, n2" in tab.text("main section")
    tab.click(".cell[aria-label^='n1,']")
    assert "pass" in tab.text("#node h2")
    tab.click(".cell[aria-label^='n3,']")
    rows = tab.run("[...document.querySelectorAll('#node tbody tr')].map(row => row.innerText)")
    assert "network.pairs" in rows[0]
    assert "6.535 MB/s" in rows[0]
    assert "unknown" in rows[2]
    assert "Most of its pairs are slow: n3 (2 of 2)" in tab.text("#worst-pairs")
    assert "all_reduce float32 sum, 2 nodes, 2 ranks, gloo" in tab.text("#sweeps h3")
    assert "Floor 10 MB/s, reached" in tab.text("#sweeps")
    metrics = tab.run("[...document.querySelectorAll('#storage h3')].map(one => one.innerText)")
    for wanted in ("disk.scratch.seq_write", "mount.seq_read:/data", "phase.batch_read:/data", "phase.model_load:/data", "phase.checkpoint_write:/ckpt"):
        assert wanted in metrics
    assert json.loads(tab.run("document.querySelector('#data').textContent"))["nodes"][2]["name"] == "n3"
