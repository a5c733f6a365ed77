"""What a lab is to be, and the names and addresses that follow from it. Pure: nothing here touches the machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nodectl.lab.problem import LabProblem

# Interface of every host inside its network namespace; what gloo and NCCL are told to use.
HOST_INTERFACE = "eth0"
# Last octets: the controller's end, the lab's own services, then the hosts from 11 on so that n1 is .11.
CONTROLLER_OCTET = 1
SERVICES_OCTET = 2
FIRST_HOST_OCTET = 10
FIRST_GUEST_OCTET = 100
# One machine's bridge carries a /24; more hosts than this never fitted the memory of a machine that was tried.
MOST_HOSTS = 64
# A guest holds 0.6 GiB and, without hardware virtualisation, keeps a core busy while it starts.
MOST_GUESTS = 8
# /dev/nvme0n1 … ; a loop device each.
MOST_DISKS = 8
# NVMe disks are plugged into a running guest, into ports that its saved state has: qemu cannot save a state with an NVMe disk in it.
NVME_PORTS = 6
# mkfs.xfs refuses less than 300 MB; 4 GiB leaves room for fio and a cache, and a sparse file costs only what is written.
DISK_BYTES = 4 << 30
STORE_PORT = 9000
REPO_PORT = 8078
LAB_USER = "ops"
TORCH_PYTHON = "/opt/torch/bin/python"
BUCKETS = ("dataset", "ckpt")

# Folder names that a mount option list, an ssh option and an inventory can all carry without quoting.
_PLAIN_PATH = re.compile(r"/[A-Za-z0-9._/-]*")
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")


@dataclass(frozen=True)
class LabPlan:
    """What `lab up` was asked for. ``dir`` is made absolute by ``checked()``; ``torch`` "auto" lends this environment's torch."""

    name: str = "lab"
    dir: Path = Path(".nodectl/lab")
    hosts: int = 3
    disks: int = 2
    s3: bool = True
    torch: Literal["auto", "none"] = "auto"
    disk_bytes: int = DISK_BYTES
    guests: int = 0

    def checked(self) -> LabPlan:
        """The same plan with an absolute folder. Raises LabProblem for what no lab can be."""
        if not _PLAIN_NAME.fullmatch(self.name):
            raise LabProblem(f"lab name {self.name!r}: expected a lower-case letter, then up to 19 letters, digits or '-'")
        if not 0 <= self.guests <= MOST_GUESTS:
            raise LabProblem(f"--guests {self.guests}: expected 0 to {MOST_GUESTS}")
        least = 0 if self.guests else 1
        if not least <= self.hosts <= MOST_HOSTS:
            raise LabProblem(f"--hosts {self.hosts}: expected {least} to {MOST_HOSTS}")
        if self.guests and self.disks > NVME_PORTS:
            raise LabProblem(f"--disks {self.disks}: a guest has {NVME_PORTS} places for NVMe disks")
        if not 0 <= self.disks <= MOST_DISKS:
            raise LabProblem(f"--disks {self.disks}: expected 0 to {MOST_DISKS}")
        folder = self.dir.absolute().resolve()
        plain_path(folder, "--dir")
        return LabPlan(self.name, folder, self.hosts, self.disks, self.s3, self.torch, self.disk_bytes, self.guests)


def plain_path(folder: Path, what: str) -> Path:
    """The same folder. Raises LabProblem for a name that would need quoting where a lab uses it."""
    if not _PLAIN_PATH.fullmatch(str(folder)):
        raise LabProblem(f"{what} {folder}: a lab's folder may hold only letters, digits, '.', '_', '-' and '/' (it becomes part of mount and ssh options)")
    return folder


def host_names(count: int) -> list[str]:
    return [f"n{number}" for number in range(1, count + 1)]


def guest_names(count: int) -> list[str]:
    return [f"g{number}" for number in range(1, count + 1)]


def address(net: int, octet: int) -> str:
    """An IPv4 address of lab network ``net`` (1 to 250)."""
    return f"10.77.{net}.{octet}"


def host_address(net: int, host: str) -> str:
    """Of a host (n1 is .11) or a guest (g1 is .101)."""
    return address(net, (FIRST_GUEST_OCTET if host.startswith("g") else FIRST_HOST_OCTET) + int(host[1:]))


def serials(net: int, host: str, disks: int) -> tuple[str, ...]:
    """Serial numbers of a host's disks. The image file carries the same name: it is what identifies a loop device."""
    return tuple(f"LAB{net}{host.upper()}D{number}" for number in range(1, disks + 1))


def disk_node(index: int) -> str:
    """Device node inside the host for its disk number ``index`` (from 0)."""
    return f"/dev/nvme{index}n1"
