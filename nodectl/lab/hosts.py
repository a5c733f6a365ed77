"""One host: a tree over the shared base, booted by systemd-nspawn in the host's network namespace."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from nodectl.lab import cgroups, torch_share
from nodectl.lab.machine import TOOL_TIMEOUT_S, attempt, kill_all, marked, processes, remove_tree, run, start, unmount, until
from nodectl.lab.network import NAMESPACES, host_namespace
from nodectl.lab.plan import LAB_USER, REPO_PORT, SERVICES_OCTET, address, disk_node
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabHost, LabState

# A host boots in 2 s here; eight at once on two busy cores needed 40 s.
BOOT_TIMEOUT_S = 120.0
# systemd-nspawn shows its first process within half a second.
START_TIMEOUT_S = 20.0
CONSOLE = "console.log"
# systemd-nspawn makes a folder here for each host, and leaves it behind when it is killed.
PROPAGATE = Path("/run/systemd/nspawn/propagate")
# Kept outside any unit, systemd-nspawn does not start a host again that reboots: it ends with 133 and leaves that to us.
AGAIN_AFTER_REBOOT = ["sh", "-c", 'while "$@"; [ $? -eq 133 ]; do :; done', "sh"]

# In a container systemd's own generator leaves the disks of /etc/fstab alone; a real node mounts them before its services start.
FSTAB_UNIT = """\
[Unit]
Description=The disks of /etc/fstab
DefaultDependencies=no
After=systemd-remount-fs.service
Before=local-fs.target

[Service]
Type=oneshot
RemainAfterExit=yes
# No udev runs here that would make the links by UUID: what blkid has seen once, mount finds by UUID too.
ExecStartPre=-/bin/sh -c "/sbin/blkid /dev/nvme*n1"
# A disk that is gone must not stop the boot, as nofail says in fstab.
ExecStart=-/bin/mount --all
"""


def tree(state: LabState, host: str) -> Path:
    """The host's root as this machine sees it."""
    return state.host_dir(host) / "root"


def make(state: LabState, host: LabHost) -> None:
    """A fresh tree for the host: the shared base below, its own writes above, then name, keys and package source."""
    folder = state.host_dir(host.name)
    state.claim("tree", str(folder))
    for part in ("upper", "work", "root"):
        (folder / part).mkdir(parents=True)
    root = tree(state, host.name)
    state.claim("mount", str(root))
    options = f"lowerdir={state.base},upperdir={folder / 'upper'},workdir={folder / 'work'}"
    done = attempt(["mount", "-t", "overlay", "-o", options, state.prefix, str(root)])
    if done.returncode:
        raise LabProblem(f"no overlay can be mounted in {folder} ({done.stderr.strip()}): choose --dir on an ordinary file system such as ext4 or xfs")
    _personalise(state, host, root)


def _personalise(state: LabState, host: LabHost, root: Path) -> None:
    peers = "".join(f"{peer.address} {peer.name}\n" for peer in (*state.hosts, *state.guests))
    services = address(state.net, SERVICES_OCTET)
    texts = {
        "etc/hostname": f"{host.name}\n",
        "etc/machine-id": f"{uuid.uuid4().hex}\n",
        "etc/hosts": f"127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n{peers}{services} lab\n",
        "etc/apt/sources.list.d/lab.list": f"deb [trusted=yes] http://{services}:{REPO_PORT}/ ./\n",
        "etc/systemd/system/lab-fstab.service": FSTAB_UNIT,
    }
    for name, text in texts.items():
        (root / name).write_text(text)
    wants = root / "etc/systemd/system/local-fs.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "lab-fstab.service").symlink_to("../lab-fstab.service")
    run(["ssh-keygen", "-A", "-f", str(root)])
    keys = root / "home" / LAB_USER / ".ssh/authorized_keys"
    keys.parent.mkdir(mode=0o700)
    keys.write_text(state.key.with_suffix(".pub").read_text())
    owner = (root / "home" / LAB_USER).stat()
    for path in (keys.parent, keys):
        os.chown(path, owner.st_uid, owner.st_gid)
    keys.chmod(0o600)
    if state.torch_site:
        torch_share.furnish(root, base_python(state))


def base_python(state: LabState) -> str:
    return (Path(state.base).parent / "python").read_text().strip()


def mark(state: LabState, host: str) -> str:
    return f"{state.id}/{host}"


def boot(state: LabState, host: LabHost, loops: Sequence[str]) -> None:
    """Starts the host and returns at once; ``await_boot`` waits for it. ``loops`` are the devices behind its disks, in order."""
    state.claim("cgroup", cgroups.name(state, host.name))
    groups = cgroups.make(cgroups.name(state, host.name))
    machine = f"{state.prefix}-{host.name}"
    state.claim("dir", str(PROPAGATE / machine))
    state.claim("host", host.name)
    command = [
        "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", f"--machine={machine}", f"--directory={tree(state, host.name)}",
        f"--network-namespace-path={NAMESPACES / host_namespace(state, host.name)}", "--resolv-conf=off", "--link-journal=no", "--timezone=off",
        # A rented node's root may do everything; only the clock is kept back, which all hosts share with this machine.
        "--capability=all", "--drop-capability=CAP_SYS_TIME", "--bind=/dev/fuse",
        *(f"--bind={loop}:{disk_node(index)}" for index, loop in enumerate(loops)),
    ]  # fmt: skip
    if state.torch_site:
        command.append(f"--bind-ro={state.torch_site}:{torch_share.packages(base_python(state))}")
    # /proc/sys/net belongs to the host's own namespace, so it may write there as on a real node.
    env = {"SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"}
    argv = [*AGAIN_AFTER_REBOOT, *cgroups.entering(groups), *command, "--boot"]
    start(mark(state, host.name), argv, state.host_dir(host.name) / CONSOLE, env)


def await_boot(state: LabState, host: LabHost) -> str:
    """What the host's systemd says when it has started and sshd has greeted: "running", or "degraded" with the failed units.

    Raises LabProblem with the end of the console when it dies or takes longer than BOOT_TIMEOUT_S.
    """
    deadline = time.monotonic() + BOOT_TIMEOUT_S
    # systemd-nspawn needs a moment to appear; after that its absence means that it died.
    if not until(lambda: leader(state, host.name) > 0, START_TIMEOUT_S):
        raise LabProblem(f"host {host.name} did not start.\n{_console(state, host.name)}")
    while True:
        said = _systemd_says(state, host.name)
        if said in ("running", "degraded") and greets(host.address):
            return said if said == "running" else f"degraded: {_failed_units(state, host.name)}"
        if leader(state, host.name) == 0 or time.monotonic() > deadline:
            said = said or "nothing"
            raise LabProblem(f"host {host.name} did not come up within {BOOT_TIMEOUT_S:.0f} s (systemd says {said}).\n{_console(state, host.name)}")
        time.sleep(0.2)


def _systemd_says(state: LabState, host: str) -> str:
    """systemctl's word for the host's state; "" while it cannot be asked, be it not up yet or just dead."""
    first = leader(state, host)
    return attempt(_into(first, ["systemctl", "is-system-running"])).stdout.strip() if first else ""


def _failed_units(state: LabState, host: str) -> str:
    listed = inside(state, host, ["systemctl", "--failed", "--plain", "--no-legend", "--no-pager"]).stdout
    return ", ".join(line.split()[0] for line in listed.splitlines() if line.strip()) or "no unit is named"


def greets(host_address: str, patience: float = 2.0) -> bool:
    """Whether the host's sshd says its first words within ``patience`` seconds."""
    try:
        with socket.create_connection((host_address, 22), timeout=patience) as connection:
            connection.settimeout(patience)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _console(state: LabState, host: str) -> str:
    path = state.host_dir(host) / CONSOLE
    if not path.exists():
        return "It wrote nothing on its console."
    return "The end of its console:\n" + "\n".join(path.read_text(errors="replace").splitlines()[-15:])


def leader(state: LabState, host: str) -> int:
    """Process id, on this machine, of the host's first process; 0 when the host is off."""
    return next((pid for pid in in_namespace(host_namespace(state, host)) if _inner_pid(pid) == 1), 0)


def in_namespace(namespace: str) -> list[int]:
    """Processes whose network is this namespace."""
    try:
        wanted = (NAMESPACES / namespace).stat()
    except FileNotFoundError:
        return []
    return [pid for pid in processes() if _same(f"/proc/{pid}/ns/net", wanted)]


def _same(path: str, wanted: os.stat_result) -> bool:
    try:
        found = os.stat(path)
    except OSError:  # the process ended while we looked
        return False
    return (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino)


def _inner_pid(pid: int) -> int:
    """The number a process has in its own pid namespace; 0 when it is in ours."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    numbers = next((line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")), [])
    # Two numbers: ours and the host's. A third would be a container inside the host.
    return int(numbers[1]) if len(numbers) == 2 else 0


def members(state: LabState, host: str) -> list[int]:
    """All processes of a running host, as numbered on this machine: its pid namespace, whatever network they use."""
    first = leader(state, host)
    if not first:
        return []
    try:
        wanted = os.stat(f"/proc/{first}/ns/pid")
    except FileNotFoundError:
        return []
    return [pid for pid in processes() if _same(f"/proc/{pid}/ns/pid", wanted)]


def inside(
    state: LabState, host: str, argv: Sequence[str], timeout: float = TOOL_TIMEOUT_S, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs a command as root in a running host, past its sshd. Raises LabProblem when the host is off or the command hangs."""
    first = leader(state, host)
    if not first:
        raise LabProblem(f"host {host} is off")
    return attempt(_into(first, argv), timeout, stdin)


def _into(first: int, argv: Sequence[str]) -> list[str]:
    return ["nsenter", f"--target={first}", "--mount", "--uts", "--ipc", "--net", "--pid", "--", *argv]


def power_off(state: LabState, host: str) -> None:
    """Ends a host as a pulled plug does: what starts it, its first process, and whatever else uses its network."""
    namespace = host_namespace(state, host)
    own = os.getpid()
    kill_all(lambda: [pid for pid in {*marked(mark(state, host)), *in_namespace(namespace)} if pid != own], f"host {host}")


def remove(state: LabState, host: LabHost) -> None:
    """Takes the host's tree away, for a fresh one. The host must be off."""
    unmount(tree(state, host.name))
    remove_tree(state.host_dir(host.name))
