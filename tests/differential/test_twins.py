"""nodectl does the tasks that ansible-playbook did on a twin: what both say of each task, and what they leave on the node, is the same.

A case is one YAML file (case_files.py says how it is written); Ansible's side is recorded (record.py), and one case in ten is asked again.
Where nodectl deviates, the case names the heading in docs/deviations.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from nodectl.diagnostics.model import Collector
from nodectl.engine.catalogue import known
from nodectl.lang.load import load_playbook
from tests.conftest import Lab
from tests.differential import compare, recorded
from tests.differential.case_files import ROOT, Case, cases, playbook
from tests.differential.compare import module_of
from tests.differential.twins import Side, by_ansible, by_nodectl, prepare

# nodectl needs a minute for all cases on two free cores, Ansible another for its tenth; a busy machine may need several times that.
DEADLINE_S = 400.0
pytestmark = [pytest.mark.lab, pytest.mark.timeout(2 * DEADLINE_S + 100)]
ALL = cases()
MODULES = list(dict.fromkeys(case.module for case in ALL))
PLAYED = [case for case in ALL if not case.refused]
REFUSED = [case for case in ALL if case.refused]
# Every tenth of those that ansible-core can do without collections.
LIVE = [case for case in ALL if all(find_spec(f"ansible.modules.{module_of(task)}") for task in case.data["tasks"])][::10]


@pytest.fixture(scope="module")
def theirs() -> Side:
    return recorded.side(MODULES)


@pytest.fixture(scope="module")
def ours(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """All cases, done once by nodectl."""
    host = lab.names[0]
    lab.lift_all()
    lab.reset(host)
    prepare(lab, host, PLAYED)
    yield by_nodectl(lab, host, PLAYED, tmp_path_factory.mktemp("twins") / "nodectl", DEADLINE_S)
    lab.reset(host)


@pytest.fixture(scope="module")
def live(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """A tenth of the cases, done by Ansible now."""
    host = lab.names[1]
    lab.lift_all()
    lab.reset(host)
    # As for the recording: a case may use what another one of its module prepares.
    prepare(lab, host, [case for case in PLAYED if case.module in {one.module for one in LIVE}])
    yield by_ansible(lab, host, LIVE, tmp_path_factory.mktemp("twins") / "ansible", DEADLINE_S)
    lab.reset(host)


@pytest.mark.parametrize("case", PLAYED, ids=lambda case: case.id)
def test_same(case: Case, theirs: Side, ours: Side) -> None:
    differing = compare.told(case, theirs.told, ours.told)
    left = {number: {field: pair for field, pair in pairs.items() if field not in case.differs.get(number, ())} for number, pairs in differing.items()}
    assert {number: pairs for number, pairs in left.items() if pairs} == {}, "task: field: (Ansible, nodectl)"
    gone = {number: fields - differing.get(number, {}).keys() for number, fields in case.differs.items()}
    assert {number: fields for number, fields in gone.items() if fields} == {}, "written down as different, and the same"
    assert compare.files(theirs.left[case.module], ours.left[case.module], case.root).keys() == leaves(case, case.root)


def leaves(case: Case, below: str = "/") -> set[str]:
    """Paths that differ on the nodes because of the case's deviation."""
    paths = {path.replace("{{ root }}", case.root) for path in case.data.get("leaves", [])}
    return {path for path in paths if path.startswith(below)}


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_refused_before_any_node_is_touched(case: Case, theirs: Side, tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_text(playbook([case]), "utf-8")
    found = Collector()
    load_playbook(tmp_path / "site.yml", [], known, found)
    assert case.refused in {one.code for one in found.errors}
    told = [one for name, one in theirs.told.items() if name.startswith(f"{case.id}#")]
    assert told
    assert any(one.failed for one in told) == ("deviation" not in case.data)
    assert compare.files(theirs.left[case.module], {}, case.root).keys() == leaves(case)


@pytest.mark.parametrize("module", [module for module in MODULES if module != "refused"])
def test_same_elsewhere_on_the_node(module: str, theirs: Side, ours: Side) -> None:
    expected = {path for case in PLAYED if case.module == module for path in leaves(case) if not path.startswith(ROOT)}
    found = compare.elsewhere(theirs.left[module], ours.left[module])
    assert {what: pair for what, pair in found.items() if what not in expected} == {}, "what: (Ansible's node, nodectl's node)"
    assert expected <= found.keys(), "written down as different, and the same"


@pytest.mark.parametrize("case", LIVE, ids=lambda case: case.id)
def test_ansible_still_says_what_is_recorded(case: Case, theirs: Side, live: Side) -> None:
    assert compare.told(case, theirs.told, live.told) == {}, "task: field: (recorded, now)"
