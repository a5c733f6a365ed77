"""Floors that a site adopts from its own healthy nodes: what counts, what is refused, and that later runs are held against them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodectl.cli.main import run as nodectl
from nodectl.report.journal import Journal
from nodectl.verify.adopt import MARGIN, Proposal, Run, entry, merged, propose, round_down
from nodectl.verify.evidence import Given
from nodectl.verify.judging.floor_load import FLOORS, Floor, floors_of, load_floors
from nodectl.verify.judging.judge import Expectation, judge
from nodectl.verify.judging.measurement import Measurement
from nodectl.verify.judging.reading import Reading
from nodectl.verify.ledger import Ledger, Terms
from nodectl.wire.event import Event
from tests.verify.fleet import Seen

SHIPPED = load_floors(FLOORS)
RUN = Run("20261201T000000Z-abc", "2026-12-01")
GB = 1e9
L40S = {"sku": "L40S", "fabric": "roce", "gpus": 8, "collective": "all_reduce", "nodes": 2, "ranks": 16, "bytes": 2**33}
DISK = {"device": "nvme", "bs": 2**20}


def measured(host: str, value: Any, name: str = "network.pairs", conditions: dict[str, Any] | None = None, unit: str = "B/s", **more: Any) -> Measurement:
    return Measurement(name, value, unit, (host,), "tool", dict(L40S if conditions is None else conditions), **more)


def given_of(*measurements: Measurement, expectations: Sequence[Expectation] = (), repetition: tuple[int, int] = (1, 1)) -> Given:
    return Given("pairs", repetition, Reading(list(measurements), list(expectations)))


def found(*readings: Given, floors: Sequence[Floor] = (), shipped: Sequence[Floor] = SHIPPED) -> list[Proposal]:
    return propose(readings, floors, shipped, RUN)


def fleet(*values: float, **more: Any) -> Given:
    return given_of(*(measured(f"n{index}", value, **more) for index, value in enumerate(values, 1)))


def test_the_median_of_several_nodes_less_the_margin() -> None:
    (one,) = found(fleet(100 * GB, 104 * GB, 99 * GB, 101 * GB))
    assert one.floor is not None
    assert one.floor.floor == pytest.approx(MARGIN * 100.5 * GB, rel=0.01)
    assert one.floor.floor <= MARGIN * 100.5 * GB
    assert one.floor.source == "this site, run 20261201T000000Z-abc, 2026-12-01"
    assert one.floor.reason == "90% of the median of 4 nodes (99 GB/s (792 Gb/s) to 104 GB/s (832 Gb/s)); healthy nodes and runs differ by a few per cent"
    assert (one.floor.nodes, one.floor.gpus, one.floor.size, one.floor.site) == ((2, 2), 8, 2**33, True)
    assert one.floor.match == (("sku", "L40S"), ("fabric", "roce"), ("collective", "all_reduce"))


def test_repetitions_are_one_figure_per_node() -> None:
    wild = [given_of(measured("n1", value * GB), repetition=(number, 3)) for number, value in ((1, 100.0), (2, 100.0), (3, 900.0))]
    (one,) = found(*wild, fleet(100 * GB, 100 * GB, 100 * GB))
    assert one.floor is not None
    assert one.floor.floor == 90 * GB


REFUSED: list[tuple[str, list[Given], str]] = [
    ("two nodes", [fleet(100 * GB, 100 * GB)], "figures of 2 healthy nodes: it takes 3"),
    ("one node three times", [given_of(measured("n1", 100 * GB)) for _ in range(3)], "figures of 1 healthy node:"),
    ("a slow one among them", [fleet(100 * GB, 101 * GB, 60 * GB, 99 * GB)], "n3 60 GB/s (480 Gb/s) would fail at once"),
    ("simulated", [fleet(100 * GB, 100 * GB, 100 * GB, simulated=True)], "only played"),
    ("one of them simulated", [given_of(*(measured(f"n{index}", 100 * GB, simulated=index == 2) for index in range(1, 5)))], "only played"),
    ("above what is possible", [fleet(1600 * GB, 1600 * GB, 1600 * GB)], "above what is physically possible"),
    ("above what this machine can do", [fleet(*[800 * GB] * 3, conditions={**L40S, "sku": "H100-SXM", "fabric": "ib"})], "8 x 400 Gb/s: 400 GB/s x 15/8"),
    ("nothing moved", [fleet(0.0, 0.0, 0.0)], "a floor of 0"),
]


@pytest.mark.parametrize(("name", "readings", "words"), REFUSED, ids=[name for name, *_ in REFUSED])
def test_refused(name: str, readings: list[Given], words: str) -> None:
    (one,) = found(*readings)
    assert one.floor is None
    assert words in one.why_not


FALSE = Measurement("mount:/data", False, "bool", ("n2",), "list")
TRUE = Expectation("mount:/data", "equals", True, "bool", "mounted")


@pytest.mark.parametrize("against", [
    given_of(FALSE, expectations=[TRUE]), given_of(Measurement("clock.offset", None, "s", ("n2",), "probe", error="no answer")),
    given_of(Measurement("pairs", None, "text", ("n2",), "lost", error="lost: x", gone=True)),
    given_of(measured("n2", 1.0, "network.all_reduce"), expectations=[Expectation("network.all_reduce", "at_least", 5.0, "B/s", "half", alone=False)]),
], ids=["a failed check", "an unknown one", "lost", "below the others"])
def test_a_node_with_anything_against_it_teaches_nothing(against: Given) -> None:
    pairs = [one for one in found(fleet(100 * GB, 100 * GB, 100 * GB), against) if one.metric == "network.pairs"]
    assert pairs[0].floor is None
    assert "figures of 2 healthy nodes" in pairs[0].why_not
    (enough,) = [one for one in found(fleet(100 * GB, 300 * GB, 100 * GB, 100 * GB), against) if one.metric == "network.pairs"]
    assert enough.floor is not None
    assert enough.floor.floor == 90 * GB


def test_what_passed_is_adopted_too_and_raises_the_bar() -> None:
    h200 = {**L40S, "sku": "H200-SXM"}
    (one,) = found(fleet(480 * GB, 481 * GB, 482 * GB, conditions=h200), floors=SHIPPED)
    assert one.floor is not None
    assert one.floor.floor == 432 * GB
    (below,) = found(fleet(200 * GB, 200 * GB, 200 * GB, conditions=h200), floors=SHIPPED)
    assert "0 healthy nodes" in below.why_not


def test_only_rates_are_adopted() -> None:
    others = [
        measured("n1", True, "mount:/data", {}, "bool"), measured("n1", 3.0, "torch.gpus", {}, "count"), measured("n1", 0.1, "clock.offset", {}, "s"),
        measured("n1", "ib", "fabric.kind", {}, "text"), measured("n1", None, error="x"), measured("n1", 5.0, "host.something", {}),
    ]
    assert found(given_of(*others)) == []


def test_conditions_apart_and_mounts_together() -> None:
    other = fleet(*[50 * GB] * 3, conditions={**L40S, "nodes": 4}, name="network.all_reduce")
    data = fleet(*[3 * GB] * 3, name="phase.batch_read:/data", conditions={"device": "mount"})
    slow = fleet(*[1 * GB] * 3, name="phase.batch_read:/slow", conditions={"device": "mount"})
    by = {one.about(): one.floor for one in found(fleet(*[100 * GB] * 3), other, data, slow)}
    assert by["network.pairs (sku L40S, fabric roce, collective all_reduce, gpus 8, nodes 2, bytes 8589934592)"].floor == 90 * GB  # type: ignore[union-attr]
    assert by["network.all_reduce (sku L40S, fabric roce, collective all_reduce, gpus 8, nodes 4, bytes 8589934592)"].floor == 45 * GB  # type: ignore[union-attr]
    assert by["phase.batch_read (device mount)"].floor == 0.9 * GB  # type: ignore[union-attr]


@given(st.floats(0, 1e13))
def test_rounding_is_never_up(value: float) -> None:
    assert 0 <= round_down(value) <= value
    assert value < 1e-300 or round_down(value) > 0.98 * value


@pytest.mark.parametrize(("value", "expected"), [(0.0, 0.0), (1.9, 1.89), (12345.6, 12300.0), (999.99, 999.0), (90450000000.0, 90400000000.0), (1e13, 1e13)])
def test_three_digits(value: float, expected: float) -> None:
    assert round_down(value) == expected


# -- the file

ADOPTED = [one.floor for one in found(fleet(*[100 * GB] * 3), fleet(*[5 * GB] * 3, name="disk.scratch.seq_read", conditions=DISK),
                                      fleet(*[90_000.0] * 3, name="disk.scratch.rand_read", conditions=DISK, unit="1/s")) if one.floor]


def test_what_is_written_is_read_as_it_was_meant() -> None:
    assert len(ADOPTED) == 3
    read = floors_of(merged("", ADOPTED), "site_floors.toml", site=True)
    assert read == ADOPTED


def test_odd_names_stay_texts() -> None:
    odd = {**L40S, "sku": 'X "1"\\ \n'}
    (one,) = found(fleet(*[100 * GB] * 3, conditions=odd))
    assert one.floor is not None
    assert dict(floors_of(entry(one.floor), "x")[0].match)["sku"] == odd["sku"]


OWN = """# our own file

# agreed with the vendor
[[floor]]
metric = "network.pairs"
fabric = "roce"
sku = "L40S"
gpus = 8
nodes = 2
collective = "all_reduce"
algorithm = "any"
size = "1 GiB"
statistic = "mean"
floor = 50
unit = "GB/s"
bound = 100
bound_reason = "2 x 400 Gb/s"
source = "the offer of 2026-03"
date = "2026-03"
"""


def test_the_users_own_lines_stay_and_older_adoptions_go() -> None:
    first = merged(OWN, ADOPTED)
    assert first.startswith(OWN)
    newer = [one.floor for one in propose([fleet(*[120 * GB] * 3)], [], SHIPPED, Run("later", "2026-12-09")) if one.floor]
    second = merged(first, newer)
    assert second.startswith(OWN)
    assert second.count("[[floor]]") == 4
    assert second.count("this site, run later") == 1
    read = floors_of(second, "x")
    assert sorted(one.floor for one in read) == [81000.0, 4.5 * GB, 50 * GB, 108 * GB]
    assert merged(second, newer) == second


# -- on the command line


def site(tmp_path: Path, values: Sequence[float], simulated: bool = False) -> Path:
    """A run's folder whose readings are these pairs of nodes that nothing else is known of, and a hosts.yaml."""
    hosts = [f"n{index}" for index in range(1, len(values) + 1)]
    (tmp_path / "hosts.yaml").write_text("all:\n  hosts:\n" + "".join(f"    {host}:\n" for host in hosts))
    seen = Seen()
    seen(Event("run.start", 1.0, "", {"command": "verify", "run_id": "r1", "inventory": [str(tmp_path / "hosts.yaml")], "hosts": hosts}))
    seen(Event("suite", 1.0, "", {"name": "quick", "text": "", "floors": [], "waivers": [], "today": "2026-12-01", "settings": {}}))
    ledger = Ledger(hosts, Terms(), seen)
    for host, value in zip(hosts, values, strict=True):
        ledger.judged(Reading([measured(host, value, simulated=simulated)]), "pairs")
    for host in hosts:
        ledger.verdict(host)
    (tmp_path / "run").mkdir()
    journal = Journal(tmp_path / "run" / "events.jsonl")
    for event in seen.events:
        journal(event)
    journal.close()
    return tmp_path / "run"


def told(capfd: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    code = nodectl(["verify", "--replay", *argv])
    out = capfd.readouterr()
    return code, out.out + out.err


def test_adopted_from_a_past_run_and_held_against_the_next(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = site(tmp_path, [100 * GB, 101 * GB, 99 * GB])
    code, text = told(capfd, str(run), "--adopt")
    assert code == 3, "it was unknown, and adopting does not make it proven"
    path = tmp_path / "site_floors.toml"
    assert f"written: {path}" in text
    assert "floor = 90000" in text
    floors = floors_of(path.read_text(), str(path), site=True)
    assert [check.verdict for check in judge([measured("n1", 95 * GB)], floors, [])] == ["pass"]
    assert [check.verdict for check in judge([measured("n1", 80 * GB)], floors, [])] == ["fail"]
    assert "this site, run r1" in judge([measured("n1", 80 * GB)], floors, [])[0].source


@pytest.mark.parametrize(("values", "simulated", "words"), [([100 * GB] * 2, False, "it takes 3"), ([100 * GB] * 3, True, "only played"), ([1e15] * 3, False, "physically possible")])
def test_nothing_to_adopt_writes_nothing(values: list[float], simulated: bool, words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _, text = told(capfd, str(site(tmp_path, values, simulated)), "--adopt")
    assert words in text
    assert "nothing to adopt" in text
    assert not (tmp_path / "site_floors.toml").exists()


def test_a_file_with_common_lines_is_left_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = site(tmp_path, [100 * GB] * 3)
    (tmp_path / "site_floors.toml").write_text("[every]\ngpus = 8\n")
    code, text = told(capfd, str(run), "--adopt")
    assert code == 1
    assert "E408" in text
    assert (tmp_path / "site_floors.toml").read_text() == "[every]\ngpus = 8\n"


def test_evidence_that_does_not_hold_teaches_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = site(tmp_path, [100 * GB] * 3)
    path = run / "events.jsonl"
    path.write_text(path.read_text().replace('"verdict":"unknown","reasons"', '"verdict":"pass","reasons"'))
    code, text = told(capfd, str(run), "--adopt")
    assert code == 3
    assert "does not hold" in text
    assert not (tmp_path / "site_floors.toml").exists()
