"""probe_traffic on recorded trees: ports that count words, adapters that count bytes, and devices that count nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.agent.probes import probe_traffic
from nodectl.agent.system import System
from tests.agent.sysfs import hca, netdev, write


def read(root: Path) -> dict[str, Any]:
    return probe_traffic.act(System(), {"root": str(root)}, False).values


def count(root: Path, device: str, **files: str) -> None:
    write(root / f"sys/class/infiniband/{device}/ports/1", {name.replace("__", "/"): f"{value}\n" for name, value in files.items()})


def sent(root: Path) -> dict[str, Any]:
    return {port["device"]: (port["sent"], port["received"]) for port in read(root)["ports"]}


def test_words_of_four_bytes(tmp_path: Path) -> None:
    hca(tmp_path, "mlx5_0")
    count(tmp_path, "mlx5_0", counters__port_xmit_data="250", counters__port_rcv_data="1000")
    assert sent(tmp_path) == {"mlx5_0": (1000, 4000)}
    assert read(tmp_path)["simulated"] is True


def test_efa_counts_bytes_of_sends_and_of_rdma_writes(tmp_path: Path) -> None:
    hca(tmp_path, "rdmap0", driver="efa", layer="Unspecified")
    count(tmp_path, "rdmap0", hw_counters__tx_bytes="70", hw_counters__rdma_write_bytes="1000", hw_counters__rx_bytes="5")
    assert sent(tmp_path) == {"rdmap0": (1070, 5)}


# files of the port; what it sent
ODD: list[tuple[dict[str, str], int | None]] = [
    ({}, None), ({"counters__port_xmit_data": "N/A"}, None), ({"counters__port_xmit_data": ""}, None), ({"counters__port_xmit_data": "0"}, 0),
    ({"hw_counters__sent_pkts": "9"}, None), ({"counters__port_xmit_data": "3", "hw_counters__tx_bytes": "99"}, 12),
]


@pytest.mark.parametrize(("files", "expected"), ODD)
def test_what_counts_nothing_is_null(files: dict[str, str], expected: int | None, tmp_path: Path) -> None:
    hca(tmp_path, "rxe0")
    count(tmp_path, "rxe0", **files)
    assert sent(tmp_path)["rxe0"][0] == expected


def test_interfaces_but_lo_and_those_without_counters(tmp_path: Path) -> None:
    for name, files in {"eth0": {"tx_bytes": "12", "rx_bytes": "34"}, "lo": {"tx_bytes": "9", "rx_bytes": "9"}, "bonding_masters": {}, "ib0": {"tx_bytes": "7"}}.items():
        netdev(tmp_path, name)
        write(tmp_path / f"sys/class/net/{name}/statistics", {key: f"{value}\n" for key, value in files.items()})
    assert read(tmp_path)["interfaces"] == [{"name": "eth0", "sent": 12, "received": 34}, {"name": "ib0", "sent": 7, "received": None}]


def test_nothing_there(tmp_path: Path) -> None:
    assert read(tmp_path) == {"ports": [], "interfaces": [], "simulated": True}


def test_this_machine_counts() -> None:
    found = probe_traffic.act(System(), {"root": "/"}, False).values
    assert found["simulated"] is False
    assert all(one["name"] != "lo" for one in found["interfaces"])
