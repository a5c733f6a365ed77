"""What the page is given: everything that was measured, once, and within a budget that is kept."""

from __future__ import annotations

import base64
import json
from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodectl.report.fold import fold
from nodectl.report.page_data import RAW_ALL, RAW_EACH, WARNINGS_MOST, cut, page_data, taken_apart
from nodectl.report.page_groups import ROWS_MOST, SWEEPS_MOST, number, slowest, sweeps_of
from nodectl.report.page_pairs import ERRORS_MOST, FAILED, NOT_MEASURED, STEPS, layers
from nodectl.wire.event import Event
from tests.report.fleet import fleet, measured
from tests.report.test_page_browser import everything

FIELDS = ("name", "verdict", "value", "unit", "floor", "reason", "numbers", "source", "step", "simulated", "raw", "waiver")
VERDICTS = ("none", "pass", "skipped", "unknown", "fail")


def put_together(pattern: str, numbers: str) -> str:
    """As sentence() of page/data.js does."""
    given = iter(numbers.split(" "))
    return "".join(next(given) if char == "\0" else char for char in pattern)


def unpacked(data: dict[str, Any], place: int) -> list[dict[str, Any]]:
    """The checks of a node as the page reads them."""
    found = []
    for row in data["nodes"][place].get("checks", []):
        check = dict(zip(FIELDS, [*row, *[0] * (len(FIELDS) - len(row))], strict=True))
        for key in ("name", "unit", "source", "step", "waiver"):
            check[key] = data["texts"][check[key] - 1] if check[key] else ""
        check["verdict"] = VERDICTS[check["verdict"]]
        check["reason"] = put_together(data["texts"][check["reason"] - 1], check["numbers"] or "") if check["reason"] else ""
        check["output"] = data["raws"][check["raw"] - 1] if check["raw"] > 0 else ""
        found.append(check)
    return found


def test_every_check_comes_back_as_it_was() -> None:
    summary = fold(everything())
    data = json.loads(json.dumps(page_data(summary)))
    for place, host in enumerate(summary.hosts.values()):
        said = {(check["name"], check["verdict"], check["reason"], check["unit"], check["source"], check["step"] or "", bool(check["simulated"])) for check in host.checks}
        shown = {(check["name"], check["verdict"], check["reason"], check["unit"], check["source"], check["step"], bool(check["simulated"])) for check in unpacked(data, place)}
        # None and "" are one thing to a reader
        assert {tuple(part or "" for part in one) for one in said} == {tuple(part or "" for part in one) for one in shown}


@settings(deadline=None)
@given(st.text(alphabet=st.characters(blacklist_characters="\0")))
def test_sentences_come_back(text: str) -> None:
    assert put_together(*taken_apart(text)) == text


@pytest.mark.parametrize(("text", "pattern", "numbers"), [
    ("measured 12 GB/s, expected 24.5", "measured \0 GB/s, expected \0", "12 24.5"), ("no figure", "no figure", ""), ("", "", ""), ("1.2.3", "\0.\0", "1.2 3"), ("5#", "\0#", "5"),
])
def test_sentences_taken_apart(text: str, pattern: str, numbers: str) -> None:
    assert taken_apart(text) == (pattern, numbers)


def test_the_worst_stand_first() -> None:
    data = page_data(fold(fleet(4, bad=4)))
    for place in range(4):
        verdicts = [check["verdict"] for check in unpacked(data, place)]
        assert verdicts == sorted(verdicts, key=lambda word: -VERDICTS.index(word))


# value of a check, and what the page is sent
VALUES: list[tuple[Any, Any]] = [
    (None, None), (True, True), (False, False), (0, 0), (8, 8), (1.5, 1.5), (642195887.3941919, 642196000.0), (1e-9, 1e-9), (float("inf"), "a number too large to be shown"), (10**5000, "a number too large to be shown"),
    ("570.86", "570.86"), ("\x1b[31mred", "\\x1b[31mred"), ([1, 2], "[1, 2]"), ({"a": 1}, "{'a': 1}"), ("x" * 1000, "x" * 300),
]


@pytest.mark.parametrize(("value", "sent"), VALUES, ids=range(len(VALUES)))
def test_values(value: Any, sent: Any) -> None:
    [check] = unpacked(page_data(fold([Event("check", 1.0, "n1", {"name": "x", "verdict": "fail", "value": value, "floor": value, "simulated": True})])), 0)
    for key in ("value", "floor"):
        assert check[key] == sent or (isinstance(sent, str) and check[key].startswith(sent) and "characters)" in check[key])


# -- raw outputs


def outputs(*texts: str, verdict: str = "pass") -> list[Event]:
    return [Event("check", 1.0, f"n{place}", {"name": "x", "verdict": verdict, "raw": text, "simulated": False}) for place, text in enumerate(texts)]


def test_one_output_is_sent_once() -> None:
    assert page_data(fold(outputs("same", "same", "same")))["raws"] == ["same"]


def test_a_long_output_keeps_its_ends_and_says_what_is_missing() -> None:
    shown = cut("a" * 9_000 + "b" * 1_000)
    assert shown.startswith("a" * 1_000)
    assert shown.endswith("b" * 1_000)
    assert f"{10_000 - RAW_EACH} characters left out" in shown
    assert cut("short") == "short"


def test_beyond_the_budget_the_worst_are_kept_and_the_rest_is_counted() -> None:
    texts = [f"{place:06}" * (RAW_EACH // 6) for place in range(RAW_ALL // RAW_EACH + 200)]
    events = [*outputs(*texts), Event("check", 2.0, "bad", {"name": "y", "verdict": "fail", "raw": "what went wrong", "simulated": False})]
    data = page_data(fold(events))
    assert sum(map(len, data["raws"])) <= RAW_ALL
    assert "what went wrong" in data["raws"]
    left_out = [check for place in range(len(texts)) for check in unpacked(data, place) if check["raw"] < 0]
    assert len(left_out) >= 200
    assert {check["raw"] for check in left_out} == {-len(texts[0])}


def test_warnings_are_counted() -> None:
    data = page_data(fold([Event("warning", 1.0, "", {"text": f"w{place}"}) for place in range(WARNINGS_MOST + 7)]))
    assert len(data["warnings"]) == WARNINGS_MOST
    assert data["warnings_left_out"] == 7


# -- pairs


def read_numbers(packed: str) -> list[int]:
    found = array("H")
    found.frombytes(base64.b64decode(packed))
    return list(found)


def read_cells(layer: dict[str, Any], count: int) -> dict[tuple[int, int], int]:
    """As unpackLayer() of page/pairs.js does."""
    if "triples" in layer:
        numbers = read_numbers(layer["triples"])
        return {(numbers[at], numbers[at + 1]): numbers[at + 2] for at in range(0, len(numbers), 3)}
    square = "square" in layer
    places = [(row, column) for row in range(count) for column in range(0 if square else row + 1, count)]
    return {place: step for place, step in zip(places, read_numbers(layer["square" if square else "triangle"]), strict=True) if step != NOT_MEASURED}


def pair(first: str, second: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"hosts": [first, second], "rail": "", "tool": "all_reduce", "bytes": 8, "value": value, "unit": "B/s", "round": 1, "error": "", **more}


@settings(deadline=None)
@given(st.integers(2, 9).flatmap(lambda count: st.tuples(st.just(count), st.dictionaries(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda cell: cell[0] != cell[1]), st.floats(1, 1e12)))), st.booleans())
def test_matrices_come_back(case: tuple[int, dict[tuple[int, int], float]], directed: bool) -> None:
    count, values = case
    hosts = [f"n{place}" for place in range(count)]
    tool = "ib_write_bw" if directed else "all_reduce"
    found = layers([pair(hosts[first], hosts[second], value, tool=tool) for (first, second), value in values.items()], hosts)
    if not values:
        assert found == []
        return
    best: dict[tuple[int, int], float] = {}
    for (first, second), value in values.items():
        cell = (first, second) if directed or first < second else (second, first)
        best[cell] = max(best.get(cell, 0), value)
    cells = read_cells(found[0], count)
    assert set(cells) == set(best)
    for cell, value in best.items():
        assert cells[cell] * found[0]["top"] / STEPS == pytest.approx(value, abs=found[0]["top"] / STEPS)


def test_of_several_tries_the_best_counts_and_a_failure_only_where_nothing_else_is_known() -> None:
    [layer] = layers([pair("a", "b", 1.0), pair("b", "a", 4.0), pair("a", "b", None, error="late"), pair("a", "c", None, error="refused"), pair("a", "c", "x")], ["a", "b", "c"])
    assert read_cells(layer, 3) == {(0, 1): STEPS, (0, 2): FAILED}
    assert layer["errors"] == [[0, 2, "refused"]]
    assert layer["failed"] == 1


def test_of_latencies_the_lowest_is_the_best() -> None:
    [layer] = layers([pair("a", "b", 4e-6, unit="s", tool="ib_write_lat"), pair("a", "b", 2e-6, unit="s", tool="ib_write_lat")], ["a", "b"])
    assert layer["top"] == 2e-6


def test_each_rail_and_tool_has_its_own() -> None:
    found = layers([pair("a", "b", 1.0, rail=rail, tool=tool) for rail in ("mlx5_0", "mlx5_1") for tool in ("ib_write_bw", "all_reduce")], ["a", "b"])
    assert {(layer["rail"], layer["tool"]) for layer in found} == {(rail, tool) for rail in ("mlx5_0", "mlx5_1") for tool in ("ib_write_bw", "all_reduce")}


@pytest.mark.parametrize("broken", [
    {}, {"hosts": None}, {"hosts": "ab"}, {"hosts": ["a"]}, {"hosts": ["a", "b", "c"]}, {"hosts": ["a", "stranger"]}, {"hosts": [["a"], {"b": 1}]},
])
def test_what_is_no_pair_is_passed_over(broken: dict[str, Any]) -> None:
    assert layers([broken], ["a", "b", "c"]) == []


@pytest.mark.parametrize("value", [None, "fast", True, float("nan"), -1.0, 1e301])
def test_a_value_that_is_none_is_a_failure(value: Any) -> None:
    [layer] = layers([pair("a", "b", value)], ["a", "b"])
    assert layer["failed"] == 1


def test_errors_are_bounded() -> None:
    hosts = [f"n{place}" for place in range(60)]
    [layer] = layers([pair(one, other, None, error="x") for at, one in enumerate(hosts) for other in hosts[at + 1 :]], hosts)
    assert len(layer["errors"]) == ERRORS_MOST
    assert layer["failed"] == 60 * 59 // 2


@pytest.mark.parametrize(("rounds", "form"), [(1, "triples"), (200, "triangle")])
def test_few_pairs_are_sent_as_few(rounds: int, form: str) -> None:
    [layer] = page_data(fold(fleet(40, checks=1, rounds=rounds)))["pairs"]
    assert form in layer


def test_half_a_million_pairs_would_take_one_and_a_half_megabytes() -> None:
    """At 200 nodes, 25 times fewer: a base64 of two bytes each."""
    [layer] = page_data(fold(fleet(200, checks=1)))["pairs"]
    assert len(layer["triangle"]) == pytest.approx(200 * 199 / 2 * 2 * 4 / 3, abs=4)


# -- sweeps


def sweep(hosts: list[str], rows: Any, **more: Any) -> dict[str, Any]:
    return {"hosts": hosts, "op": "all_reduce", "dtype": "float32", "redop": "sum", "backend": "gloo", "ranks": len(hosts), "in_place": False, "floor": 1e9, "source": "s", "rows": rows, **more}


@pytest.mark.parametrize(("times", "hosts", "words"), [
    ([1.0, 1.0, 1.8], ["a", "b", "c"], "rank 2 on c, 1.80 times the median"),
    ([1.0, 2.0, 1.0, 1.0], ["a", "b"], "rank 1 on a, 2.00 times the median"),
    ([1.0, 1.0, 1.0, 3.0], ["a", "b"], "rank 3 on b, 3.00 times the median"),
    ([2.0, 1.0], [], "rank 0, 1.33 times the median"),
    ([1.0], ["a"], ""), ([], ["a"], ""), (None, ["a"], ""), ("fast", ["a"], ""), ([1.0, None], ["a", "b"], ""), ([0.0, 0.0], ["a", "b"], ""),
])
def test_the_slow_rank_is_named(times: Any, hosts: list[str], words: str) -> None:
    assert slowest(times, hosts) == words


def test_rows_and_sweeps_are_bounded_and_the_widest_are_kept() -> None:
    rows = [{"bytes": 2**place, "busbw": 1.0} for place in range(ROWS_MOST + 5)]
    found = sweeps_of([*(sweep(["a"], rows) for _ in range(SWEEPS_MOST + 3)), sweep(["a", "b"], rows)], ["a", "b"])
    assert found["left_out"] == 4
    assert found["all"][0]["hosts"] == [0, 1]
    assert len(found["all"][0]["rows"]) == ROWS_MOST


@pytest.mark.parametrize("broken", [{}, {"rows": None}, {"rows": "x"}, {"rows": [], "hosts": None}, {"rows": [None, 3, "x"], "hosts": ["stranger"]}, {"rows": [{}], "hosts": "a", "floor": "high", "ranks": "two"}])
def test_what_is_no_sweep_does_not_end_the_page(broken: dict[str, Any]) -> None:
    json.dumps(sweeps_of([broken], ["a"]), allow_nan=False)


@pytest.mark.parametrize(("value", "sent"), [(3, 3), (1 / 3, 0.333333), (True, None), ("1", None), (None, None), (float("nan"), None), (float("inf"), None)])
def test_numbers(value: Any, sent: Any) -> None:
    assert number(value) == sent


@pytest.mark.parametrize("count", [1, 3, 64])
def test_measured_nodes_fit(count: int) -> None:
    """Ten kilobytes a node at most, of 30 checks with 300 characters of output each."""
    assert len(json.dumps(page_data(fold(fleet(count))))) < 40_000 + 10_000 * count


def test_a_node_nobody_measured_is_there() -> None:
    data = page_data(fold([Event("host.unreachable", 1.0, "n1", {"reason": "refused"})]))
    assert data["nodes"] == [{"name": "n1", "verdict": 0, "status": "unreachable", "reason": "refused"}]


def test_measured_twice_is_shown_twice() -> None:
    assert len(unpacked(page_data(fold([measured("n1", "x", 1.0, 2.0, 0, "s"), measured("n1", "x", 3.0, 2.0, 0, "s")])), 0)) == 2


@pytest.mark.parametrize(("said", "shown"), [
    ({"address": "10.0.0.7", "fabric": "ib", "gpus": 8, "torch": "2.13.0"}, "10.0.0.7, ib, 8 GPUs, torch 2.13.0"),
    ({"address": "10.0.0.7", "gpus": 1}, "10.0.0.7, 1 GPU"),
    ({"address": "\x1b[2J", "gpus": True, "torch": None}, "\\x1b[2J"),
    ({"address": None, "gpus": "many"}, ""),
])
def test_where_a_node_is_and_what_it_has(said: dict[str, Any], shown: str) -> None:
    [node] = page_data(fold([Event("node", 1.0, "n1", said)]))["nodes"]
    assert node.get("facts", "") == shown


def test_keys_and_options_of_the_connection_stay_out() -> None:
    said = {"address": "10.0.0.7", "key_file": "/home/ops/.ssh/id", "user": "ops", "ssh_options": {"proxyjump": "bastion"}, "env": {"A": "B"}}
    assert not [word for word in ("id", "ops", "bastion") if f"{word}\"" in json.dumps(page_data(fold([Event("node", 1.0, "n1", said)]))["nodes"])]


def test_tasks_are_counted_as_in_the_recap() -> None:
    events = [Event("task.end", 1.0, "n1", {"status": status, "task": "t", "result": {}}) for status in ("ok", "changed", "skipped")]
    [node] = page_data(fold(events))["nodes"]
    assert node["tasks"] == "ok=2 changed=1 unreachable=0 failed=0 skipped=1 rescued=0 ignored=0"
