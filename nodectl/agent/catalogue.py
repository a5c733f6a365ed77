"""Which modules there are. One line per module; the engine reads the same table for the check at load time."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Mapping

from nodectl.agent.contract import Failed
from nodectl.wire.params import Spec

MODULES: Mapping[str, str] = {
    "access_confirm": "nodectl.agent.modules.access_confirm",
    "access_files": "nodectl.agent.modules.access_files",
    "acl": "nodectl.agent.modules.acl",
    "alternatives": "nodectl.agent.modules.alternatives",
    "apt": "nodectl.agent.modules.apt",
    "apt_key": "nodectl.agent.modules.apt_key",
    "apt_repository": "nodectl.agent.modules.apt_repository",
    "archive": "nodectl.agent.modules.archive",
    "assemble": "nodectl.agent.modules.assemble",
    "async_status": "nodectl.agent.modules.async_status",
    "authorized_key": "nodectl.agent.modules.authorized_key",
    "blockinfile": "nodectl.agent.modules.blockinfile",
    "capabilities": "nodectl.agent.modules.capabilities",
    "command": "nodectl.agent.modules.command",
    "copy": "nodectl.agent.modules.copy",
    "copy_folder": "nodectl.agent.modules.copy_folder",
    "cron": "nodectl.agent.modules.cron",
    "deb822_repository": "nodectl.agent.modules.deb822_repository",
    "debconf": "nodectl.agent.modules.debconf",
    "dnf": "nodectl.agent.modules.dnf",
    "dpkg_selections": "nodectl.agent.modules.dpkg_selections",
    "expect": "nodectl.agent.modules.expect",
    "fabric_facts": "nodectl.agent.facts.fabric",
    "file": "nodectl.agent.modules.file",
    "filesystem": "nodectl.agent.modules.filesystem",
    "find": "nodectl.agent.modules.find",
    "firewalld": "nodectl.agent.modules.firewalld",
    "get_url": "nodectl.agent.modules.get_url",
    "getent": "nodectl.agent.modules.getent",
    "git": "nodectl.agent.modules.git",
    "gpu_settings": "nodectl.agent.modules.gpu_settings",
    "group": "nodectl.agent.modules.group",
    "hostname": "nodectl.agent.modules.hostname",
    "hosts_entry": "nodectl.agent.modules.hosts_entry",
    "ini_file": "nodectl.agent.modules.ini_file",
    "iptables": "nodectl.agent.modules.iptables",
    "kernel_blacklist": "nodectl.agent.modules.kernel_blacklist",
    "kernel_cmdline": "nodectl.agent.modules.kernel_cmdline",
    "known_hosts": "nodectl.agent.modules.known_hosts",
    "lineinfile": "nodectl.agent.modules.lineinfile",
    "locale_gen": "nodectl.agent.modules.locale_gen",
    "make": "nodectl.agent.modules.make",
    "md_array": "nodectl.agent.modules.md_array",
    "modprobe": "nodectl.agent.modules.modprobe",
    "mount": "nodectl.agent.modules.mount",
    "nftables_table": "nodectl.agent.modules.nftables_table",
    "nvme_format": "nodectl.agent.modules.nvme_format",
    "object_flush": "nodectl.agent.modules.object_flush",
    "openssh_keypair": "nodectl.agent.modules.openssh_keypair",
    "package": "nodectl.agent.modules.package",
    "package_facts": "nodectl.agent.modules.package_facts",
    "ping": "nodectl.agent.modules.ping",
    "pip": "nodectl.agent.modules.pip",
    "replace": "nodectl.agent.modules.replace",
    "restore_point": "nodectl.agent.modules.restore_point",
    "rpm_key": "nodectl.agent.modules.rpm_key",
    "scratch_disks": "nodectl.agent.modules.scratch_disks",
    "script": "nodectl.agent.modules.script",
    "selinux": "nodectl.agent.modules.selinux",
    "service": "nodectl.agent.modules.service",
    "service_facts": "nodectl.agent.modules.service_facts",
    "setup": "nodectl.agent.modules.setup",
    "shell": "nodectl.agent.modules.shell",
    "slurp": "nodectl.agent.modules.slurp",
    "sshd_dropin": "nodectl.agent.modules.sshd_dropin",
    "stat": "nodectl.agent.modules.stat",
    "sysctl": "nodectl.agent.modules.sysctl",
    "sysctl_file": "nodectl.agent.modules.sysctl_file",
    "systemd": "nodectl.agent.modules.systemd",
    "systemd_service": "nodectl.agent.modules.systemd",
    "tempfile": "nodectl.agent.modules.tempfile",
    "timezone": "nodectl.agent.modules.timezone",
    "ufw": "nodectl.agent.modules.ufw",
    "unarchive": "nodectl.agent.modules.unarchive",
    "uri": "nodectl.agent.modules.uri",
    "user": "nodectl.agent.modules.user",
    "wait_for": "nodectl.agent.modules.wait_for",
    "xattr": "nodectl.agent.modules.xattr",
    "yum": "nodectl.agent.modules.dnf",
    "yum_repository": "nodectl.agent.modules.yum_repository",
    "probe_clock": "nodectl.agent.probes.probe_clock",
    "probe_fio": "nodectl.agent.probes.probe_fio",
    "probe_gpu": "nodectl.agent.probes.probe_gpu",
    "probe_hca": "nodectl.agent.probes.probe_hca",
    "probe_host": "nodectl.agent.probes.probe_host",
    "probe_kernel_log": "nodectl.agent.probes.probe_kernel_log",
    "probe_nvme": "nodectl.agent.probes.probe_nvme",
    "probe_path_mtu": "nodectl.agent.probes.probe_path_mtu",
    "probe_pci": "nodectl.agent.probes.probe_pci",
    "probe_limits": "nodectl.agent.probes.probe_limits",
    "probe_machine": "nodectl.agent.probes.probe_machine",
    "probe_mounts": "nodectl.agent.probes.probe_mounts",
    "probe_object_mount": "nodectl.agent.probes.probe_object_mount",
    "probe_perftest": "nodectl.agent.probes.probe_perftest",
    "probe_phases": "nodectl.agent.probes.probe_phases",
    "probe_route": "nodectl.agent.probes.probe_route",
    "probe_shared_mount": "nodectl.agent.probes.probe_shared_mount",
    "probe_storage_target": "nodectl.agent.probes.probe_storage_target",
    "probe_free_port": "nodectl.agent.probes.probe_free_port",
    "probe_traffic": "nodectl.agent.probes.probe_traffic",
    "workload": "nodectl.agent.probes.workload",
}


def module(name: str) -> ModuleType:
    """The module's code. Raises Failed for a name that is not in the table."""
    if name not in MODULES:
        raise Failed(f"the agent has no module '{name}'")
    return importlib.import_module(MODULES[name])


def spec(name: str) -> Spec:
    """The module's parameters. Raises Failed for a name that is not in the table."""
    declared = module(name).SPEC
    if not isinstance(declared, Spec):
        raise TypeError(f"{MODULES[name]}.SPEC is not a Spec")
    return declared
