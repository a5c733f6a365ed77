"""The tables of checks: what the loader refuses, what a row makes of an answer, and that the page says what the code does."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodectl.verify.answer import Garbled
from nodectl.verify.judging.judge import judge
from nodectl.verify.judging.measurement import Check
from nodectl.verify.kinds import KINDS, check_names
from nodectl.verify.node.node_checks import CHECKS
from nodectl.verify.node.node_table import Row, TableError, load_table, rows_of, table_kinds
from nodectl.verify.node.profiles import Entry, Profile, ProfileError, load_profiles, profile_for, profile_of
from nodectl.verify.node.table_reading import Context, read_rows
from nodectl.verify.node.traits import Trait
from nodectl.verify.settings import mistakes

ROOT = Path(__file__).parents[2]
GOOD = """
[[check]]
metric = "gpu.heat"
each = "gpus"
read = "temperature"
unit = "degC"
op = "at_most"
value = 75
why = "it throttles"
source = "somebody"
date = "2026-08"
how = "nvidia-smi"
"""


def without(key: str) -> str:
    return "\n".join(line for line in GOOD.splitlines() if not line.startswith(f"{key} ="))


def test_a_row_is_read() -> None:
    (row,) = rows_of(GOOD, "x.toml")
    assert (row.metric, row.value, row.unit, row.cite(), row.absent, row.alone) == ("gpu.heat", 75.0, "degC", "somebody (2026-08)", "unknown", "omit")


@pytest.mark.parametrize(("text", "words"), [
    ("[[check]", "not TOML"),
    ("[[row]]\nx = 1", "expected [[check]] tables only, found row"),
    ('check = "x"', "expected [[check]] tables only"),
    *((without(key), f"missing {key}") for key in ("metric", "read", "unit", "op", "why", "source", "date", "how")),
    (without("value"), "at_most what? expected value, profile or pin"),
    (GOOD + 'limit = 3\n', "unknown key limit"),
    (GOOD.replace("at_most", "below"), "op is 'below'; expected one of at_least"),
    (GOOD.replace("2026-08", "August"), "date 'August'; expected YYYY-MM"),
    (GOOD.replace("2026-08", "2026-13"), "date '2026-13'"),
    (GOOD.replace("degC", "Celsius"), "unknown unit 'Celsius'"),
    (GOOD.replace("75", '"75 MB/s"'), "MB/s measures B/s, but degC was expected"),
    (GOOD.replace("75", "true"), "not a quantity"),
    (GOOD.replace("75", "inf"), "finite"),
    (GOOD.replace("75", "-1"), "finite number from zero up"),
    (GOOD.replace("degC", "text"), "75 is no limit for at_most in text"),
    (GOOD.replace('"at_most"\nvalue = 75', '"same"\nvalue = 75'), "is no limit for same"),
    (GOOD.replace("at_most", "near"), "expected a share of the median"),
    (GOOD.replace('"at_most"\nvalue = 75', '"near"'), "near what?"),
    (GOOD + 'absent = "pass"\n', "absent is 'pass'; expected omit or unknown"),
    (GOOD + 'alone = "pass"\n', "alone is 'pass'"),
    (GOOD + 'zero = "pass"\n', "zero is 'pass'; expected omit or same"),
    (GOOD + 'when = "gpus"\n', "when is 'gpus'; expected a list"),
    (GOOD + GOOD, "gpu.heat stands there twice"),
])
def test_a_table_that_may_not_be_used(text: str, words: str) -> None:
    with pytest.raises(TableError) as error:
        rows_of(text, "x.toml")
    assert words in str(error.value)
    assert "x.toml" in str(error.value)


def test_every_table_has_its_step_and_every_row_a_name_that_the_suites_know() -> None:
    assert table_kinds() == ["errors", "gpu", "hca", "host", "nvme", "pci"]
    for kind in table_kinds():
        assert kind in KINDS
        assert kind in CHECKS
        for row in load_table(kind):
            family = row.metric.split(".")[0]
            assert any(name.startswith(family) for name in KINDS[kind].checks), row.metric
            assert f"{family}.*" in check_names() or row.metric in check_names(), row.metric


def test_every_pin_is_checked_before_a_node_is_asked() -> None:
    """A pin that nobody can understand would end the run where it is first used."""
    for kind in table_kinds():
        for one in load_table(kind):
            if one.pin and one.unit != "text":
                assert mistakes({one.pin: "some apples"}), one.pin


def test_no_two_tables_use_one_name() -> None:
    names = [row.metric for kind in table_kinds() for row in load_table(kind)]
    assert len(names) == len(set(names))


def test_the_page_has_the_tables_as_they_are() -> None:
    spec = importlib.util.spec_from_file_location("bench_node_checks", ROOT / "bench" / "node_checks.py")
    assert spec
    assert spec.loader
    bench: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = bench
    spec.loader.exec_module(bench)
    text = bench.PAGE.read_text("utf-8")
    assert bench.page(text) == text, "run: python bench/node_checks.py --write"
    assert text.count("| `gpu.") == len(load_table("gpu"))


# -- a row and an answer


def row(**changes: Any) -> Row:
    base: dict[str, Any] = {
        "metric": "m", "read": "v", "unit": "count", "op": "at_most", "why": "because", "source": "s", "date": "2026-08", "how": "a probe", "value": 5.0,
    }
    return Row(**{**base, **changes})


def check(one: Row, answer: dict[str, Any], **context: Any) -> tuple[list[Check], dict[str, Trait]]:
    reading, traits = read_rows([one], answer, Context("n1", **context))
    return judge(reading.measurements, (), reading.expectations), traits


GPUS = [{"label": "GPU 0", "v": 1}, {"label": "GPU 1", "v": 9}, {"label": "GPU 2", "v": 7}]


@pytest.mark.parametrize(("one", "answer", "verdict", "words"), [
    (row(), {"v": 5}, "pass", "measured 5, expected at most 5 (because)"),
    (row(), {"v": 6}, "fail", "measured 6"),
    (row(), {"v": None}, "unknown", "v could not be read (a probe; much of it only root may read)"),
    (row(), {"v": ["a", "b"]}, "pass", "measured 2"),
    (row(value=0.0), {"v": ["a", "b"]}, "fail", "a; b"),
    (row(value=0.0), {"v": {"x": "hangs"}}, "fail", "x: hangs"),
    (row(value=0.0), {"v": "127.0.1.1 n1"}, "fail", "127.0.1.1 n1"),
    (row(value=0.0), {"v": ""}, "pass", "measured 0"),
    (row(value=0.0), {"v": [str(number) for number in range(20)]}, "fail", "7; and 12 more"),
    (row(each="gpus"), {"gpus": GPUS}, "fail", "measured 9, expected at most 5 (because): GPU 1: 9; GPU 2: 7; all others are as expected"),
    (row(each="gpus", op="at_least"), {"gpus": GPUS}, "fail", "measured 1, expected at least 5 (because): GPU 0: 1"),
    (row(each="gpus"), {"gpus": [{"label": "GPU 0", "v": None}, {"label": "GPU 1", "v": 1}]}, "unknown", "v of GPU 0 could not be read"),
    (row(op="equals", unit="text", value="on"), {"v": "on"}, "pass", "measured on, expected on"),
    (row(op="equals", unit="bool", value=True), {"v": False}, "fail", "measured no, expected yes"),
    (row(read="a.b"), {"a": {"b": 3}}, "pass", "measured 3"),
    (row(detail="why", value=0.0), {"v": 3, "why": ["this", "that"]}, "fail", "this; that"),
    (row(unit="B", value=4096.0, op="at_least"), {"v": 512}, "fail", "measured 512 B, expected at least 4.096 kB"),
    (row(unit="B/s", each="gpus", op="at_least", value=5e10), {"gpus": [{"label": "p", "v": 1.25e10}]}, "fail", "p: 12.5 GB/s (100 Gb/s)"),
])
def test_rows_and_answers(one: Row, answer: dict[str, Any], verdict: str, words: str) -> None:
    ((found,), traits) = check(one, answer)
    assert (found.verdict, traits) == (verdict, {})
    assert words in found.reason
    assert verdict == "unknown" or found.source == "s (2026-08)"


@pytest.mark.parametrize(("one", "answer"), [
    (row(), {}), (row(), {"v": "5"} | {"v": True}), (row(unit="text", op="equals", value="x"), {"v": 3}), (row(unit="bool", op="equals", value=True), {"v": "yes"}),
    (row(each="gpus"), {"gpus": "eight"}), (row(each="gpus"), {}), (row(each="gpus"), {"gpus": [1, 2]}), (row(unit="s"), {"v": [1]}),
    (row(read="a.b"), {"a": {}}),
])
def test_an_answer_that_lacks_what_a_row_reads_is_no_evidence(one: Row, answer: dict[str, Any]) -> None:
    with pytest.raises(Garbled):
        check(one, answer)


@pytest.mark.parametrize(("one", "answer"), [
    (row(absent="omit"), {"v": None}), (row(absent="omit"), {}), (row(each="gpus"), {"gpus": []}), (row(when=("roce",)), {}),
    (row(each="gpus", absent="omit"), {"gpus": [{"label": "GPU 0", "v": None}]}), (row(absent="omit", read="a.b"), {"a": {}}),
])
def test_what_does_not_exist_is_not_judged(one: Row, answer: dict[str, Any]) -> None:
    assert check(one, answer) == ([], {})


def test_words_of_the_node_let_a_row_in() -> None:
    ((found,), _) = check(row(when=("roce", "gpus")), {"v": 1}, true=frozenset(["roce", "gpus", "more"]))
    assert found.verdict == "pass"


PROFILE = Profile("p1", entries={"many": Entry(7.0, "its maker"), "board": Entry(3.0, "its maker", board=True)})


@pytest.mark.parametrize(("one", "context", "floor", "source"), [
    (row(), {}, 5.0, "s (2026-08)"),
    (row(profile="many"), {"profile": PROFILE}, 7.0, "its maker"),
    (row(profile="other"), {"profile": PROFILE}, 5.0, "s (2026-08)"),
    (row(profile="board"), {"profile": PROFILE}, 5.0, "s (2026-08)"),
    (row(profile="board"), {"profile": PROFILE, "true": frozenset(["bare_metal"])}, 3.0, "its maker"),
    (row(profile="many", pin="mine"), {"profile": PROFILE, "variables": {"mine": 9}}, 9.0, "hosts.yaml"),
    (row(profile="many", pin="mine"), {"profile": PROFILE, "variables": {"mine": ""}}, 7.0, "its maker"),
    (row(pin="mine", unit="B"), {"variables": {"mine": "1 KiB"}}, 1024.0, "hosts.yaml"),
])
def test_inventory_before_profile_before_table(one: Row, context: dict[str, Any], floor: float, source: str) -> None:
    ((found,), _) = check(one, {"v": 2}, **context)
    assert (found.floor, found.source, found.verdict) == (floor, source, "pass")


@pytest.mark.parametrize(("one", "answer", "value"), [
    (row(op="same", value=None), {"v": 3}, 3.0),
    (row(op="same", value=None, unit="text"), {"v": "6.1"}, "6.1"),
    (row(op="at_least", value=None, profile="none"), {"v": 8}, 8.0),
    (row(op="near", value=0.98), {"v": 8}, 8.0),
    (row(op="same", value=None, each="gpus", unit="text"), {"gpus": [{"label": "a", "v": "x"}, {"label": "b", "v": "x"}]}, "x"),
])
def test_what_has_no_limit_waits_for_the_fleet(one: Row, answer: dict[str, Any], value: float | str) -> None:
    checks, traits = check(one, answer)
    assert (checks, traits["m"].value, traits["m"].share) == ([], value, 0.98 if one.op == "near" else 0.0)


def test_items_of_one_node_that_differ_are_its_own_fault() -> None:
    answer = {"gpus": [{"label": "a", "v": "x"}, {"label": "b", "v": "y"}, {"label": "c", "v": "x"}]}
    ((found,), traits) = check(row(op="same", value=None, each="gpus", unit="text"), answer)
    assert (found.verdict, found.value, found.floor, traits) == ("fail", "y", "x", {})
    assert "b: y" in found.reason
    assert found.raw == "a x; b y; c x"


JSON = st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=6)


@given(st.dictionaries(st.sampled_from(["v", "gpus", "a", "label"]), JSON, max_size=4), st.sampled_from([
    row(), row(each="gpus"), row(unit="text", op="equals", value="x"), row(op="same", value=None), row(read="a.b", absent="omit"), row(unit="bool", op="equals", value=True),
]))
def test_any_answer_is_judged_or_refused_never_passed_for_nothing(answer: dict[str, Any], one: Row) -> None:
    try:
        checks, _ = check(one, answer)
    except Garbled:
        return
    for found in checks:
        assert found.verdict != "pass" or answer.get(one.each or one.read.split(".")[0]) is not None


# -- profiles


@pytest.mark.parametrize(("name", "expected"), [
    ("NVIDIA H100 80GB HBM3", "h100-sxm"), ("NVIDIA H100 NVL", "h100-nvl"), ("NVIDIA H200", "h200-sxm"), ("NVIDIA H200 NVL", "h200-nvl"), ("NVIDIA GB200", "gb200"),
    ("NVIDIA B200", "b200"), ("NVIDIA A100-SXM4-80GB", "a100-sxm"), ("NVIDIA GH200 480GB", ""), ("NVIDIA A100-PCIE-40GB", ""), ("Tesla T4", ""), ("", ""),
])
def test_profiles_of_gpus(name: str, expected: str) -> None:
    assert profile_for(load_profiles(), "", [name] if name else []).name == expected


def test_a_profile_that_hosts_yaml_names_counts_in_guests_too() -> None:
    chosen = profile_for(load_profiles(), "h100-sxm", [])
    assert chosen.entry("gpus", bare_metal=False) is not None
    found = profile_for(load_profiles(), "", ["NVIDIA H100 80GB HBM3"])
    assert found.entry("gpus", bare_metal=False) is None
    assert found.entry("nvlinks", bare_metal=False) is not None


def test_a_profile_that_nobody_knows_is_a_mistake_before_any_node_is_asked() -> None:
    (problem,) = mistakes({"node_profile": "h1000"})
    assert "nobody knows 'h1000'; expected one of a100-sxm" in problem


@pytest.mark.parametrize("variables", [
    {"expected_nvlinks": "many"}, {"expected_nvme": -1}, {"expected_hca_rate": "400"  " apples"}, {"expected_modules": "ib_uverbs"}, {"expected_names": "x"},
    {"rendezvous_port": "http"}, {"expected_max_read_request": "4096 s"}, {"expected_gpu_temperature": "hot"}, {"expected_nvme_used": True},
])
def test_pins_that_cannot_be_understood(variables: dict[str, Any]) -> None:
    (problem,) = mistakes(variables)
    assert problem.startswith(next(iter(variables)))


ENTRY = '[[entry]]\nof = "gpus"\nvalue = 8\nsource = "its maker"\ndate = "2026-08"\n'


@pytest.mark.parametrize(("text", "words"), [
    ("name = ", "not TOML"), ('gpu = ["X"]\n' + ENTRY, "expected name"), ('name = "x"\nnick = "y"\n' + ENTRY, "unknown: nick"), ('name = "x"\n', "[[entry]]"),
    ('name = "x"\n' + ENTRY.replace("its maker", ""), "missing source"), ('name = "x"\n' + ENTRY.replace("gpus", "wheels"), "'wheels' is nothing that a profile says"),
    ('name = "x"\n' + ENTRY.replace("= 8", '= "8 MB/s"'), "MB/s measures B/s"), ('name = "x"\n' + ENTRY + ENTRY, "gpus stands there twice"),
    ('name = "x"\n' + ENTRY + "colour = 1\n", "unknown colour"),
])
def test_a_profile_that_may_not_be_used(text: str, words: str) -> None:
    with pytest.raises(ProfileError) as error:
        profile_of(text, "p.toml")
    assert words in str(error.value)


def test_shipped_profiles_are_of_one_mind_with_the_floors_names() -> None:
    profiles = load_profiles()
    assert len({profile.name for profile in profiles}) == len(profiles)
    for profile in profiles:
        assert profile.summary
        assert all(entry.source for entry in profile.entries.values())


