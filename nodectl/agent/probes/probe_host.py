"""probe_host: what must agree over a fleet and what trips jobs up: kernel, processors, memory, packages, modules, names, name service, mounts, a port."""

from __future__ import annotations

import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, Optional, Tuple

from nodectl.agent import dns_query, port_holder, recorded
from nodectl.agent.contract import Args, Failed
from nodectl.agent.facts import hardware, netlink, network, platform
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Kernel, processors, memory, packages, kernel modules, own name, name servers, bridges, hanging mounts, and who holds a port.",
    params={
        "modules": Param("list", "kernel modules that must be there, loaded or built in", default=[], elements="str"),
        "names": Param("list", "host names that must resolve", default=[], elements="str"),
        "port": Param("int", "TCP port whose holder is looked for; 0 = none", default=0),
        "timeout": Param("float", "seconds for each thing that may hang: a mount, a name server, the package database", default=5.0),
        "root": recorded.PARAM,
    },
    returns={
        "kernel": "release", "machine": "architecture", "os": "name and version", "python": "version", "cpu_model": "of the first processor", "cpus": "logical",
        "sockets": "of processors", "numa_nodes": "with memory", "memory": "bytes", "hugepages": "pages of the default size", "hugepage_size": "bytes",
        "thp": "mode of transparent huge pages", "numa_balancing": "0, 1, … or null", "governor": "list of those in use; empty where clocks are not scaled",
        "clocksource": "in use", "container": "kind, \"\" outside", "virtual_machine": "kind, \"\" on bare metal", "swap": "bytes",
        "packages": "name to version, of those that a job depends on; null with error where the database gave none", "packages_error": "why not",
        "modules_missing": "of those asked for", "modules": "of the fabric and the GPUs that are loaded or built in",
        "own_name_on_loopback": "\"\" or the line's address and name", "bridges": "interface to list of its addresses",
        "nccl_interface": "NCCL_SOCKET_IFNAME of the nccl.conf",
        "resolvers": "per name server: address, error", "names_unresolved": "name: reason", "mounts_hung": "network and FUSE mounts: path: reason",
        "mounts_asked": "how many were asked", "port_holder": "\"\" or who listens on the port", "service_limits": "DefaultLimit* of the service manager",
        "simulated": "whether a recorded tree was read",
    },
    example="- probe_host:\n    modules: [ib_uverbs]\n",
)
# What NCCL, MPI, the drivers and the object cache are made of: another version on one node is another program there.
_PACKAGES = re.compile(
    r"^(nvidia|libnvidia|cuda|libcuda|libnccl|libcudnn|nccl|datacenter-gpu-manager|gdrcopy|libgdrapi|mlnx|mft|doca|rdma|libibverbs|ibverbs|librdmacm|infiniband|perftest"
    r"|efa|libfabric|openmpi|hpcx|ucx|libucx|aws-ofi|rclone|fuse3|nvme-cli|libc6$|glibc$|python3$|systemd$|openssh-server$|linux-image|kernel-core|kernel$)"
)
_NETWORK_TYPES = re.compile(r"^(nfs4?|cifs|smb3|ceph|lustre|gpfs|beegfs|wekafs|9p|virtiofs|glusterfs|fuse\..+|fuseblk)$")
# Tools of desktops and of systemd that nobody trains from.
_OWN_FUSE = frozenset(["fuse.gvfsd-fuse", "fuse.portal", "fuse.lxcfs"])
_STACK = (
    "nvidia", "nvidia_uvm", "nvidia_peermem", "nv_peer_mem", "gdrdrv", "mlx5_core", "mlx5_ib", "ib_uverbs", "rdma_ucm", "ib_umad", "ib_ipoib", "efa",
    "rdma_rxe",
)
# Status, name, version of each package, by either database.
_ASK_PACKAGES = (
    ("dpkg-query", ["-W", "-f", "${Status}|${Package}|${Version}\n"]), ("rpm", ["-qa", "--qf", "install ok installed|%{NAME}|%{VERSION}-%{RELEASE}\n"]),
)
_TOGETHER = 16


def act(system: System, args: Args, check: bool) -> Outcome:
    tree = recorded.Tree(system, args["root"])
    timeout = args["timeout"]
    # All that may hang at the same time: a node with several troubles must name them all within the step.
    with ThreadPoolExecutor(5, thread_name_prefix="host") as pool:
        packages, mounts = pool.submit(_packages, tree, timeout), pool.submit(_hung, system, timeout)
        resolvers, names = pool.submit(_resolvers, tree, timeout), pool.submit(_unresolved, system, args["names"], timeout)
        limits = pool.submit(_service_limits, tree, timeout)
        values = {**_identity(tree), **_processors(tree), **_memory(tree), **_settings(tree, args)}
    hung, asked = mounts.result()
    values.update(zip(("packages", "packages_error"), packages.result()))  # noqa: B905 -- strict came with 3.10
    values.update(
        mounts_hung=hung, mounts_asked=asked, resolvers=resolvers.result(), names_unresolved=names.result(), service_limits=limits.result(),
        simulated=tree.simulated,
    )
    return Outcome(values=values)


def _settings(tree: recorded.Tree, args: Args) -> Dict[str, Any]:
    present = _present(tree)
    return {
        "modules_missing": [name for name in args["modules"] if not present(name)], "modules": [name for name in _STACK if present(name)],
        "own_name_on_loopback": loopback(tree.text("etc/hosts"), socket.gethostname()), "bridges": _bridges(tree), "nccl_interface": _nccl_interface(tree),
        "port_holder": port_holder.holder(args["port"]) if args["port"] else "",
    }


def _identity(tree: recorded.Tree) -> Dict[str, Any]:
    kernel, distribution, virtual = platform.kernel(), platform.distribution(), hardware.virtualization(tree.root)
    inside = virtual["ansible_virtualization_role"] == "guest"
    kind = str(virtual["ansible_virtualization_type"])
    container = bool(hardware.container(tree.root))
    return {
        "kernel": tree.text("proc/sys/kernel/osrelease") or kernel["ansible_kernel"], "machine": kernel["ansible_machine"],
        "os": f"{distribution['ansible_distribution']} {distribution['ansible_distribution_version']}", "python": kernel["ansible_python_version"],
        "container": kind if container else "", "virtual_machine": kind if inside and not container else "",
    }


def _processors(tree: recorded.Tree) -> Dict[str, Any]:
    found = hardware.processors(tree.root)
    words = list(found["ansible_processor"])
    base = "sys/devices/system"
    governors = {tree.text(f"{base}/cpu/{name}/cpufreq/scaling_governor") for name in tree.names(f"{base}/cpu") if re.match(r"^cpu\d+$", name)}
    return {
        "cpu_model": words[-1] if words else "", "cpus": found["ansible_processor_vcpus"], "sockets": found["ansible_processor_count"],
        "numa_nodes": len([name for name in tree.names(f"{base}/node") if re.match(r"^node\d+$", name)]),
        "governor": sorted(governors - {""}), "clocksource": tree.text(f"{base}/clocksource/clocksource0/current_clocksource"),
        "numa_balancing": tree.number("proc/sys/kernel/numa_balancing"),
    }


def _memory(tree: recorded.Tree) -> Dict[str, Any]:
    kib = {key: int(figure) for key, figure in re.findall(r"^(\w+):\s+(\d+)", tree.text("proc/meminfo"), re.MULTILINE)}
    chosen = re.search(r"\[(\w+)\]", tree.text("sys/kernel/mm/transparent_hugepage/enabled"))
    return {
        "memory": kib.get("MemTotal", 0) * 1024, "swap": kib.get("SwapTotal", 0) * 1024, "hugepages": kib.get("HugePages_Total", 0),
        "hugepage_size": kib.get("Hugepagesize", 0) * 1024, "thp": chosen.group(1) if chosen else None,
    }


def _packages(tree: recorded.Tree, timeout: float) -> Tuple[Optional[Dict[str, str]], str]:
    """The packages that a job depends on. Raises nothing: a locked or broken database is said."""
    for name, arguments in _ASK_PACKAGES:
        if tree.program(name) is None:
            continue
        try:
            rows = [line.split("|") for line in tree.run(name, arguments, timeout).stdout.splitlines()]
        except Failed as failed:
            tree.system.stopper.check()
            return None, failed.msg
        return {row[1]: row[2] for row in rows if len(row) == 3 and row[0].endswith("ok installed") and _PACKAGES.match(row[1])}, ""
    return None, "neither dpkg-query nor rpm is there"


def _present(tree: recorded.Tree) -> Callable[[str], bool]:
    """Whether a module is loaded, or part of the kernel."""
    loaded = {line.split()[0] for line in tree.text("proc/modules").splitlines() if line.strip()}
    release = tree.text("proc/sys/kernel/osrelease") or os.uname().release
    built_in = {os.path.basename(line).split(".")[0].replace("-", "_") for line in tree.text(f"lib/modules/{release}/modules.builtin").splitlines()}

    def present(name: str) -> bool:
        plain = name.replace("-", "_")
        return plain in loaded or plain in built_in or tree.exists(f"sys/module/{plain}")

    return present


def loopback(hosts: str, own: str) -> str:
    """The first line of a hosts file that leads the node's own name to itself; "" for none."""
    names = {own, own.split(".")[0]}
    for line in hosts.splitlines():
        words = line.split("#")[0].split()
        hit = sorted(names & set(words[1:]))
        if words and hit and (words[0].startswith("127.") or words[0] == "::1"):
            return f"{words[0]} {hit[0]}"
    return ""


def _bridges(tree: recorded.Tree) -> Dict[str, List[str]]:
    """Bridges (docker0, virbr0, cni0 …) that have addresses."""
    if tree.simulated:
        return {}
    names = [name for name in tree.names("sys/class/net") if network.kind(tree.path(f"sys/class/net/{name}")) == "bridge"]
    own = netlink.addresses()
    found = {name: [entry.address for entry in own if entry.interface == name and entry.scope == "global"] for name in names}
    return {name: addresses for name, addresses in found.items() if addresses}


def _nccl_interface(tree: recorded.Tree) -> str:
    found = re.findall(r"^\s*NCCL_SOCKET_IFNAME\s*=\s*(\S+)\s*$", tree.text("etc/nccl.conf"), re.MULTILINE)
    return str(found[-1]) if found else ""


def _resolvers(tree: recorded.Tree, timeout: float) -> List[Dict[str, str]]:
    servers = dns_query.servers(tree.text("etc/resolv.conf"))
    if not servers:
        return []
    with ThreadPoolExecutor(_TOGETHER, thread_name_prefix="dns") as pool:
        return [{"address": server, "error": error} for server, error in zip(servers, pool.map(lambda server: dns_query.ask(server, timeout), servers))]  # noqa: B905


def _unresolved(system: System, names: List[str], timeout: float) -> Dict[str, str]:
    if not names:
        return {}
    with ThreadPoolExecutor(min(_TOGETHER, len(names)), thread_name_prefix="names") as pool:
        said = dict(zip(names, pool.map(lambda name: _resolved(system, name, timeout), names)))  # noqa: B905 -- strict came with 3.10
    return {name: reason for name, reason in said.items() if reason}


def _resolved(system: System, name: str, timeout: float) -> str:
    """ "" or why the node's own resolver gives no address."""
    try:
        done = system.run(["getent", "ahosts", name], timeout=timeout)
    except Failed as failed:
        system.stopper.check()
        return failed.msg
    return "" if done.rc == 0 else "does not resolve"


def _hung(system: System, timeout: float) -> Tuple[Dict[str, str], int]:
    """Network and FUSE mounts that do not answer. Each is asked in a process of its own that can be left behind."""
    targets = sorted({mount.target for mount in system.mounts() if _NETWORK_TYPES.match(mount.fstype) and mount.fstype not in _OWN_FUSE})
    if not targets:
        return {}, 0
    with ThreadPoolExecutor(min(_TOGETHER, len(targets)), thread_name_prefix="mount") as pool:
        said = dict(zip(targets, pool.map(lambda target: system.probe(target, timeout), targets)))  # noqa: B905 -- strict came with 3.10
    # Root may not look into another account's FUSE mount: that is an answer.
    return {target: reason for target, reason in said.items() if reason and "Permission denied" not in reason}, len(targets)


def _service_limits(tree: recorded.Tree, timeout: float) -> Dict[str, str]:
    """What a service gets that says nothing of its own; nothing where systemd does not answer."""
    try:
        said = tree.run("systemctl", ["show", "--property=DefaultLimitMEMLOCK,DefaultLimitNOFILE"], timeout).stdout
    except Failed:
        tree.system.stopper.check()
        return {}
    return {key.replace("DefaultLimit", "").lower(): word for key, _, word in (line.partition("=") for line in said.splitlines()) if word}
