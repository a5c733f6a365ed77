"""The lab's state file: what exists, written down before it is made, so that `down` can always undo it."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from nodectl.lab.problem import LabProblem

STATE_FILE = "lab.json"
Kind = Literal["dir", "file", "tree", "netns", "link", "process", "host", "mount", "loop", "cgroup"]
Phase = Literal["starting", "up", "stopping"]


@dataclass(frozen=True)
class Resource:
    """One thing on the machine: what kind, and the key by which exactly this one is found again."""

    kind: Kind
    key: str


@dataclass(frozen=True)
class LabHost:
    name: str
    address: str
    serials: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fault:
    """One applied fault. ``host`` is empty for faults of the lab's services."""

    host: str
    fault: str
    value: str = ""


@dataclass
class LabState:
    """Everything about one lab. ``net`` is k in 10.77.k.0/24; ``resources`` are in the order in which they were made."""

    id: str
    name: str
    dir: Path
    phase: Phase = "starting"
    net: int = 0
    base: str = ""
    repo: str = ""
    disk_bytes: int = 0
    s3: bool = False
    torch_site: str = ""
    hosts: tuple[LabHost, ...] = ()
    guests: tuple[LabHost, ...] = ()
    notes: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    resources: list[Resource] = field(default_factory=list)

    @property
    def prefix(self) -> str:
        """Begins the name of everything this lab makes; the id keeps two labs of one name apart."""
        return f"nodectl-{self.name}-{self.id}"

    @property
    def hosts_yaml(self) -> Path:
        return self.dir / "hosts.yaml"

    @property
    def key(self) -> Path:
        return self.dir / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.dir / "known_hosts"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts)

    def host(self, name: str) -> LabHost:
        """Raises LabProblem for a name that is not in this lab."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise LabProblem(f"host {name!r} is not in lab {self.name!r}: it has {', '.join(self.names) or 'no hosts yet'}")

    def guest(self, name: str) -> LabHost:
        """Raises LabProblem for a name that is no guest of this lab."""
        for guest in self.guests:
            if guest.name == name:
                return guest
        raise LabProblem(f"guest {name!r} is not in lab {self.name!r}: it has {', '.join(one.name for one in self.guests) or 'none'}")

    def host_dir(self, name: str) -> Path:
        return self.dir / "hosts" / name

    def claim(self, kind: Kind, key: str) -> None:
        """Writes down that this is about to be made. A second claim of the same thing changes nothing."""
        resource = Resource(kind, key)
        if resource not in self.resources:
            self.resources.append(resource)
            self.save()

    def drop(self, resource: Resource) -> None:
        """Strikes out what is gone."""
        self.resources.remove(resource)
        self.save()

    def save(self) -> None:
        text = json.dumps({**asdict(self), "dir": str(self.dir)}, indent=1)
        partial = self.dir / f"{STATE_FILE}.part"
        partial.write_text(text + "\n")
        os.replace(partial, self.dir / STATE_FILE)


def load(folder: Path) -> LabState | None:
    """The state kept in ``folder``, or None where there is no lab. Raises LabProblem when the file cannot be understood."""
    path = folder.absolute().resolve() / STATE_FILE
    try:
        text = path.read_text()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return _decode(json.loads(text), path.parent)
    except (ValueError, TypeError, KeyError, AttributeError) as err:
        raise LabProblem(f"{path} cannot be read as a lab's state ({err}): it was not written by this version of nodectl") from err


def _decode(data: dict[str, Any], folder: Path) -> LabState:
    data["dir"] = folder
    for key in ("hosts", "guests"):
        data[key] = tuple(LabHost(h["name"], h["address"], tuple(h["serials"])) for h in data.get(key, ()))
    data["faults"] = [Fault(**f) for f in data["faults"]]
    data["resources"] = [Resource(**r) for r in data["resources"]]
    return LabState(**data)


@contextmanager
def locked(folder: Path, why: str, wait_s: float = 20.0) -> Iterator[None]:
    """Holds the folder itself (no lock file is left behind). Another holder is waited for, ``wait_s`` seconds at most."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not _take(handle, wait_s):
            raise LabProblem(f"{why}: another process has been working on {folder} for {wait_s:.0f} s. Let it end or stop it, then try again")
        yield
    finally:
        os.close(handle)


def _take(handle: int, wait_s: float) -> bool:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
