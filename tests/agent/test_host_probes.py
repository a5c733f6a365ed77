"""Probes of host, PCI bus, GPUs, kernel log, name servers, ports and path MTU: against programs, servers and trees of the test's own."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nodectl.agent import dns_query, port_holder, recorded
from nodectl.agent.contract import Failed
from nodectl.agent.facts import gpu
from nodectl.agent.probes import probe_gpu, probe_hca, probe_host, probe_kernel_log, probe_nvme, probe_path_mtu, probe_pci
from nodectl.agent.system import Mount, System
from nodectl.lab.hardware import write as write_machine
from nodectl.lab.hardware_faults import break_it
from tests.agent.modules_sys.scripted import filled
from tests.agent.sysfs import write


def programs(folder: Path, **scripts: str) -> System:
    """A System that finds these shell scripts before anything else, and the machine's shell and grep."""
    (folder / "prog").mkdir(exist_ok=True)
    for name, script in scripts.items():
        path = folder / "prog" / name.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return System({"PATH": f"{folder / 'prog'}:/usr/bin:/bin"})


# -- the kernel's log

XID = "1719918123.000000 h kernel: NVRM: Xid (PCI:0000:cb:00): 79, gone"


def log(system: System, **args: Any) -> dict[str, Any]:
    return probe_kernel_log.act(system, filled(probe_kernel_log.SPEC, **args), False).values


def test_the_journal_is_read_first(tmp_path: Path) -> None:
    found = log(programs(tmp_path, journalctl=f'echo "{XID}"; echo "1719918124.0 h kernel: usb 1-1: new device"', dmesg="exit 1"))
    assert ([event["code"] for event in found["events"]], found["source"], found["error"]) == ([79], "journal", "")


def test_a_journal_without_such_lines_is_an_answer(tmp_path: Path) -> None:
    found = log(programs(tmp_path, journalctl='echo "1719918124.0 h kernel: usb 1-1: new device"', dmesg="exit 1"))
    assert (found["events"], found["source"], found["error"]) == ([], "journal", "")


@pytest.mark.parametrize(("journal", "dmesg", "source", "words"), [
    ("true", 'echo "[    1.0] NVRM: Xid (PCI:0000:cb:00): 79, gone"', "dmesg", ""),
    ("exit 1", 'echo "[    1.0] usb"', "dmesg", ""),
    ('echo "x"; echo "Hint: You are currently not seeing messages from other users and the system." >&2', 'echo "[    1.0] usb"', "dmesg", ""),
    ("true", "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1", "", "journalctl holds no line of the kernel; dmesg failed with exit code 1"),
    ("true", "true", "", "dmesg holds no line of the kernel"),
])
def test_a_log_that_cannot_be_read_is_no_empty_log(tmp_path: Path, journal: str, dmesg: str, source: str, words: str) -> None:
    found = log(programs(tmp_path, journalctl=journal, dmesg=dmesg))
    assert (found["source"], bool(found["error"])) == (source, not source)
    assert words in found["error"]


def test_a_journal_that_hangs_is_named_with_its_deadline(tmp_path: Path) -> None:
    found = log(programs(tmp_path, journalctl="exec sleep 60", dmesg="exit 1"), timeout=0.2)
    assert "sh did not end within 0.2 s" in found["error"]


def test_a_recorded_tree_without_a_log_is_said(tmp_path: Path) -> None:
    assert log(System(), root=str(tmp_path))["error"] == "the recorded tree has no kernel.log"


# -- name servers


class NameServer:
    """Answers each question with ``reply`` of it; None is silence."""

    def __init__(self, reply: Callable[[bytes], bytes | None]) -> None:
        self.line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.line.bind(("127.0.0.1", 0))
        self.port = int(self.line.getsockname()[1])
        self.reply = reply
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        try:
            while True:
                question, peer = self.line.recvfrom(4096)
                answer = self.reply(question)
                if answer is not None:
                    self.line.sendto(answer, peer)
        except OSError:
            return


def answered(code: int) -> Callable[[bytes], bytes]:
    return lambda question: question[:2] + bytes([0x81, 0x80 | code]) + question[4:]


@pytest.mark.parametrize(("reply", "words"), [
    (answered(0), ""), (answered(3), ""), (answered(5), ""), (answered(2), "SERVFAIL"), (lambda question: b"\x00\x00" + question[2:], "no answer to the question"),
    (lambda question: question, "no answer to the question"), (lambda _: b"x", "no answer to the question"), (lambda _: None, "no answer within 0.2 s"),
])
def test_a_name_server_answers_or_does_not(reply: Callable[[bytes], bytes | None], words: str) -> None:
    server = NameServer(reply)
    found = dns_query.ask("127.0.0.1", 0.2 if "within" in words else 5, server.port)
    server.line.close()
    assert words in found
    assert bool(found) == bool(words)


def test_nobody_listens_there() -> None:
    assert "refused" in dns_query.ask("127.0.0.1", 2, 1).lower()


@pytest.mark.parametrize(("text", "servers"), [
    ("", []), ("# nameserver 10.0.0.1\nsearch x\n", []), ("nameserver 10.0.0.1\nnameserver fe80::1%eth0\n", ["10.0.0.1", "fe80::1%eth0"]),
    ("nameserver one\nnameserver\nnameserver 1.1.1.1 # x", ["1.1.1.1"]), ("nameserver 1.1.1.1\n" * 5, ["1.1.1.1"] * 3),
])
def test_servers_of_resolv_conf(text: str, servers: list[str]) -> None:
    assert dns_query.servers(text) == servers


# -- who holds a port


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        line.listen(1)
        yield line


def test_who_listens_is_named(listener: socket.socket) -> None:
    found = port_holder.holder(listener.getsockname()[1])
    assert found.endswith(f"(process {os.getpid()})")


def test_a_free_port_has_no_holder(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    listener.close()
    assert port_holder.holder(port) == ""


def test_a_holder_that_may_not_be_looked_at(tmp_path: Path) -> None:
    row = "   0: 0100007F:7531 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0"
    write(tmp_path, {"net/tcp": f"  sl  local_address rem_address st\n{row}\n", "net/tcp6": "head\nshort\n", "12/fd/x": ""})
    assert port_holder.holder(30001, str(tmp_path)) == "a process that this account may not look at"
    assert port_holder.holder(30002, str(tmp_path)) == ""


# -- the host


@pytest.mark.parametrize(("hosts", "found"), [
    ("127.0.0.1 localhost\n10.0.0.1 node1\n", ""), ("127.0.1.1 node1.cluster node1\n", "127.0.1.1 node1"), ("127.0.1.1 node1 # old\n", "127.0.1.1 node1"),
    ("#127.0.1.1 node1\n", ""), ("::1 node1\n", "::1 node1"), ("127.0.1.1 node10\n", ""), ("", ""), ("127.0.1.1", ""),
])
def test_own_name_on_loopback(hosts: str, found: str) -> None:
    assert probe_host.loopback(hosts, "node1.cluster.example") == found


def host(system: System, **args: Any) -> dict[str, Any]:
    return probe_host.act(system, filled(probe_host.SPEC, **args), False).values


TREE = {
    "proc/cpuinfo": "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9654\nphysical id\t: 0\nsiblings\t: 1\ncpu cores\t: 1\n\n",
    "proc/meminfo": "MemTotal:       1585446912 kB\nHugePages_Total:    1024\nHugepagesize:       2048 kB\nSwapTotal: 0 kB\n",
    "proc/sys/kernel/osrelease": "6.8.0-31-generic\n", "proc/sys/kernel/numa_balancing": "1\n", "proc/modules": "mlx5_core 1 0 - Live 0x0\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n", "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/node/node0/x": "", "sys/devices/system/node/node1/x": "", "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "lib/modules/6.8.0-31-generic/modules.builtin": "kernel/drivers/infiniband/core/ib_uverbs.ko\n", "sys/module/nvidia_uvm/x": "",
    "etc/nccl.conf": "# x\nNCCL_SOCKET_IFNAME = =eth0\n", "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
}


def test_a_recorded_host(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    found = host(System(), root=str(tmp_path), modules=["mlx5_core", "ib-uverbs", "nvidia_uvm", "nvidia", "rdma_ucm"])
    expected = {
        "kernel": "6.8.0-31-generic", "cpu_model": "AMD EPYC 9654", "cpus": 1, "numa_nodes": 2, "memory": 1585446912 * 1024, "hugepages": 1024, "hugepage_size": 2**21,
        "thp": "madvise", "numa_balancing": 1, "governor": ["performance", "powersave"], "clocksource": "tsc", "nccl_interface": "=eth0",
        "modules_missing": ["nvidia", "rdma_ucm"], "modules": ["nvidia_uvm", "mlx5_core", "ib_uverbs"], "packages": None,
        "packages_error": "neither dpkg-query nor rpm is there", "resolvers": [], "simulated": True,
    }
    assert {key: found[key] for key in expected} == expected


DPKG = 'printf "install ok installed|libnccl2|2.20.5-1\\nhold ok installed|python3|3.11.2\\ndeinstall ok config-files|rdma-core|44.0\\ninstall ok installed|zsh|5.9\\nbroken\\n"'


def test_packages_that_a_job_depends_on(tmp_path: Path) -> None:
    found = host(programs(tmp_path, dpkg_query=DPKG))
    assert (found["packages"], found["packages_error"]) == ({"libnccl2": "2.20.5-1", "python3": "3.11.2"}, "")


def test_a_package_database_that_hangs_is_no_empty_one(tmp_path: Path) -> None:
    found = host(programs(tmp_path, dpkg_query="exec sleep 60"), timeout=0.2)
    assert found["packages"] is None
    assert "did not end within 0.2 s" in found["packages_error"]


class Mounted(System):
    """Two network mounts, one that hangs, one that the account may not look into; and a disk."""

    def mounts(self) -> list[Mount]:
        return [Mount("s", target, kind, "rw", "/", "0:50") for target, kind in (("/nfs", "nfs4"), ("/dead", "fuse.rclone"), ("/own", "fuse.sshfs"), ("/", "ext4"), ("/gvfs", "fuse.gvfsd-fuse"))]

    def probe(self, path: str, timeout: float) -> str:
        assert path != "/"
        return {"/dead": f"/dead did not answer within {timeout:g} s", "/own": "PermissionError: [Errno 13] Permission denied: '/own'"}.get(path, "")


def test_mounts_that_hang_are_named_and_disks_are_not_asked() -> None:
    found = host(Mounted(), timeout=1.0)
    assert (found["mounts_hung"], found["mounts_asked"]) == ({"/dead": "/dead did not answer within 1 s"}, 3)


def test_names_that_do_not_resolve(tmp_path: Path) -> None:
    system = programs(tmp_path, getent='case "$2" in good) echo 10.0.0.1;; slow) exec sleep 60;; *) exit 2;; esac')
    found = host(system, names=["good", "bad"])
    assert found["names_unresolved"] == {"bad": "does not resolve"}
    assert "did not end within 0.2 s" in host(system, names=["slow"], timeout=0.2)["names_unresolved"]["slow"]


# -- the PCI bus


def pci(root: Path) -> dict[str, Any]:
    return probe_pci.act(System(), filled(probe_pci.SPEC, root=str(root)), False).values


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("machine")
    write_machine(root, 3)
    return root


def test_the_bus_of_a_machine(machine: Path) -> None:
    found = pci(machine)
    kinds = [device["kind"] for device in found["devices"]]
    assert {kind: kinds.count(kind) for kind in kinds} == {"gpu": 8, "hca": 8, "nvswitch": 4, "nvme": 8}
    card = next(device for device in found["devices"] if device["kind"] == "hca")
    assert {key: card[key] for key in ("address", "driver", "width", "width_max", "speed", "speed_max", "max_read_request", "relaxed_ordering", "iommu", "numa_node")} == {
        "address": "0000:1a:00.0", "driver": "mlx5_core", "width": 16.0, "width_max": 16.0, "speed": 32.0, "speed_max": 32.0, "max_read_request": 4096,
        "relaxed_ordering": True, "iommu": "off", "numa_node": 0,
    }
    assert len(found["bridges"]) == 8
    assert found["bridges"][0]["acs"] == ["SrcValid"]
    assert (found["numa_nodes"], found["container"], found["virtualization"]["role"]) == (2, "", "NA")


def test_a_slot_that_is_narrower_than_its_card_is_no_fault(tmp_path: Path) -> None:
    """What both ends can do is the measure: a Gen 5 card in a Gen 4 slot runs as fast as it can."""
    write_machine(tmp_path)
    slot = (tmp_path / "sys/bus/pci/devices/0000:18:00.0").resolve()
    write(slot, {"max_link_speed": "16.0 GT/s PCIe\n", "max_link_width": "8\n"})
    card = (tmp_path / "sys/bus/pci/devices/0000:1a:00.0").resolve()
    write(card, {"current_link_speed": "16.0 GT/s PCIe\n", "current_link_width": "8\n"})
    found = next(device for device in pci(tmp_path)["devices"] if device["address"] == "0000:1a:00.0")
    assert (found["width"], found["width_max"], found["speed"], found["speed_max"]) == (8.0, 8.0, 16.0, 16.0)


@pytest.mark.parametrize(("kind", "mode"), [("identity", "passthrough"), ("DMA", "translated"), ("DMA-FQ", "translated")])
def test_modes_of_the_iommu(tmp_path: Path, kind: str, mode: str) -> None:
    write_machine(tmp_path)
    break_it(tmp_path, "iommu")
    write(tmp_path, {"sys/kernel/iommu_groups/17/type": f"{kind}\n"})
    assert next(device for device in pci(tmp_path)["devices"] if device["address"] == "0000:39:00.0")["iommu"] == mode


def test_guests_and_containers_say_so(tmp_path: Path) -> None:
    write(tmp_path, {"sys/class/dmi/id/sys_vendor": "QEMU"})
    assert pci(tmp_path)["virtualization"]["role"] == "guest"
    write(tmp_path, {"run/systemd/container": "systemd-nspawn"})
    assert pci(tmp_path)["container"] == "systemd-nspawn"


def test_links_that_say_nothing(tmp_path: Path) -> None:
    """A virtual function has width 0 and speed Unknown, a guest's device no such files at all."""
    base = "sys/bus/pci/devices/0000:00:05.0"
    write(tmp_path, {f"{base}/vendor": "0x15b3", f"{base}/class": "0x020700", f"{base}/current_link_width": "0", f"{base}/max_link_width": "255", f"{base}/max_link_speed": "Unknown"})
    (found,) = pci(tmp_path)["devices"]
    assert (found["width"], found["width_max"], found["speed_max"], found["numa_node"], found["alive"]) == (None, None, None, None, False)


# -- GPUs and ports


def test_gpus_of_a_machine(machine: Path) -> None:
    found = probe_gpu.act(System(), filled(probe_gpu.SPEC, root=str(machine)), False).values
    assert (found["driver"], found["library"], len(found["listed"]), len(found["gpus"]), found["error"]) == ("550.90.07", "550.90.07", 8, 8, "")
    assert found["fabric_manager"] == {"state": "active", "version": "550.90.07", "error": ""}
    assert (found["persistenced"], found["gpudirect"]) == ("active", {"peermem": True, "dmabuf": True})
    assert (found["gpus"][3]["pci"], found["gpus"][3]["nvlinks_up"], found["gpus"][3]["nvlinks_listed"]) == ("0000:49:00.0", 18, 18)


def test_an_nvidia_smi_that_hangs_costs_its_deadline_and_no_more(tmp_path: Path) -> None:
    write_machine(tmp_path)
    break_it(tmp_path, "hung-nvidia-smi")
    began = time.monotonic()
    found = probe_gpu.act(System(), filled(probe_gpu.SPEC, root=str(tmp_path), timeout=0.2), False).values
    assert "did not end within 0.2 s" in found["error"]
    assert (found["gpus"], found["listed"]) == ([], ["NVIDIA H100 80GB HBM3"] * 8)
    # The program ends at TERM; what is left is the start of a few other programs on a busy machine.
    assert time.monotonic() - began < 10


def test_nothing_is_there(tmp_path: Path) -> None:
    values = [code.act(System(), filled(code.SPEC, root=str(tmp_path)), False).values for code in (probe_gpu, probe_hca, probe_nvme, probe_pci)]
    assert (values[0]["error"], values[0]["gpus"], values[1]["ports"], values[2]["controllers"], values[3]["devices"]) == ("absent", [], [], [], [])


def test_ports_of_a_roce_machine(tmp_path: Path) -> None:
    write_machine(tmp_path, 7, roce=True)
    found = probe_hca.act(System(), filled(probe_hca.SPEC, root=str(tmp_path)), False).values
    port = found["ports"][2]
    assert {key: port[key] for key in ("device", "netdev", "usable", "rate", "link_layer", "mtu", "addresses", "matching", "fw_ver")} == {
        "device": "mlx5_2", "netdev": "eth2", "usable": True, "rate": 400.0, "link_layer": "Ethernet", "mtu": 9000, "addresses": ["10.224.2.7"], "matching": [3],
        "fw_ver": "28.39.1002",
    }
    assert port["counters"]["symbol_error"] == 0
    assert [gid["address"] for gid in port["gids"]][2:] == ["10.224.2.7", "10.224.2.7"]


# -- path MTU


def test_large_packets_come_back_over_loopback() -> None:
    found = probe_path_mtu.act(System(), filled(probe_path_mtu.SPEC, peers=["127.0.0.1"], mtu=9000), False).values["peers"]
    assert found == [{"address": "127.0.0.1", "way": "ping", "small": True, "full": True, "error": ""}]


@pytest.mark.parametrize(("mtu", "full"), [(9000, True), (65540, False)])
@pytest.mark.parametrize("peer", ["127.0.0.1", "::1"])
def test_an_account_that_may_not_ping_sends_datagrams(monkeypatch: pytest.MonkeyPatch, peer: str, mtu: int, full: bool) -> None:
    monkeypatch.setattr(probe_path_mtu, "_may_ping", lambda _version: False)
    (found,) = probe_path_mtu.act(System(), filled(probe_path_mtu.SPEC, peers=[peer], mtu=mtu + 20 * (peer == "::1"), timeout=0.5), False).values["peers"]
    assert found == {"address": peer, "way": "udp", "small": True, "full": full, "error": ""}


def test_packets_larger_than_the_own_interface_do_not_leave() -> None:
    (found,) = probe_path_mtu.act(System(), filled(probe_path_mtu.SPEC, peers=["127.0.0.1"], mtu=65540, timeout=0.2), False).values["peers"]
    assert (found["small"], found["full"]) == (True, False)


@pytest.mark.parametrize("peer", ["not an address", "", "300.1.1.1"])
def test_what_is_no_address(peer: str) -> None:
    (found,) = probe_path_mtu.act(System(), filled(probe_path_mtu.SPEC, peers=[peer], mtu=1500), False).values["peers"]
    assert found["error"]
    assert not found["small"]


@pytest.mark.parametrize("payload", [b"", b"\x08", bytes(range(9)), bytes(1472)])
def test_checksums_are_those_of_rfc_1071(payload: bytes) -> None:
    message = probe_path_mtu._with_checksum(struct.pack(">BBHHH", 8, 0, 0, 1, 1) + payload)
    padded = message + b"\x00" * (len(message) % 2)
    total = sum(struct.unpack(f">{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert total == 0xFFFF


# -- what hangs


def test_a_driver_whose_files_hang_is_left_behind(tmp_path: Path) -> None:
    """Opening a named pipe that nobody writes hangs, as a read of a wedged driver's file does."""
    folder = tmp_path / "proc/driver/nvidia/gpus/0000:19:00.0"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "information")
    tree = recorded.Tree(System(), str(tmp_path))
    with pytest.raises(Failed, match="facts about GPUs are missing: no answer within 0.2 s"):
        tree.within("GPUs", lambda: gpu.from_proc(str(tmp_path)), 0.2)


@pytest.mark.parametrize(("code", "place"), [
    (probe_hca, "sys/class/infiniband/mlx5_0/fw_ver"), (probe_pci, "sys/bus/pci/devices/0000:01:00.0/vendor"),
])
def test_a_card_whose_files_hang_is_named_with_the_deadline(tmp_path: Path, code: Any, place: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    with pytest.raises(Failed, match=r"no answer within 0\.2 s"):
        code.act(System(), filled(code.SPEC, root=str(tmp_path), timeout=0.2), False)


def test_several_troubles_of_one_host_cost_one_deadline(tmp_path: Path) -> None:
    system = programs(tmp_path, dpkg_query="exec sleep 60", getent="exec sleep 60", systemctl="exec sleep 60")
    began = time.monotonic()
    found = host(system, names=["a", "b", "c"], timeout=0.3)
    # One after the other would be 1.5 s and the start of five programs; the rest is a busy machine's.
    assert time.monotonic() - began < 8
    assert sorted(found["names_unresolved"]) == ["a", "b", "c"]
    assert (found["packages"], found["service_limits"]) == (None, {})
