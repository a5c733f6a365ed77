"""What perftest and probe_hca say: recorded output, and tables and ports made up after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nodectl.wire.outcome import Outcome

RECORDED = Path(__file__).parent / "perftest"
GBIT = 1e9 / 8
# A table as perftest prints it; its heading is what changes between versions and options.
RULE = "-" * 87
OLD = " #bytes #iterations    BW peak[MB/sec]    BW average[MB/sec]"
NEW = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
LAT = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] "
DURATION = " #bytes #iterations       t_avg[usec]    tps average"


def table(heading: str, row: str) -> dict[str, Any]:
    return {"rc": 0, "stdout": f"{RULE}\n GID: 00:00\n{RULE}\n{heading}\n{row}\n{RULE}\n", "stderr": "", "installed": True, "timed_out": False}


def recorded(name: str, rc: int = 0) -> dict[str, Any]:
    return {"rc": rc, "stdout": (RECORDED / f"{name}.txt").read_text(), "stderr": "", "installed": True, "timed_out": False}


def outcome(**values: Any) -> Outcome:
    return Outcome(values={"installed": True, "version": "6.06", "rc": 0, "stdout": "", "stderr": "", "timed_out": False, **values})


def measured(tool: str, rate: float, latency: float = 2e-6) -> Outcome:
    """What either end says of a write at ``rate`` (B/s), or of a latency (s)."""
    if tool == "ib_write_bw":
        return outcome(**table(NEW, f" 1048576 5000 0.00 {rate / GBIT:.4f} 0.0"))
    return outcome(**table(LAT, f" 2 1000 1 9 {latency * 1e6:.3f} 2 0 3 4"))


def gid(index: int, address: str, kind: str = "RoCE v2") -> dict[str, Any]:
    return {"index": index, "gid": f"gid-of-{address}", "type": kind, "address": address}


def port(name: str = "mlx5_0", **changes: Any) -> dict[str, Any]:
    """A RoCE port of a ConnectX-7 as probe_hca shows it: v1 and v2 of each address, link-local first."""
    return {
        "device": name, "port": 1, "netdev": "eth1", "usable": True, "reason": "", "state": "ACTIVE", "rate": 400.0, "link_layer": "Ethernet", "driver": "mlx5_core",
        "gids": [gid(0, "fe80::1", "IB/RoCE v1"), gid(1, "fe80::1"), gid(2, "10.0.0.1", "IB/RoCE v1"), gid(3, "10.0.0.1")], "matching": [1, 3], **changes,
    }
