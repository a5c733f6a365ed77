"""A host's disks: sparse files behind loop devices. The file's name is the disk's serial number."""

from __future__ import annotations

from pathlib import Path

from nodectl.lab.machine import GONE_S, run, until
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabHost, LabState


def image(state: LabState, serial: str) -> Path:
    return state.dir / "disks" / f"{serial}.img"


def make(state: LabState, host: LabHost) -> list[str]:
    """Makes the host's disks, empty, and gives back their loop devices in the order of the serials."""
    return [_attach(state, serial) for serial in host.serials]


def _attach(state: LabState, serial: str) -> str:
    path = image(state, serial)
    state.claim("file", str(path))
    with path.open("wb") as file:
        file.truncate(state.disk_bytes)
    state.claim("loop", str(path))
    return run(["losetup", "--find", "--show", str(path)]).strip()


def devices(path: Path) -> list[str]:
    """Loop devices whose backing file is ``path``."""
    listed = run(["losetup", "--noheadings", "--output", "NAME", "--associated", str(path)])
    return listed.split()


def detach(path: Path) -> None:
    """Frees the loop devices of one file, each by its name. A device still mounted by a dying host is freed a moment later."""
    for device in devices(path):
        run(["losetup", "--detach", device])
    if not until(lambda: not devices(path), GONE_S):
        raise LabProblem(f"{path} is still behind {', '.join(devices(path))} after {GONE_S:.0f} s: something has it open (see `fuser -m`)")


def renew(state: LabState, host: LabHost) -> list[str]:
    """Empty disks in place of the old ones."""
    for serial in host.serials:
        detach(image(state, serial))
    return make(state, host)


def attached(state: LabState, host: LabHost) -> list[str]:
    """The host's loop devices as they are. Raises LabProblem when one is missing."""
    found = []
    for serial in host.serials:
        names = devices(image(state, serial))
        if len(names) != 1:
            raise LabProblem(f"disk {serial} of {host.name} has {len(names)} loop devices, expected 1: take the lab down and up again")
        found.append(names[0])
    return found
