"""Trees as /sys and /proc show them, made from a few words: the same text that a real kernel writes."""

from __future__ import annotations

from pathlib import Path


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def hca(
    root: Path, name: str, *, layer: str = "InfiniBand", state: str = "4: ACTIVE", physical: str = "5: LinkUp", rate: str = "400 Gb/sec (4X NDR)", lid: str = "0x1a",
    netdev: str = "", gids: dict[int, tuple[str, str]] | None = None, driver: str = "mlx5_core", pci: str = "",
) -> None:
    """One RDMA device with one port; ``gids`` maps index to (gid, type). Empty places of the table are all-zero, their type cannot be read."""
    base = f"sys/class/infiniband/{name}"
    port = f"{base}/ports/1"
    write(root, {
        f"{base}/fw_ver": "28.39.1002\n", f"{base}/board_id": "MT_0000000838\n", f"{base}/hca_type": "MT4129\n", f"{base}/node_guid": "a088:c203:00f1:2345\n",
        f"{port}/state": f"{state}\n", f"{port}/phys_state": f"{physical}\n", f"{port}/rate": f"{rate}\n", f"{port}/lid": f"{lid}\n", f"{port}/sm_lid": "0x1\n",
        f"{port}/link_layer": f"{layer}\n",
    })
    table = dict.fromkeys(range(6), ("0000:0000:0000:0000:0000:0000:0000:0000", "")) | (gids or {})
    for index, (gid, kind) in table.items():
        write(root, {f"{port}/gids/{index}": f"{gid}\n"})
        if kind:
            write(root, {f"{port}/gid_attrs/types/{index}": f"{kind}\n", f"{port}/gid_attrs/ndevs/{index}": f"{netdev}\n"})
    if driver:
        place = root / "sys/devices" / (pci or f"0000:{name}")
        place.mkdir(parents=True, exist_ok=True)
        (root / "sys/bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
        (place / "driver").symlink_to(root / "sys/bus/pci/drivers" / driver)
        write(place, {"numa_node": "1\n"})
        if netdev:
            (place / "net" / netdev).mkdir(parents=True)
        (root / base / "device").symlink_to(place)


def netdev(root: Path, name: str, *, kind: str = "1", speed: str = "400000", mtu: str = "9000", state: str = "up") -> None:
    base = f"sys/class/net/{name}"
    write(root, {f"{base}/type": kind, f"{base}/mtu": mtu, f"{base}/operstate": state, f"{base}/address": "02:00:00:00:00:01", f"{base}/flags": "0x1003", f"{base}/speed": speed})


def roce_gids(address: str, netdev: str = "") -> dict[int, tuple[str, str]]:
    """The usual four: link-local v1 and v2, then IPv4-mapped v1 and v2 at index 2 and 3."""
    a, b, c, d = (int(part) for part in address.split("."))
    mapped = f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}"
    local = "fe80:0000:0000:0000:0000:00ff:fe00:0001"
    return {0: (local, "IB/RoCE v1"), 1: (local, "RoCE v2"), 2: (mapped, "IB/RoCE v1"), 3: (mapped, "RoCE v2")}
