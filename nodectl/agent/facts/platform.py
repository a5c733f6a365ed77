"""Which system this is: names, distribution, kernel, user, time, package and service manager."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import pwd
import re
import socket
import sys
import time
from typing import Any, Dict, Mapping, Optional

Facts = Dict[str, Any]

# ID of os-release -> (Ansible's name, Ansible's family). What is not here keeps its own name and looks at ID_LIKE.
DISTRIBUTIONS: Mapping[str, "tuple[str, str]"] = {
    "debian": ("Debian", "Debian"), "ubuntu": ("Ubuntu", "Debian"), "linuxmint": ("Linux Mint", "Debian"), "dgx": ("Ubuntu", "Debian"),
    "rhel": ("RedHat", "RedHat"), "centos": ("CentOS", "RedHat"), "rocky": ("Rocky", "RedHat"), "almalinux": ("AlmaLinux", "RedHat"),
    "ol": ("OracleLinux", "RedHat"), "fedora": ("Fedora", "RedHat"), "amzn": ("Amazon", "RedHat"), "sles": ("SLES", "Suse"),
    "opensuse-leap": ("openSUSE Leap", "Suse"), "opensuse-tumbleweed": ("openSUSE Tumbleweed", "Suse"), "arch": ("Archlinux", "Archlinux"),
    "alpine": ("Alpine", "Alpine"), "azurelinux": ("Azure Linux", "RedHat"), "mariner": ("Mariner", "RedHat"),
}
_FAMILIES: Mapping[str, str] = {"debian": "Debian", "ubuntu": "Debian", "rhel": "RedHat", "fedora": "RedHat", "suse": "Suse", "arch": "Archlinux"}
_PACKAGE_MANAGERS = (
    ("apt", "/usr/bin/apt-get"), ("dnf5", "/usr/bin/dnf5"), ("dnf", "/usr/bin/dnf-3"), ("dnf", "/usr/bin/dnf"), ("yum", "/usr/bin/yum"),
    ("zypper", "/usr/bin/zypper"), ("pacman", "/usr/bin/pacman"), ("apk", "/sbin/apk"),
)


def text(path: str) -> str:
    """A small file of /proc, /sys or /etc without blanks around it; "" where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(65536).decode("utf-8", "replace").strip().strip("\0")
    except OSError:
        return ""


def names() -> Facts:
    """hostname, nodename, fqdn, domain. Asks the resolver, so it may take as long as that does."""
    node = platform.node()
    fqdn = socket.getfqdn(node)
    return {"ansible_hostname": node.split(".")[0], "ansible_nodename": node, "ansible_fqdn": fqdn, "ansible_domain": fqdn.partition(".")[2]}


def kernel() -> Facts:
    """Kernel, machine and the interpreter that runs the agent."""
    info = os.uname()
    version = list(sys.version_info)
    return {
        "ansible_system": info.sysname, "ansible_kernel": info.release, "ansible_kernel_version": info.version, "ansible_machine": info.machine,
        "ansible_architecture": info.machine, "ansible_userspace_bits": "64" if sys.maxsize > 2**32 else "32",
        "ansible_machine_id": text("/etc/machine-id") or text("/var/lib/dbus/machine-id"), "ansible_python_version": platform.python_version(),
        "ansible_python": {
            "executable": sys.executable, "type": sys.implementation.name, "version_info": version, "has_sslcontext": True,
            "version": dict(zip(("major", "minor", "micro", "releaselevel", "serial"), version)),  # noqa: B905 -- strict came with 3.10
        },
        "ansible_cmdline": {key: value or True for key, _, value in (word.partition("=") for word in text("/proc/cmdline").split())},
        "ansible_fips": text("/proc/sys/crypto/fips_enabled") == "1",
    }


def os_release(content: str) -> Dict[str, str]:
    """NAME=value lines, quotes taken off."""
    found = re.findall(r"^([A-Z_0-9]+)=(.*)$", content, re.MULTILINE)
    return {key: value.strip().strip("\"'") for key, value in found}


def distribution(root: str = "/") -> Facts:
    """Ansible's names of the distribution and its family, from /etc/os-release."""
    release = os_release(text(os.path.join(root, "etc/os-release")) or text(os.path.join(root, "usr/lib/os-release")))
    key = release.get("ID", "").lower()
    like = [_FAMILIES[word] for word in release.get("ID_LIKE", "").lower().split() if word in _FAMILIES]
    name, family = DISTRIBUTIONS.get(key, (release.get("NAME", "NA"), (like or [release.get("NAME", "NA")])[0]))
    version = release.get("VERSION_ID", "NA")
    exact = text(os.path.join(root, "etc/debian_version"))
    minor: Facts = {}
    if key == "debian" and re.match(r"^\d+(\.\d+)?$", exact):
        version = exact
        minor = {"ansible_distribution_minor_version": exact.partition(".")[2]}
    return {
        **minor, "ansible_distribution_file_variety": family,
        "ansible_distribution": name, "ansible_os_family": family, "ansible_distribution_version": version,
        "ansible_distribution_major_version": version.split(".")[0], "ansible_distribution_release": _codename(release),
        "ansible_distribution_file_path": "/etc/os-release", "ansible_distribution_file_parsed": bool(release),
    }


def _codename(release: Mapping[str, str]) -> str:
    named = re.search(r"\(([^)]+)\)", release.get("VERSION", ""))
    return release.get("VERSION_CODENAME") or release.get("UBUNTU_CODENAME") or (named.group(1) if named else "NA")


def managers() -> Facts:
    """pkg_mgr and service_mgr."""
    packages = next((name for name, path in _PACKAGE_MANAGERS if os.path.exists(path)), "unknown")
    first = os.path.basename(text("/proc/1/comm"))
    known = {"init": "sysvinit", "runit-init": "runit", "openrc-init": "openrc"}
    service = "systemd" if os.path.isdir("/run/systemd/system") else known.get(first, first or "service")
    return {"ansible_pkg_mgr": packages, "ansible_service_mgr": service}


def user(environment: Mapping[str, str]) -> Facts:
    """Who the agent is, and the environment its programs see."""
    uid = os.geteuid()
    found: Optional[pwd.struct_passwd] = None
    with contextlib.suppress(KeyError):
        found = pwd.getpwuid(uid)
    return {
        "ansible_user_id": found.pw_name if found else str(uid), "ansible_user_uid": uid, "ansible_user_gid": found.pw_gid if found else os.getegid(),
        "ansible_user_dir": found.pw_dir if found else "/",
        "ansible_user_gecos": found.pw_gecos if found else "", "ansible_user_shell": found.pw_shell if found else "",
        "ansible_real_user_id": os.getuid(), "ansible_effective_user_id": uid, "ansible_real_group_id": os.getgid(), "ansible_effective_group_id": os.getegid(),
        "ansible_env": dict(environment),
    }


def date_time(now: Optional[float] = None) -> Facts:
    """The node's clock, in Ansible's many spellings. ``now`` is seconds since the epoch."""
    moment = time.time() if now is None else now
    local = datetime.datetime.fromtimestamp(moment).astimezone()
    utc = local.astimezone(datetime.timezone.utc)
    named = {
        "year": "%Y", "month": "%m", "weekday": "%A", "weekday_number": "%w", "weeknumber": "%W", "day": "%d", "hour": "%H", "minute": "%M",
        "second": "%S", "date": "%Y-%m-%d", "time": "%H:%M:%S", "iso8601_basic": "%Y%m%dT%H%M%S%f",
        "iso8601_basic_short": "%Y%m%dT%H%M%S", "tz": "%Z", "tz_offset": "%z",
    }
    result = {key: local.strftime(pattern) for key, pattern in named.items()}
    result.update(
        epoch=str(int(moment)), epoch_int=str(int(moment)), iso8601=utc.strftime("%Y-%m-%dT%H:%M:%SZ"), iso8601_micro=utc.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        tz_dst=time.tzname[1],
    )
    return {"ansible_date_time": result}


def guards() -> Facts:
    """SELinux and AppArmor."""
    selinux: Facts = {"status": "disabled"}
    if os.path.isdir("/sys/fs/selinux") and text("/sys/fs/selinux/policyvers"):
        settings = os_release(text("/etc/selinux/config"))
        selinux = {
            "status": "enabled", "policyvers": text("/sys/fs/selinux/policyvers"),
            "mode": "enforcing" if text("/sys/fs/selinux/enforce") == "1" else "permissive",
            "type": settings.get("SELINUXTYPE", "unknown"), "config_mode": settings.get("SELINUX", "unknown"),
        }
    armor = "enabled" if text("/sys/module/apparmor/parameters/enabled") == "Y" else "disabled"
    return {"ansible_selinux": selinux, "ansible_selinux_python_present": True, "ansible_apparmor": {"status": armor}}
