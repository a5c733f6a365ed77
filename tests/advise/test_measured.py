"""From a run's events to a network and places: which figures count, and that no odd journal ends it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nodectl.advise.advice import advise
from nodectl.advise.measured import Measured, network, places, read
from nodectl.advise.network import seconds
from nodectl.advise.text import amount, as_json, explained, lines
from nodectl.advise.volumes import transfers
from nodectl.wire.event import Event
from tests.advise.jobs import shipped


def one(name: str, value: Any, hosts: tuple[str, ...] = ("n1",), unit: str = "B/s", error: str = "", **conditions: Any) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "hosts": list(hosts), "conditions": conditions, "error": error}


def events(*measurements: dict[str, Any], **verdicts: str) -> list[Event]:
    return [Event("reading", 1.0, "", {"step": "x", "measurements": list(measurements), "expectations": []})] + [
        Event("verdict", 2.0, host, {"verdict": verdict, "reasons": []}) for host, verdict in verdicts.items()
    ]


def mount(path: str, read_: float = 1e8, load: float = 3e8, write: float = 2e8, safe: float = 1e7, host: str = "n1") -> list[dict[str, Any]]:
    return [
        one(f"phase.batch_read:{path}", read_, (host,), files_per_second=read_ / 1e5), one(f"phase.model_load:{path}", load, (host,)),
        one(f"phase.checkpoint_write:{path}", write, (host,)), one(f"phase.checkpoint_durable:{path}", safe, (host,)),
    ]


SCRATCH = [one("disk.scratch.seq_write", 2e9), one("disk.scratch.seq_read", 3e9)]
GROUP = one("network.all_reduce", 480e9, ("n1", "n2"), nodes=2, ranks=16)


def test_a_network_from_the_group() -> None:
    found = network(read(events(GROUP)), "H100")
    assert found is not None
    assert found.node.value == pytest.approx(256e9)
    assert "measured: network.all_reduce" in next(leaf.how for leaf in found.node.leaves() if leaf.kind == "measured")


def test_a_sweep_counts_before_the_group_and_gives_the_latency() -> None:
    rows = [{"bytes": size, "time": time, "busbw": rate, "in_place": False} for size, time, rate in ((8, 6e-5, 1e5), (2**20, 1e-3, 1e9), (2**30, 1.0, 2e9))]
    sweep = Event("sweep", 1.0, "", {"op": "all_reduce", "hosts": ["n1", "n2", "n3", "n4"], "ranks": 4, "rows": rows})
    found = network(read([*events(GROUP), sweep]), "H100")
    assert found is not None
    assert found.node.value == pytest.approx(2e9)
    assert found.latency.value == pytest.approx(1e-5)
    other = Event("sweep", 1.0, "", {"op": "all_reduce", "hosts": ["n1"], "ranks": 8, "rows": rows})
    broken = Event("sweep", 1.0, "", {"op": "all_reduce", "hosts": ["n1", "n2"], "ranks": 2, "rows": [{"bytes": 8, "time": None, "busbw": "x"}]})
    alone = network(read([*events(GROUP), other, broken]), "H100")
    assert alone is not None
    assert alone.node.value == pytest.approx(256e9)


def swept(op: str, busbw: float) -> Event:
    return Event("sweep", 1.0, "", {"op": op, "hosts": ["n1", "n2"], "ranks": 2, "rows": [
        {"bytes": 8, "time": 1e-9, "busbw": 1.0, "in_place": False}, {"bytes": 2**24, "time": 1.0, "busbw": busbw, "in_place": False},
    ]})


def test_an_operation_that_was_swept_has_its_own_rate() -> None:
    """gloo scatters by a whole all-reduce: half the rate, which no all-reduce shows."""
    found = network(read([swept("all_reduce", 1e9), swept("reduce_scatter", 4e8), swept("broadcast", 1.0)]), "H100")
    assert found is not None
    assert [found.rate(op).value for op in ("all_reduce", "all_gather", "reduce_scatter")] == [1e9, 1e9, 4e8]
    work = shipped("12b")
    scatter = next(one for one in transfers(work) if one.op == "reduce_scatter")
    assert seconds(scatter, found).value == pytest.approx(2.5 * seconds(scatter, replace(found, operations=())).value, rel=0.01)


def test_rows_in_place_count_where_there_are_no_others() -> None:
    rows = [{"bytes": size, "time": 1.0, "busbw": rate, "in_place": where} for size, rate, where in ((8, 1.0, True), (2**24, 5e8, True))]
    found = network(read([Event("sweep", 1.0, "", {"op": "all_reduce", "hosts": ["n1", "n2"], "ranks": 2, "rows": rows})]), "H100")
    assert found is not None
    assert found.node.value == 5e8
    rows += [{"bytes": 2**24, "time": 1.0, "busbw": 3e8, "in_place": False}, {"bytes": 0, "time": 1.0, "busbw": 9e9, "in_place": False}]
    apart = network(read([Event("sweep", 1.0, "", {"op": "all_reduce", "hosts": ["n1", "n2"], "ranks": 2, "rows": rows})]), "H100")
    assert apart is not None
    assert apart.node.value == 3e8


def test_of_several_sweeps_the_one_with_the_largest_messages_counts() -> None:
    small = Event("sweep", 2.0, "", {"op": "reduce_scatter", "hosts": ["n1", "n2"], "ranks": 2, "rows": [{"bytes": 2**18, "time": 1.0, "busbw": 7e6}]})
    found = network(read([swept("all_reduce", 1e9), swept("reduce_scatter", 4e8), swept("reduce_scatter", 3e8), small]), "H100")
    assert found is not None
    assert found.rate("reduce_scatter").value == 4e8


def test_pairs_where_there_was_no_group_and_nothing_where_nothing_was_measured() -> None:
    pair = [one("network.pairs", rate, (host,), nodes=2, ranks=2) for rate, host in ((1e8, "n1"), (9e7, "n2"))]
    found = network(read(events(*pair)), "H100")
    assert found is not None
    assert (found.node.value, found.node.high) == pytest.approx((9e7, 1e8))
    assert network(read(events(*SCRATCH)), "H100") is None


def test_inside_a_node_what_was_measured_there() -> None:
    found = network(read(events(GROUP, one("node.all_reduce", 470e9))), "H100")
    assert found is not None
    assert found.gpu.value == 470e9


def test_places_with_all_their_phases() -> None:
    found = {place.name: place for place in places(read(events(*mount("/ckpt"), *mount("/data", safe=0), one("phase.model_load:/half", 1e6), *SCRATCH)))}
    assert set(found) == {"/ckpt", "/data", "scratch disk"}
    assert (found["/ckpt"].durable, found["/data"].durable, found["scratch disk"].durable) == (True, False, False)
    assert found["/ckpt"].write.value == 2e8
    assert found["/ckpt"].files is not None
    assert found["/ckpt"].files.value == 1000
    assert found["scratch disk"].load.value == 3e9


def test_free_bytes_and_caches_are_those_of_the_node_with_the_least() -> None:
    disks = [one("disk.scratch.seq_read", 3e9, ("n1",)), *(one("disk.scratch.seq_write", 2e9, (host,), free_bytes=free, path="/scratch") for host, free in (("n1", 2e12), ("n2", 1e12)))]
    cached = [{**figure, "conditions": {**figure["conditions"], "cache_bytes": 5e11}} if "checkpoint_write" in figure["name"] else figure for figure in mount("/ckpt")]
    copy = {"name": "mount:/set", "value": True, "unit": "bool", "hosts": ["n1"], "conditions": {"mode": "COPY", "path": "/set", "target": "/scratch"}, "error": ""}
    found = {place.name: place for place in places(read(events(*disks, *cached, copy)))}
    assert list(found) == ["/set (a copy on /scratch)", "/ckpt", "scratch disk"]
    room, cache = found["scratch disk"].capacity, found["/ckpt"].cache
    assert room is not None
    assert (room.value, room.how) == (1e12, "measured: free_bytes of disk.scratch.seq_write on n2")
    assert cache is not None
    assert cache.value == 5e11
    assert found["/ckpt"].capacity is None
    assert found["/set (a copy on /scratch)"].reads_only


@pytest.mark.parametrize("odd", [{"mode": "COPY", "path": "/set", "target": "/elsewhere"}, {"mode": "COPY"}, {}, 3])
def test_a_copy_on_what_was_not_measured_is_no_place(odd: Any) -> None:
    copy = {"name": "mount:/set", "value": True, "unit": "bool", "hosts": ["n1"], "conditions": odd, "error": ""}
    assert [place.name for place in places(read(events(*SCRATCH, copy)))] == ["scratch disk"]


def test_the_slowest_node_counts_and_one_that_failed_does_not() -> None:
    slow, slower = mount("/ckpt", write=5e7, host="n2"), mount("/ckpt", write=1e6, host="n3")
    found = places(read(events(*mount("/ckpt"), *slow, *slower, n1="pass", n2="pass", n3="fail")))[0]
    assert (found.write.value, found.write.low, found.write.high) == (5e7, 5e7, 2e8)
    assert "n2, the slowest of 2 nodes" in found.write.how


ODD: list[Any] = [None, 3, [], {}, one("x", None), one("x", True), one("x", -1.0), one("disk.scratch.seq_write", 1e9, error="no proof"), one("disk.scratch.seq_write", 1.0, unit="s"), {"name": 3, "value": 2.0, "unit": "B/s"}]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_odd_measurements_are_none(odd: Any) -> None:
    found = read([Event("reading", 1.0, "", {"measurements": [odd]})])
    assert found.figures == {}
    assert places(found) == []


def test_the_answer_says_what_was_not_measured() -> None:
    work = shipped("12b")
    assert [note.partition(":")[0] for note in advise(work, Measured()).notes] == ["the run measured no network between nodes", "the run measured no storage"]
    assert advise(work, read(events(GROUP, *SCRATCH))).notes[0].startswith("the run measured no durable storage")
    assert advise(work, read(events(GROUP, *SCRATCH, *mount("/ckpt")))).notes == ()


def test_a_tier_that_was_asked_and_not_found_says_what_it_costs() -> None:
    why = "asked best, found tcp at 10 Gb/s"
    told = [f"{why}: no RDMA hardware is here", f"{why}: IB hardware is here and cannot be used", "best: ib, 8 x mlx5"]
    event = Event("reading", 1.0, "", {"measurements": [], "expectations": [*({"metric": "network_tier", "why": one} for one in told), {"metric": "x", "why": why}, 3]})
    slow = one("network.all_reduce", 1e9, ("n1", "n2"), nodes=2, ranks=2)
    notes = advise(shipped("12b"), read([*events(slow, *mount("/ckpt")), event])).notes
    assert len(notes) == 1
    assert notes[0].startswith(f"{why}: a step is ")
    assert float(notes[0].split(" a step is ")[1].split()[0]) > 3
    assert notes[0].endswith("times what it would be over 8 x 400 Gb/s InfiniBand")


def test_the_answer_in_words_and_as_data() -> None:
    import json

    answer = advise(shipped("70b"), read(events(GROUP, *SCRATCH, *mount("/ckpt"))))
    text = "\n".join(lines(answer))
    for words in ("70B dense: 8 nodes with 8 x H100, fsdp, tensor 8", "T_gpu", "T_net", "T_io", "bottleneck: ", "what if: network", "8 x 400 Gb/s InfiniBand", "where to keep what", "/ckpt", "what would narrow it"):
        assert words in text, words
    tree = "\n".join(explained(answer))
    for words in ("[measured: network.all_reduce on n1, the slowest of 2 nodes]", "[workload, 70b.yaml:", "[assumed: "):
        assert words in tree, words
    for choice in answer.choices:
        for _, figure in choice.order:
            assert f"  {figure.name}: " in tree, "what decides a place is traced too"
    for name, _ in (*answer.networks, *answer.storage):
        assert f"with {name}" in tree
    data = json.loads(as_json(answer))
    assert data["step"]["total"]["value"] == pytest.approx(sum(data["step"][key]["value"] for key in ("gpu", "net", "io")))
    assert {row["kind"] for row in data["rests_on"]} == {"measured", "workload", "assumed"}
    assert [row["name"] for row in data["what_if"]["network"]] == ["measured", "10 GbE", "100 GbE", "8 x 400 Gb/s InfiniBand"]
    assert len(data["placement"]) == 4


@pytest.mark.parametrize(("value", "unit", "text"), [
    (77880.4, "money", "77,880"), (12.3, "money", "12.30"), (32 / 3600, "money/s", "32.00 an hour"), (0.5, "1", "50%"), (0.012, "s", "12 ms"), (3e12, "FLOP", "3 TFLOP"),
])
def test_amounts_as_people_write_them(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


def test_what_would_narrow_it_is_what_moves_it() -> None:
    answer = advise(shipped("12b"), read(events(GROUP, *mount("/ckpt"))))
    assert answer.narrow[0].name in ("compute_efficiency", "overlap", "state_bytes_per_parameter")
    assert all(not figure.exact for figure in answer.narrow)
