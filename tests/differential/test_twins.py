"""ansible-playbook and nodectl do the same tasks on twins: what they say of each task, and what lies on the nodes afterwards, is the same.

A case is one YAML file (case_files.py says how it is written). Where nodectl deviates, the case names the heading in docs/deviations.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nodectl.diagnostics.model import Collector
from nodectl.engine.catalogue import known
from nodectl.lang.load import load_playbook
from tests.conftest import Lab
from tests.differential import compare
from tests.differential.case_files import Case, cases, playbook
from tests.differential.twins import DEADLINE_S, Twins, run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(DEADLINE_S + 100)]
ALL = cases()
PLAYED = [case for case in ALL if not case.refused]
REFUSED = [case for case in ALL if case.refused]


@pytest.fixture(scope="module")
def twins(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    """All cases, done once by both."""
    lab.lift_all()
    lab.reset(*lab.names[:2])
    yield run(lab, ALL, tmp_path_factory.mktemp("twins"))
    lab.reset(*lab.names[:2])


def test_both_came_to_their_end(twins: Twins) -> None:
    for side in (twins.ansible, twins.nodectl):
        assert "PLAY RECAP" in side.output, side.output[-3000:]


@pytest.mark.parametrize("case", PLAYED, ids=lambda case: case.id)
def test_same(case: Case, twins: Twins) -> None:
    differing = compare.told(case, twins)
    left = {number: {field: pair for field, pair in pairs.items() if field not in case.differs.get(number, ())} for number, pairs in differing.items()}
    assert {number: pairs for number, pairs in left.items() if pairs} == {}, "task: field: (Ansible, nodectl)"
    gone = {number: fields - differing.get(number, {}).keys() for number, fields in case.differs.items()}
    assert {number: fields for number, fields in gone.items() if fields} == {}, "written down as different, and the same"
    assert compare.files(twins, case.root).keys() == leaves(case)


def leaves(case: Case) -> set[str]:
    """Paths that differ on the nodes because of the case's deviation."""
    return {path.replace("{{ root }}", case.root) for path in case.data.get("leaves", [])}


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_refused_before_any_node_is_touched(case: Case, twins: Twins, tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_text(playbook([case]), "utf-8")
    found = Collector()
    load_playbook(tmp_path / "site.yml", [], known, found)
    assert case.refused in {one.code for one in found.errors}
    theirs = [told for name, told in twins.ansible.told.items() if name.startswith(f"{case.id}#")]
    assert theirs
    assert any(told.failed for told in theirs) == ("deviation" not in case.data)
    assert compare.files(twins, case.root).keys() == leaves(case)


def test_same_files_elsewhere(twins: Twins) -> None:
    assert compare.other_files(twins) == {}, "path: (Ansible's node, nodectl's node)"


@pytest.mark.parametrize("what", ["passwd", "group", "shadow", "packages", "units"])
def test_same_state(what: str, twins: Twins) -> None:
    assert compare.lines(twins, what) == ([], []), "(only on Ansible's node, only on nodectl's node)"
