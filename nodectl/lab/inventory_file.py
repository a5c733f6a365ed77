"""The files a lab hands out: key pair, known_hosts, hosts.yaml and the secrets beside it. Plain Ansible inventory."""

from __future__ import annotations

import json
import resource
from collections.abc import Sequence
from pathlib import Path

from nodectl.lab import guests, hosts, services
from nodectl.lab.machine import run
from nodectl.lab.needs import limits_fixed
from nodectl.lab.plan import LAB_USER, TORCH_PYTHON
from nodectl.lab.state import LabHost, LabState


def write_key(state: LabState) -> None:
    """A key pair of the lab's own, with which it lets the controller in."""
    for path in (state.key, state.key.with_suffix(".pub")):
        state.claim("file", str(path))
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", state.prefix, "-f", str(state.key)])


def write_known_hosts(state: LabState) -> None:
    """The hosts' keys, known for real: they were made here. To be written again when a host got a fresh tree."""
    state.claim("file", str(state.known_hosts))
    lines = [line for host in state.hosts for line in _known(state, host)]
    lines += [line for guest in state.guests for line in guests.known_hosts(state, guest)]
    state.known_hosts.write_text("".join(lines))


def _known(state: LabState, host: LabHost) -> list[str]:
    keys = sorted((hosts.tree(state, host.name) / "etc/ssh").glob("ssh_host_*_key.pub"))
    return [f"{host.name},{host.address} {' '.join(key.read_text().split()[:2])}\n" for key in keys]


def write_inventory(state: LabState) -> None:
    """hosts.yaml, and group_vars/all.yml (0600) where there are secrets."""
    state.claim("file", str(state.hosts_yaml))
    state.hosts_yaml.write_text(inventory_text(state, limits_fixed()))
    if state.s3:
        folder = state.dir / "group_vars"
        state.claim("tree", str(folder))
        folder.mkdir()
        secret = folder / "all.yml"
        secret.touch(mode=0o600)
        secret.write_text(_secrets_text(state))


def inventory_text(state: LabState, fixed: bool) -> str:
    """The inventory as YAML. Scalars are written as JSON, which YAML reads as the same texts."""
    lines = [
        "# Written by `nodectl lab up`. Ansible reads it too: ansible-inventory -i hosts.yaml --list",
        "all:",
        "  vars:",
        f"    ansible_user: {LAB_USER}",
        f"    ansible_ssh_private_key_file: {json.dumps(str(state.key))}",
        f"    ansible_ssh_common_args: {json.dumps(f'-o UserKnownHostsFile={state.known_hosts} -o IdentitiesOnly=yes')}",
        "    ansible_python_interpreter: /usr/bin/python3",
        "    network_tier: best",
        "    disk_tier: best",
        *_torch(state),
        *_limits(fixed),
        *_mounts(state),
        "  children:",
        *_group("gpu", state.hosts),
        *(_group("guests", state.guests, GUEST_VARS) if state.guests else []),
    ]
    return "\n".join(lines) + "\n"


# A guest has a kernel, disks and an HCA of its own, and no torch: under emulation its import alone would take minutes.
GUEST_VARS = (
    'torch_python: ""', 'base_memlock: "unlimited"', "base_nofile: 1048576",
    "# soft-RoCE on emulated CPUs moves a few MB/s: what it shows is that it works. No port rate can be expected of it.",
    'rdma_floor: "100 kB/s"',
)  # fmt: skip


def _group(name: str, members: Sequence[LabHost], variables: Sequence[str] = ()) -> list[str]:
    own = ["      vars:", *(f"        {one}" for one in variables)] if variables else []
    lines = [f"    {name}:", *own, "      hosts:" if members else "      hosts: {}"]
    for host in members:
        lines += [f"        {host.name}:", f"          ansible_host: {host.address}", *_fabric(host), *_disks(host)]
    return lines


def _fabric(host: LabHost) -> list[str]:
    return [f"          fabric_address: {guests.fabric_address(host)}"] if host.name.startswith("g") else []


def _torch(state: LabState) -> list[str]:
    return [f"    torch_python: {TORCH_PYTHON}"] if state.torch_site else []


def _limits(fixed: bool) -> list[str]:
    if not fixed:
        return []
    memlock = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    memlock_kib = "unlimited" if memlock == resource.RLIM_INFINITY else str(memlock // 1024)
    return [
        "    # This machine withholds CAP_SYS_RESOURCE, so no host of the lab can have more than the machine's own hard limits (KiB, files).",
        f"    base_memlock: {json.dumps(memlock_kib)}",
        f"    base_nofile: {files}",
    ]


def _mounts(state: LabState) -> list[str]:
    if not state.s3:
        return []
    return [
        "    file_mounts:",
        "      /data: {source: s3://dataset, mode: MOUNT, profile: dataset_ro}",
        "      /ckpt: {source: s3://ckpt, mode: MOUNT_CACHED, profile: checkpoint_rw}",
    ]


def _disks(host: LabHost) -> list[str]:
    if not host.serials:
        return ["          disk_tier: standard"]
    return ["          scratch_devices:", *(f"            - serial: {serial}" for serial in host.serials)]


def _secrets_text(state: LabState) -> str:
    access, secret = services.store_keys(state)
    return (
        "# Keys of the lab's own object store; they end with it. Readable by root alone.\n"
        f"object_cache_endpoint: {json.dumps(services.endpoint(state))}\n"
        f"object_cache_access_key: {json.dumps(access)}\n"
        f"object_cache_secret_key: {json.dumps(secret.reveal())}\n"
    )


def written(folder: Path) -> list[Path]:
    """Names in the lab's folder that a new lab needs to be free."""
    names = ("hosts.yaml", "group_vars", "known_hosts", "id_ed25519", "id_ed25519.pub", "hosts", "disks", "store", "store.key")
    return [folder / name for name in names]
