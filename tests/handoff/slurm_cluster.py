"""A small real Slurm: munged, slurmctld and a slurmd per node, each in a network and a name of its own, on this machine.

Nothing of it is seen outside: namespaces, a temporary folder, and processes that end with the fixture.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SBIN = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
# Slurm itself waits 10 s for a daemon; on a busy machine one takes some seconds to start.
PATIENCE = 30.0


def missing() -> str:
    """Which of the programs is not there, "" when all are."""
    return ", ".join(name for name in ("slurmctld", "slurmd", "munged", "sinfo", "scontrol", "srun", "ip", "unshare") if shutil.which(name, path=SBIN) is None)


@dataclass(frozen=True)
class SlurmHost:
    """One node: what its machine calls itself, where it is reached, and how many GPU device files it has."""

    hostname: str
    address: str
    gpus: int = 0


@dataclass
class Cluster:
    """The folder holds everything; ``namespace`` is where slurmctld and the commands run."""

    folder: Path
    namespace: str
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def tool(self, *argv: str, check: bool = True, timeout: float = 60.0) -> str:
        """A command of Slurm, as its operator; stdout and stderr together."""
        done = subprocess.run(["ip", "netns", "exec", self.namespace, *argv], capture_output=True, text=True, env=self.environment(), timeout=timeout)
        assert not check or done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": SBIN, "SLURM_CONF": str(self.folder / "slurm.conf"), "LC_ALL": "C.UTF-8", "COLUMNS": "500"}

    def wait(self, command: Sequence[str], wanted: str) -> str:
        """Until the command's output is ``wanted``; the last output either way."""
        deadline = time.monotonic() + PATIENCE
        while (shown := self.tool(*command, check=False).strip()) != wanted and time.monotonic() < deadline:
            time.sleep(0.2)
        return shown

    def start(self, *argv: str, log: str) -> None:
        with (self.folder / f"{log}.log").open("wb") as file:
            self.running.append(subprocess.Popen(argv, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=self.environment(), start_new_session=True))

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")


CONF = """ClusterName=test
SlurmctldHost=ctl(10.77.0.254)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/%n.spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
GresTypes=gpu
Include {folder}/nodes.conf
PartitionName=train Nodes=ALL Default=YES
"""


@contextlib.contextmanager
def cluster(folder: Path, handoff: Path, hosts: Sequence[SlurmHost]) -> Iterator[Cluster]:
    """Slurm with the handoff's nodes.conf and gres.conf exactly as they are."""
    one = Cluster(folder, f"nodectl-slurm-{os.getpid()}")
    spaces = [one.namespace, *(f"{one.namespace}-{index}" for index in range(len(hosts)))]
    try:
        _network(spaces, hosts)
        (folder / "slurm.conf").write_text(CONF.format(folder=folder))
        shutil.copy(handoff / "slurm/nodes.conf", folder / "nodes.conf")
        shutil.copy(handoff / "slurm/gres.conf", folder / "gres.conf")
        # Nothing here uses cgroups, which slurmd may be told since 23.02; before it only wants to know which kind it would be.
        (folder / "cgroup.conf").write_text(f"CgroupPlugin={'disabled' if _version() >= (23, 2) else 'cgroup/v1'}\n")
        for name in ("state", *(f"{word.removeprefix('NodeName=')}.spool" for word in (folder / "nodes.conf").read_text().split() if word.startswith("NodeName="))):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        munge = ["--key-file", str(key), "--socket", str(folder / "munge.socket"), "--pid-file", str(folder / "munged.pid"), "--seed-file", str(folder / "seed")]
        one.start(shutil.which("munged", path=SBIN) or "munged", "--foreground", "--force", "--log-file", str(folder / "munged.log"), *munge, log="munged-start")
        _until(folder / "munge.socket")
        one.start(*_inside(one.namespace, "ctl", 0, folder), "slurmctld", "-D", "-c", log="slurmctld")
        for index, host in enumerate(hosts):
            one.start(*_inside(spaces[index + 1], host.hostname, host.gpus, folder), "slurmd", "-D", log=f"slurmd-{index}")
        yield one
    finally:
        _end(one.running)
        for space in reversed(spaces):
            subprocess.run(["ip", "netns", "delete", space], capture_output=True)


def _network(spaces: Sequence[str], hosts: Sequence[SlurmHost]) -> None:
    """A bridge in the first namespace, and a cable to each of the others."""
    ip = ["ip", "-n", spaces[0]]
    for space in spaces:
        _run("ip", "netns", "add", space)
        _run("ip", "-n", space, "link", "set", "lo", "up")
    _run(*ip, "link", "add", "br0", "type", "bridge")
    _run(*ip, "address", "add", "10.77.0.254/24", "dev", "br0")
    _run(*ip, "link", "set", "br0", "up")
    for index, (space, host) in enumerate(zip(spaces[1:], hosts, strict=True)):
        _run(*ip, "link", "add", f"v{index}", "type", "veth", "peer", "name", "eth0", "netns", space)
        _run(*ip, "link", "set", f"v{index}", "master", "br0", "up")
        _run("ip", "-n", space, "address", "add", f"{host.address}/24", "dev", "eth0")
        _run("ip", "-n", space, "link", "set", "eth0", "up")


def _version() -> tuple[int, int]:
    """Of Slurm: "slurm-wlm 22.05.8"."""
    said = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, env={"PATH": SBIN}).stdout
    major, minor, *_ = said.split()[-1].split(".")
    return int(major), int(minor)


def _inside(space: str, hostname: str, gpus: int, folder: Path) -> list[str]:
    """In the namespace, under its own host name; with GPUs, below a /dev of its own that has their files."""
    files = " ".join(f"/dev/nvidia{number}" for number in range(gpus))
    dev = f"mkdir -p {folder}/dev && mount -t tmpfs dev {folder}/dev && cp -a /dev/null /dev/zero /dev/urandom /dev/random {folder}/dev/ && mount --move {folder}/dev /dev && for file in {files}; do mknod $file c 1 3; done && " if gpus else ""
    script = f'hostname "$0" && {dev}exec "$@"'
    return ["ip", "netns", "exec", space, "unshare", "--uts", "--mount", "sh", "-c", script, hostname]


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, f"{argv}: {done.stderr}"


def _until(path: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.05)


def _end(running: Sequence[subprocess.Popen[bytes]]) -> None:
    """Each with its whole session: slurmd leaves a step daemon behind for a moment."""
    for process in reversed(running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
    for process in running:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
