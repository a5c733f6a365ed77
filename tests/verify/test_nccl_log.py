"""NCCL's own words, as several versions write them: what was used, what was not found, and what a log that is cut short does not say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.verify.parse.nccl_log import NcclLog, family, nccl_log, network_used

LOGS = Path(__file__).parent / "nccl_logs"


def read(name: str) -> NcclLog:
    return nccl_log((LOGS / f"{name}.log").read_text("utf-8"))


# log; what must be read from it
FACTS: list[tuple[str, dict[str, Any]]] = [
    ("ib_2_19_gdr", {
        "version": "2.19.3", "used": "IB", "hcas": {"mlx5_0", "mlx5_3", "mlx5_10"}, "links": {"IB": 3}, "direct": 3, "staged": 0,
        "gdr": {"mlx5_0": True, "mlx5_3": True, "mlx5_10": True}, "absent": set(), "warnings": (),
    }),
    ("ib_2_5_old", {"version": "2.5.6", "used": "IB", "hcas": {"mlx5_0"}, "links": {"IB": 2}, "direct": 1, "staged": 1}),
    ("roce_staged", {"used": "IB", "hcas": {"mlx5_2", "mlx5_3"}, "direct": 1, "staged": 2, "gdr": {"mlx5_2": True, "mlx5_3": False}, "version": ""}),
    ("socket_2_28", {"version": "2.28.3", "used": "Socket", "hcas": set(), "links": {"Socket": 1}, "direct": 0, "absent": {"IB"}}),
    ("efa_ofi", {"version": "2.21.5", "used": "Libfabric", "links": {"Libfabric": 2}, "direct": 2, "staged": 0}),
    ("efa_fell_back", {"used": "Socket", "absent": {"IB"}, "links": {}, "warnings": ("NET/OFI Could not find any optimal provider",)}),
    ("ibext_mixed", {"used": "IB,Socket", "hcas": {"mlx5_0", "mlx5_3"}, "links": {"IBext_v8": 1}, "direct": 1}),
    ("cut_at_the_front", {"used": "IB", "hcas": set(), "links": {"IB": 2}, "direct": 2, "version": ""}),
    ("inside_one_node", {"used": "IB", "links": {}, "direct": 0, "staged": 0}),
]


@pytest.mark.parametrize(("name", "facts"), FACTS, ids=[name for name, _ in FACTS])
def test_recorded_logs(name: str, facts: dict[str, Any]) -> None:
    log = read(name)
    assert {key: getattr(log, key) for key in facts} == facts


def test_every_recorded_log_is_tried() -> None:
    assert sorted(path.stem for path in LOGS.glob("*.log")) == sorted(name for name, _ in FACTS)


@pytest.mark.parametrize("text", ["", "\n\n", "NCCL INFO", "Using network", "via NET/", "Channel 0 : a -> b [send] via", "\x00\xff" * 100])
def test_what_says_nothing_is_nothing(text: str) -> None:
    assert nccl_log(text) == NcclLog()
    assert network_used(text) == ""


@pytest.mark.parametrize("name", [name for name, _ in FACTS])
def test_a_log_cut_anywhere_never_says_more_than_the_whole(name: str) -> None:
    """The node sends the end of a long log: what is left may say less, and nothing else."""
    text = (LOGS / f"{name}.log").read_text("utf-8")
    whole = nccl_log(text)
    for start in range(0, len(text), 37):
        part = nccl_log(text[start:])
        assert part.hcas <= whole.hcas
        assert set(part.used.split(",")) - {""} <= set(whole.used.split(","))
        assert all(count <= whole.links[name] for name, count in part.links.items())


@pytest.mark.parametrize(("name", "group"), [
    ("IB", "IB"), ("IBext", "IB"), ("IBext_v8", "IB"), ("Libfabric", "Libfabric"), ("OFI", "Libfabric"), ("Socket", "Socket"), ("FasTrak", "FasTrak"),
])
def test_families(name: str, group: str) -> None:
    assert family(name) == group


def test_many_warnings_are_kept_few_and_once() -> None:
    log = nccl_log("".join(f"n:1:1 [0] x.cc:9 NCCL WARN trouble {number // 2}\n" for number in range(40)))
    assert log.warnings == tuple(f"trouble {number}" for number in range(5))


def test_a_hundred_thousand_lines_are_read_quickly() -> None:
    """All ranks of a node in a job of hundreds: the parser must not be what takes the time."""
    line = "gpu:1:2 [0] NCCL INFO Channel 07/0 : 15[7] -> 0[0] [receive] via NET/IB/3/GDRDMA\n"
    assert nccl_log(line * 100_000).direct == 100_000
