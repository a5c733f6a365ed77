"""probe_machine: what a scheduler must be told of this machine, and the settings that NCCL reads on it. From /proc, /sys and /dev only."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Optional, Tuple

from nodectl.agent.contract import Args
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Host name, processors as a scheduler counts them, memory, GPU device files, and the files that NCCL takes settings from.",
    params={"root": Param("path", "read below this folder instead of /", default="/")},
    returns={
        "hostname": "as uname gives it", "cpus": "logical processors that are online and allowed to this process", "sockets": "of them",
        "cores_per_socket": "0 where the sockets differ", "threads_per_core": "0 where the cores differ", "memory": "bytes, MemTotal of /proc/meminfo",
        "gpu_files": "device files of NVIDIA's GPUs, by number",
        "nccl_conf": "list of {path, text} in the order in which NCCL reads them: the first that names a key counts",
    },
    example="- probe_machine: {}\n",
)
# A settings file of NCCL is some lines; what is longer is no such file, and would only fill the journal.
_MOST = 64 * 1024


def act(system: System, args: Args, check: bool) -> Outcome:
    root = args["root"]
    cpus, sockets, cores, threads = _processors(root)
    return Outcome(values={
        "hostname": os.uname().nodename, "cpus": cpus, "sockets": sockets, "cores_per_socket": cores, "threads_per_core": threads,
        "memory": _memory(root), "gpu_files": _gpu_files(root), "nccl_conf": _nccl_conf(root),
    })


def _text(path: str) -> Optional[str]:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST).decode("utf-8", "replace")
    except OSError:
        return None


def _processors(root: str) -> Tuple[int, int, int, int]:
    """(cpus, sockets, cores per socket, threads per core) of the processors that this process may use: a cgroup may hold the rest back."""
    allowed = sorted(os.sched_getaffinity(0)) if root == "/" else _numbered(os.path.join(root, "sys/devices/system/cpu"), r"cpu(\d+)")
    threads: Dict[Tuple[str, str], int] = {}
    for number in allowed:
        topology = os.path.join(root, "sys/devices/system/cpu", f"cpu{number}", "topology")
        package = (_text(os.path.join(topology, "physical_package_id")) or "0").strip()
        core = (_text(os.path.join(topology, "core_id")) or str(number)).strip()
        # A package number of -1 is ARM's way to say that the firmware gave none.
        place = ("0" if package == "-1" else package, core)
        threads[place] = threads.get(place, 0) + 1
    cores: Dict[str, int] = {}
    for package, _ in threads:
        cores[package] = cores.get(package, 0) + 1
    return len(allowed), len(cores), _one(list(cores.values())), _one(list(threads.values()))


def _one(counts: List[int]) -> int:
    """The count that all have, 0 where they differ."""
    return counts[0] if counts and len(set(counts)) == 1 else 0


def _numbered(folder: str, pattern: str) -> List[int]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(int(found.group(1)) for found in (re.fullmatch(pattern, name) for name in names) if found)


def _memory(root: str) -> int:
    found = re.search(r"^MemTotal:\s+(\d+) kB", _text(os.path.join(root, "proc/meminfo")) or "", re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0


def _gpu_files(root: str) -> List[str]:
    return [f"/dev/nvidia{number}" for number in _numbered(os.path.join(root, "dev"), r"nvidia(\d+)")]


def _nccl_conf(root: str) -> List[Dict[str, Any]]:
    """As NCCL 2.30's src/misc/param.cc reads them: the file of NCCL_CONF_FILE or else of the user's home, then the machine's."""
    own = os.environ.get("NCCL_CONF_FILE") or os.path.join(os.path.expanduser("~"), ".nccl.conf")
    found = [(path, _text(os.path.join(root, path.lstrip("/")))) for path in (own, "/etc/nccl.conf")]
    return [{"path": path, "text": text} for path, text in found if text is not None]
