"""The suite's own machinery: case files are read strictly, cases are packed so that one host stays well, and the page is today's."""

from __future__ import annotations

import dataclasses
import json

import pytest

from nodectl.lab import faults
from nodectl.lab.hardware_faults import FAULTS
from nodectl.verify.suite_load import suite_of
from tests.faults.case import Case, CaseError, case_of, load_cases, suite_text
from tests.faults.driver import MEASURED, Batch, pack
from tests.faults.page import PAGE, page

LEAST = 30
GOOD = """
about = "x"
steps = ["route"]
bound = 10
[[fault]]
name = "mtu"
[expect]
verdict = "fail"
check = "network.mtu"
"""
ALL = load_cases()


def test_there_are_enough_of_them() -> None:
    assert len(ALL) >= LEAST
    assert sum(not case.simulated for case in ALL) >= LEAST


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_a_case_names_what_exists(case: Case) -> None:
    known = {kind.name: kind for kind in faults.kinds()}
    for fault in case.faults:
        assert fault.name in known
        assert (fault.on == "store") != known[fault.name].of_host
        if fault.name == "hardware-fault":
            assert fault.value in FAULTS
    suite = suite_of(suite_text(case.steps, case.change), case.name)
    assert [step.kind for step in suite.steps] == list(case.steps)
    assert case.expect.check or case.expect.verdict in ("pass", "none")
    assert any(known[fault.name].simulated for fault in case.faults) == bool(case.simulated)


@pytest.mark.parametrize(("old", "new", "said"), [
    ('about = "x"', 'abut = "x"', "unknown ['abut'], missing ['about']"), ("bound = 10", "", "missing ['bound']"), ('verdict = "fail"', "", "expect: unknown [], missing ['verdict']"),
    ('check = "network.mtu"', 'chek = "network.mtu"', "expect: unknown ['chek']"), ('name = "mtu"', 'name = "mtu"\non = "nowhere"', "must be one of bad, all, store"), ("[expect]", "[expect", "bad: "),
])
def test_a_case_that_says_nothing_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(CaseError) as error:
        case_of("bad", GOOD.replace(old, new))
    assert said in str(error.value)


def test_a_suite_of_steps_that_nobody_has_is_refused() -> None:
    with pytest.raises(CaseError, match="no shipped suite has nonsense"):
        suite_text(("route", "nonsense"), {})
    with pytest.raises(CaseError, match=r"changed without being a step: \['pairs'\]"):
        suite_text(("route",), {"pairs": {"rounds": 1}})


def test_changed_options_take_the_place_of_the_shipped_ones() -> None:
    suite = suite_of(suite_text(("route", "torch", "pairs"), {"pairs": {"rounds": 1, "sizes": ["4 MiB"]}}), "x")
    step = suite.step("pairs")
    assert step is not None
    assert (step.option("rounds"), step.sizes) == (1, (4 << 20,))


def made(name: str, share: str = "node", on: str = "bad", steps: tuple[str, ...] = ("route",)) -> Case:
    case = case_of(name, GOOD)
    return dataclasses.replace(case, share=share, steps=steps, faults=(dataclasses.replace(case.faults[0], on=on),))


def names(batches: list[Batch]) -> list[list[str]]:
    return [[case.name for case in batch.cases] for batch in batches]


def test_cases_share_a_run_and_one_host_stays_well() -> None:
    cases = [made(name) for name in "abcde"]
    assert names(pack(cases, 4)) == [["a", "b", "c"], ["d", "e"]]
    assert names(pack(cases, 2)) == [[name] for name in "abcde"]


def test_only_those_share_that_say_so() -> None:
    assert names(pack([made("a", ""), made("b", ""), made("c", "x"), made("d", "y"), made("e", "x")], 4)) == [["a"], ["b"], ["c", "e"], ["d"]]
    assert names(pack([made("a", on="store"), made("b", on="store"), made("c", on="all"), made("d")], 4)) == [["a"], ["b"], ["c"], ["d"]]


@pytest.mark.parametrize(("steps", "merged"), [
    ([("login", "route", "mounts"), ("login", "host", "mounts")], ("login", "host", "route", "mounts")), ([("route",), ("login", "route")], ("login", "route")), ([("route", "pairs"), ("route",)], ("route", "pairs")),
])
def test_steps_of_a_batch_keep_each_cases_order(steps: list[tuple[str, ...]], merged: tuple[str, ...]) -> None:
    batch = Batch([made(str(index), steps=mine) for index, mine in enumerate(steps)])
    assert batch.steps == merged


def test_shared_cases_want_no_different_options() -> None:
    for batch in pack(ALL, 4):
        for name in ("change", "variables"):
            merged: dict[str, object] = {}
            for case in batch.cases:
                for key, value in getattr(case, name).items():
                    assert merged.setdefault(key, value) == value, (case.name, key)


def test_the_page_is_made_of_todays_cases() -> None:
    text = PAGE.read_text("utf-8")
    assert page(text) == text, "run: python -m tests.faults.page"


def test_measured_figures_are_those_of_cases_that_exist() -> None:
    assert set(json.loads(MEASURED.read_text())) <= {case.name for case in ALL}
