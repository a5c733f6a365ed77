"""Facts from recorded texts, and on this machine against ansible-core's own setup."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import socket
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from nodectl.agent.contract import Failed
from nodectl.agent.facts import hardware, local, netlink, network, platform, storage
from nodectl.agent.facts.bounded import bounded
from nodectl.agent.facts.netlink import Address
from nodectl.agent.modules import setup
from nodectl.agent.system import Mount, System
from tests.agent.conftest import RunModule
from tests.agent.sysfs import netdev, write

RELEASES = {
    "debian": ('ID=debian\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nVERSION="12 (bookworm)"\nVERSION_CODENAME=bookworm\n', "12.5", ("Debian", "Debian", "12.5", "12", "bookworm")),
    "debian testing": ('ID=debian\nNAME="Debian GNU/Linux"\nVERSION_CODENAME=trixie\n', "trixie/sid", ("Debian", "Debian", "NA", "NA", "trixie")),
    "ubuntu": ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"\nVERSION_CODENAME=jammy\n', "bookworm/sid", ("Ubuntu", "Debian", "22.04", "22", "jammy")),
    "rocky": ('ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\nVERSION="9.4 (Blue Onyx)"\n', "", ("Rocky", "RedHat", "9.4", "9", "Blue Onyx")),
    "rhel": ('ID="rhel"\nVERSION_ID="8.10"\nVERSION="8.10 (Ootpa)"\n', "", ("RedHat", "RedHat", "8.10", "8", "Ootpa")),
    "amazon": ('ID="amzn"\nID_LIKE="fedora"\nVERSION_ID="2023"\n', "", ("Amazon", "RedHat", "2023", "2023", "NA")),
    "leap": ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\nVERSION_ID="15.6"\n', "", ("openSUSE Leap", "Suse", "15.6", "15", "NA")),
    "unknown child": ('ID=mine\nNAME=Mine\nID_LIKE="ubuntu debian"\nVERSION_ID=7\n', "", ("Mine", "Debian", "7", "7", "NA")),
    "unknown": ('ID=zzz\nNAME=Zzz\nVERSION_ID=1\n', "", ("Zzz", "Zzz", "1", "1", "NA")),
    "nothing": ("", "", ("NA", "NA", "NA", "NA", "NA")),
}


@pytest.mark.parametrize(("release", "exact", "expected"), RELEASES.values(), ids=RELEASES.keys())
def test_distribution(tmp_path: Path, release: str, exact: str, expected: tuple[str, ...]) -> None:
    write(tmp_path, {"etc/os-release": release, "etc/debian_version": f"{exact}\n"})
    facts = platform.distribution(str(tmp_path))
    assert tuple(facts[f"ansible_{key}"] for key in ("distribution", "os_family", "distribution_version", "distribution_major_version", "distribution_release")) == expected


def cpu(count: int, per_socket: int, siblings: int) -> str:
    return "\n".join(f"processor\t: {n}\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\nphysical id\t: {n // siblings}\nsiblings\t: {siblings}\ncpu cores\t: {per_socket}\n" for n in range(count))


ARM = "\n".join(f"processor\t: {n}\nCPU part\t: 0xd4f\n" for n in range(72))


@pytest.mark.parametrize(
    ("cpuinfo", "counts"), [(cpu(8, 2, 4), (8, 2, 2, 2)), (cpu(4, 4, 4), (4, 1, 4, 1)), (cpu(1, 1, 1), (1, 1, 1, 1)), (ARM, (72, 1, 72, 1))], ids=["two sockets", "no threads", "one", "arm"],
)
def test_processors(tmp_path: Path, cpuinfo: str, counts: tuple[int, ...]) -> None:
    write(tmp_path, {"proc/cpuinfo": cpuinfo})
    facts = hardware.processors(str(tmp_path))
    assert tuple(facts[f"ansible_processor_{key}"] for key in ("vcpus", "count", "cores", "threads_per_core")) == counts


def test_memory(tmp_path: Path) -> None:
    write(tmp_path, {"proc/meminfo": "MemTotal:       2097152 kB\nMemFree:        1048576 kB\nBuffers: 1024 kB\nCached:  2048 kB\nSwapTotal: 4096 kB\nSwapFree: 1024 kB\nHugePages_Total:      16\nHugepagesize:       2048 kB\n"})
    facts = hardware.memory(str(tmp_path))
    assert (facts["ansible_memtotal_mb"], facts["ansible_memfree_mb"], facts["ansible_swaptotal_mb"]) == (2048, 1024, 4)
    assert facts["ansible_memory_mb"]["nocache"] == {"free": 1027, "used": 1021}
    assert facts["ansible_hugepages"]["total"] == 16


@pytest.mark.parametrize(
    ("files", "kind", "role"),
    [
        ({}, "NA", "NA"),
        ({"sys/class/dmi/id/sys_vendor": "QEMU\n"}, "kvm", "guest"),
        ({"sys/class/dmi/id/sys_vendor": "VMware, Inc.\n"}, "VMware", "guest"),
        ({"sys/class/dmi/id/sys_vendor": "Supermicro\n", "sys/module/kvm/refcnt": "0"}, "kvm", "host"),
        ({"proc/cpuinfo": "processor : 0\nflags\t\t: fpu hypervisor lm\n"}, "kvm", "guest"),
        ({"run/systemd/container": "systemd-nspawn\n", "sys/class/dmi/id/sys_vendor": "QEMU\n"}, "systemd-nspawn", "guest"),
        ({"proc/1/environ": "PATH=/bin\0container=lxc\0"}, "lxc", "guest"),
        ({".dockerenv": ""}, "docker", "guest"),
    ],
)
def test_virtualization(tmp_path: Path, files: dict[str, str], kind: str, role: str) -> None:
    write(tmp_path, files)
    facts = hardware.virtualization(str(tmp_path))
    assert (facts["ansible_virtualization_type"], facts["ansible_virtualization_role"]) == (kind, role)


def attribute(kind: int, data: bytes) -> bytes:
    padded = data + b"\0" * (-len(data) % 4)
    return struct.pack("=HH", 4 + len(data), kind) + padded


def message(family: int, prefix: int, index: int, *attributes: bytes, flags: int = 0, scope: int = 0) -> bytes:
    return struct.pack("=BBBBi", family, prefix, flags, scope, index) + b"".join(attributes)


def framed(kind: int, body: bytes) -> bytes:
    data = struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 0) + body
    return data + b"\0" * (-len(data) % 4)


def test_netlink_messages() -> None:
    four = message(socket.AF_INET, 24, 2, attribute(1, bytes([10, 0, 0, 5])), attribute(2, bytes([10, 0, 0, 5])), attribute(4, bytes([10, 0, 0, 255])), attribute(3, b"eth0\0"))
    peer = message(socket.AF_INET, 32, 9, attribute(1, bytes([10, 9, 9, 1])), attribute(2, bytes([10, 9, 9, 2])))
    six = message(socket.AF_INET6, 64, 2, attribute(1, socket.inet_pton(socket.AF_INET6, "fe80::1")), scope=253)
    bodies, over = netlink.cut(b"".join(framed(netlink.RTM_NEWADDR, body) for body in (four, peer, six)) + framed(netlink.NLMSG_DONE, b"\0\0\0\0"))
    assert over
    assert [netlink.parse(body, {2: "eth0"}) for body in bodies] == [
        Address("eth0", 4, "10.0.0.5", 24, "10.0.0.255"), Address("9", 4, "10.9.9.2", 32), Address("eth0", 6, "fe80::1", 64, "", "link"),
    ]
    assert netlink.cut(framed(netlink.RTM_NEWADDR, four)) == ([four], False)
    with pytest.raises(OSError, match="refused"):
        netlink.cut(framed(netlink.NLMSG_ERROR, b"\0" * 20))


def test_netlink_of_this_machine() -> None:
    assert Address("lo", 4, "127.0.0.1", 8, "", "host") in netlink.addresses()


ROUTES = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\neth1\t00000000\t0101A8C0\t0003\t0\t0\t200\t00000000\neth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\neth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\n"


def test_network(tmp_path: Path) -> None:
    netdev(tmp_path, "eth0", mtu="1500", speed="25000")
    netdev(tmp_path, "br-lan", state="down")
    netdev(tmp_path, "lo", kind="772", state="unknown")
    write(tmp_path, {"sys/class/net/br-lan/bridge/bridge_id": "x", "sys/class/net/br-lan/brif/eth0/port_no": "1", "proc/net/route": ROUTES, "etc/resolv.conf": "# x\nnameserver 10.0.0.53\nsearch a.b c.d\n"})
    own = [Address("lo", 4, "127.0.0.1", 8), Address("eth0", 4, "10.0.0.5", 24, "10.0.0.255"), Address("eth0", 4, "10.1.0.5", 31), Address("eth0", 6, "fd00::5", 64)]
    facts = network.collect(own, str(tmp_path))
    assert facts["ansible_interfaces"] == ["br-lan", "eth0", "lo"]
    eth0 = facts["ansible_eth0"]
    assert (eth0["device"], eth0["active"], eth0["type"], eth0["mtu"], eth0["speed"], eth0["macaddress"]) == ("eth0", True, "ether", 1500, 25000, "02:00:00:00:00:01")
    assert eth0["ipv4"] == {"address": "10.0.0.5", "netmask": "255.255.255.0", "network": "10.0.0.0", "prefix": "24", "broadcast": "10.0.0.255"}
    assert eth0["ipv4_secondaries"][0]["broadcast"] == ""
    assert (facts["ansible_br_lan"]["type"], facts["ansible_br_lan"]["interfaces"], facts["ansible_br_lan"]["active"]) == ("bridge", ["eth0"], False)
    assert facts["ansible_lo"]["active"] is True
    assert facts["ansible_default_ipv4"]["interface"] == "eth0"
    assert facts["ansible_default_ipv4"]["gateway"] == "10.0.0.1"
    assert facts["ansible_default_ipv4"]["address"] == "10.0.0.5"
    assert facts["ansible_default_ipv6"] == {}
    assert facts["ansible_all_ipv4_addresses"] == ["10.0.0.5", "10.1.0.5"]
    assert facts["ansible_all_ipv6_addresses"] == ["fd00::5"]
    assert facts["ansible_dns"] == {"nameservers": ["10.0.0.53"], "search": ["a.b", "c.d"]}


@pytest.mark.parametrize(("size", "words"), [(0, "0.00 Bytes"), (1536, "1.50 KB"), (3840755982336, "3.49 TB"), (4294967296, "4.00 GB")])
def test_sizes(size: int, words: str) -> None:
    assert storage.human(size) == words


def test_devices(tmp_path: Path) -> None:
    base = "sys/block/nvme0n1"
    write(tmp_path, {
        f"{base}/size": "7501476528\n", f"{base}/queue/logical_block_size": "512\n", f"{base}/queue/rotational": "0\n", f"{base}/queue/scheduler": "[none] mq-deadline\n",
        f"{base}/removable": "0\n", f"{base}/wwid": "eui.0025385\n", f"{base}/device/model": "SAMSUNG MZQL23T8HCLS-00A07   \n", f"{base}/device/serial": "S64HNE0T\n",
        f"{base}/holders/dm-0/x": "", f"{base}/nvme0n1p1/partition": "1\n", f"{base}/nvme0n1p1/size": "2048\n", f"{base}/nvme0n1p1/start": "34\n", f"{base}/nvme0n1p1/holders/md0/x": "",
        "dev/nvme0n1": "", "dev/nvme0n1p1": "",
    })
    for kind, name, target in (("id", "nvme-SAMSUNG_S64HNE0T", "nvme0n1"), ("uuid", "abcd-1234", "nvme0n1p1")):
        folder = tmp_path / f"dev/disk/by-{kind}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(f"../../{target}")
    found = storage.devices(str(tmp_path))["nvme0n1"]
    assert (found["model"], found["serial"], found["wwn"], found["vendor"]) == ("SAMSUNG MZQL23T8HCLS-00A07", "S64HNE0T", "eui.0025385", None)
    assert (found["size"], found["rotational"], found["scheduler_mode"], found["holders"]) == ("3.49 TB", "0", "none", ["dm-0"])
    assert found["links"]["ids"] == ["nvme-SAMSUNG_S64HNE0T"]
    assert found["partitions"]["nvme0n1p1"]["uuid"] == "abcd-1234"
    assert found["partitions"]["nvme0n1p1"]["holders"] == ["md0"]


def test_network_filesystems_are_not_asked() -> None:
    asked: list[str] = []

    def space(path: str) -> os.statvfs_result:
        asked.append(path)
        return os.statvfs("/")

    table = [
        Mount("/dev/sda1", "/", "ext4", "rw", "/", "8:1"), Mount("server:/x", "/nfs", "nfs4", "rw", "/", "0:50"), Mount("bucket:", "/data", "fuse.rclone", "rw", "/", "0:51"),
        Mount("proc", "/proc", "proc", "rw", "/", "0:5"), Mount("overlay", "/merged", "overlay", "rw", "/", "0:52"),
    ]
    found = storage.mounts(table, {}, space)
    assert [entry["mount"] for entry in found] == ["/", "/nfs", "/data", "/merged"]
    assert asked == ["/", "/merged"]
    assert found[0]["size_total"] > 0
    assert "not asked" in found[2]["note"]


def test_a_mount_that_cannot_be_read() -> None:
    def space(path: str) -> os.statvfs_result:
        raise PermissionError(13, "Permission denied")

    assert "Permission denied" in storage.mounts([Mount("/dev/sda1", "/x", "xfs", "rw", "/", "8:1")], {}, space)[0]["note"]


def test_local_facts(tmp_path: Path) -> None:
    write(tmp_path, {"a.fact": '{"x": 1}', "b.fact": "[general]\nkey=50%\n", "c.fact": "#!/bin/sh\necho '{\"from\": \"program\"}'\n", "d.fact": "neither", "e.fact": "#!/bin/sh\nexit 3\n", "f.txt": "{}"})
    for name in ("c.fact", "e.fact"):
        (tmp_path / name).chmod(0o755)
    facts, warnings = local.collect(System(), str(tmp_path))
    assert facts == {"a": {"x": 1}, "b": {"general": {"key": "50%"}}, "c": {"from": "program"}}
    assert len(warnings) == 2
    assert "d.fact" in warnings[0]
    assert "exit code 3" in warnings[1]


def sleepy(*_args: Any) -> Any:
    time.sleep(30)


def test_bounded_gives_up() -> None:
    began = time.monotonic()
    assert bounded("x", sleepy, 7, 0.05) == (7, "facts about x are missing: no answer within 0.05 s")
    assert time.monotonic() - began < 2


def test_bounded_says_why() -> None:
    def broken() -> int:
        raise FileNotFoundError(2, "No such file", "/proc/x")

    assert bounded("x", lambda: 5, 0, 5) == (5, "")
    value, problem = bounded("x", broken, 0, 5)
    assert value == 0
    assert "/proc/x" in problem


EVERY = set(setup.COLLECTORS) | {"local"}
MINIMUM = {name for name, collector in setup.COLLECTORS.items() if collector.group == "min"} | {"local"}
HARDWARE = {name for name, collector in setup.COLLECTORS.items() if collector.group == "hardware"}


@pytest.mark.parametrize(
    ("subset", "names"),
    [
        (["all"], EVERY), ([], EVERY), (["min"], MINIMUM), (["!all"], MINIMUM), (["!all", "!min"], set()), (["!all", "!min", "memory"], {"memory"}),
        (["!all", "network"], MINIMUM | {"interfaces"}), (["hardware"], MINIMUM | HARDWARE), (["hardware", "!mounts"], MINIMUM | HARDWARE - {"mounts"}),
        (["!hardware"], EVERY - HARDWARE), (["all", "!virtual"], EVERY - {"virtualization"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_subsets(subset: list[str], names: set[str]) -> None:
    assert setup.chosen(subset) == names


def test_a_subset_that_is_none() -> None:
    with pytest.raises(Failed, match="Bad subset 'memroy'"):
        setup.chosen(["memroy"])


def test_filter(run: RunModule) -> None:
    outcome = run("setup", {"gather_subset": ["min"], "filter": ["ansible_user_*", "kernel"]})
    assert {"ansible_kernel", "ansible_user_id"} <= set(outcome.facts)
    assert all(key == "ansible_kernel" or key.startswith("ansible_user_") for key in outcome.facts)


def test_a_collector_that_hangs_costs_only_its_time(run: RunModule, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = setup.COLLECTORS["memory"]._replace(collect=sleepy)
    monkeypatch.setattr(setup, "COLLECTORS", {**setup.COLLECTORS, "memory": slow})
    outcome = run("setup", {"gather_subset": ["!all", "!min", "memory", "processor"], "gather_timeout": 1})
    assert not outcome.failed
    assert "ansible_processor_vcpus" in outcome.facts
    assert outcome.warnings == ["facts about memory are missing: no answer within 1 s"]


def theirs() -> dict[str, Any]:
    """ansible-core's setup module, in this process."""
    from ansible.module_utils.testing import patch_module_args
    from ansible.modules import setup as oracle

    said = io.StringIO()
    with patch_module_args({"gather_subset": ["all"], "gather_timeout": 10}), contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        oracle.main()
    facts: dict[str, Any] = json.loads(said.getvalue())["ansible_facts"]
    return facts


SAME = [
    "architecture", "machine", "kernel", "kernel_version", "system", "hostname", "nodename", "fqdn", "domain", "distribution",
    "distribution_version", "distribution_major_version", "distribution_release", "os_family", "pkg_mgr", "service_mgr", "user_id", "user_uid",
    "user_gid", "user_dir", "user_shell", "memtotal_mb", "swaptotal_mb", "processor_cores", "processor_count", "processor_vcpus",
    "processor_threads_per_core", "processor_nproc", "processor", "userspace_bits", "python_version", "machine_id", "fips", "cmdline",
    "real_user_id", "effective_user_id", "product_name", "system_vendor", "bios_version", "selinux", "apparmor",
]


def test_as_ansible_on_this_machine(run: RunModule) -> None:
    ours, oracle = run("setup", {}).facts, theirs()
    differing = {key: (ours[f"ansible_{key}"], oracle[f"ansible_{key}"]) for key in SAME if ours[f"ansible_{key}"] != oracle.get(f"ansible_{key}")}
    assert differing == {}


def test_interfaces_as_ansible(run: RunModule) -> None:
    """Needs `ip` for Ansible's side; compares what both say of each interface."""
    ours, oracle = run("setup", {"gather_subset": ["network"]}).facts, theirs()
    assert sorted(ours["ansible_interfaces"]) == sorted(oracle["ansible_interfaces"])
    assert sorted(ours["ansible_all_ipv4_addresses"]) == sorted(oracle["ansible_all_ipv4_addresses"])
    assert ours["ansible_default_ipv4"].get("address") == oracle["ansible_default_ipv4"].get("address")
    for name in ours["ansible_interfaces"]:
        key = f"ansible_{re.sub(r'[^0-9A-Za-z_]', '_', name)}"
        shared = {field for field in ("device", "mtu", "type", "macaddress") if field in oracle[key] and ours[key][field]}
        assert {field: ours[key][field] for field in shared} == {field: oracle[key][field] for field in shared}, name
        if "ipv4" in ours[key] and name != "lo":
            assert ours[key]["ipv4"]["address"] == oracle[key]["ipv4"]["address"]
            assert ours[key]["ipv4"]["netmask"] == oracle[key]["ipv4"]["netmask"]
