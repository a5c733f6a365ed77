"""Each folder of mistakes/ is a playbook with mistakes and, in expected.txt, all that is said about them.

`NODECTL_WRITE_CASES=1 pytest tests/lang/test_mistakes.py` writes the files anew; read the difference before it is committed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nodectl.diagnostics.model import Collector
from nodectl.diagnostics.order import in_order
from nodectl.diagnostics.render_human import render_human
from nodectl.inventory.load import load_inventory
from nodectl.inventory.patterns import check_hosts
from nodectl.lang.load import load_playbook
from tests.lang.specs import known

CASES = Path(__file__).parent / "mistakes"


def said(monkeypatch: pytest.MonkeyPatch, case: Path) -> str:
    monkeypatch.chdir(case)
    found = Collector()
    playbook = load_playbook(Path("site.yml"), [Path("roles")], known, found)
    if Path("hosts.yaml").exists():
        check_hosts(playbook, load_inventory(["hosts.yaml"], found), found)
    text = "\n\n".join(render_human(one, colour=False) for one in in_order(found)) + "\n"
    return text.replace(str(case), "HERE")


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir()))
def test_all_mistakes_are_told_with_their_places(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = said(monkeypatch, CASES / case)
    expected = CASES / case / "expected.txt"
    if os.environ.get("NODECTL_WRITE_CASES"):
        expected.write_text(text)
    assert text == expected.read_text()


def test_every_case_finds_something() -> None:
    assert all("error[" in (case / "expected.txt").read_text() for case in CASES.iterdir())


def test_twenty_different_mistakes_are_told_in_one_run() -> None:
    text = (CASES / "twenty" / "expected.txt").read_text()
    places = [line.split("-->")[1].strip() for line in text.splitlines() if line.lstrip().startswith("-->")]
    assert text.count("error[") >= 20
    assert len(set(places)) >= 20
