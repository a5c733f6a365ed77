"""A hardened node still trains: twenty things that hardening is known to take away, each looked at on the host where all rules are in force."""

from __future__ import annotations

import contextlib
import socket

import pytest

from tests.conftest import Lab
from tests.roles.stage import Stages

pytestmark = pytest.mark.lab

# Runs a program and maps a page that may be executed, as compiled kernels are loaded.
RUN_AND_MAP = """cd {folder} && f=$(mktemp -p . x.XXXX) && printf '#!/bin/sh\\necho ran\\n' > $f && chmod +x $f && ./$f && python3 -c "
import mmap; m = open('$f', 'r+b'); mmap.mmap(m.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC); print('mapped')
"; rm -f $f"""
# "ours" where one of our files keeps the module from being loaded.
BLOCKED = "modprobe --showconfig | grep -E '^(install|blacklist) ({names})( |$)' | cut -d' ' -f1 | sort -u"
SET = "sysctl() {{ sed -n \"s/^$1 = //p\" /etc/sysctl.d/*nodectl*.conf; }}; {line}"
# Unlimited, or all that a machine grants which keeps CAP_SYS_RESOURCE back.
WISHED = "sed -n 's/^root hard memlock //p' /etc/security/limits.d/90-nodectl.conf"
LAST = "systemd-analyze cat-config {file} | grep -E '^({keys})=' | sort -u"

# (number in the list of breakages, what must go on, who asks, the question, the answer)
KEPT: list[tuple[int, str, str, str, str]] = [
    (1, "programs run from /tmp", "user", RUN_AND_MAP.format(folder="/tmp"), "ran\nmapped\n"),
    (2, "programs run from /dev/shm", "user", RUN_AND_MAP.format(folder="/dev/shm"), "ran\nmapped\n"),
    (3, "memory can be pinned as base wishes", "user", f"[ $(ulimit -Hl) = $({WISHED}) ] && echo same", "same\n"),
    (4, "containers without root start", "user", "unshare --user --map-root-user id -u", "0\n"),
    (4, "user namespaces are not switched off at boot", "root", SET.format(line="sysctl user.max_user_namespaces; sysctl kernel.unprivileged_userns_clone"), ""),
    (5, "images and network file systems mount", "root", BLOCKED.format(names="squashfs|loop|fuse|nfs|nfsv4|lustre"), ""),
    (6, "layers of containers mount", "root", BLOCKED.format(names="overlay|veth|br_netfilter"), ""),
    (7, "/boot/efi mounts", "root", BLOCKED.format(names="vfat|nls_.*"), ""),
    (10, "no connection is tracked on the fabric", "root", "nft list table inet nodectl | grep -c notrack", "2\n"),
    (11, "the owner of a job may debug it", "root", SET.format(line="sysctl kernel.yama.ptrace_scope"), "1\n"),
    (12, "profilers see the CPU", "root", SET.format(line="sysctl kernel.perf_event_paranoid"), "2\n"),
    (13, "a job that asks gets its core file", "user", "ulimit -Hc; ulimit -c unlimited; ulimit -c", "unlimited\nunlimited\n"),
    (14, "a group can share what is written", "user", "bash -lc umask", "0027\n"),
    (15, "an update restarts no service", "root", "perl -e 'our %nrconf; do shift; print $nrconf{restart}' /etc/needrestart/conf.d/95-nodectl.conf", "l"),
    (15, "no update comes by itself", "root", "systemctl is-enabled unattended-upgrades.service 2>/dev/null || true", ""),
    (16, "runs outlive the login", "root", LAST.format(file="systemd/logind.conf", keys="KillUserProcesses|RemoveIPC"), "KillUserProcesses=no\nRemoveIPC=no\n"),
    (19, "files of a job are not recorded", "root", "grep -hE -- '-S (open|openat|unlink|chmod)' /etc/audit/rules.d/*.rules || true", ""),
    (19, "a full log stops no node", "root", "grep -hE '^(disk_full_action|admin_space_left_action)' /etc/audit/auditd.conf", "admin_space_left_action = SYSLOG\ndisk_full_action = SUSPEND\n"),
    (20, "the tool becomes root without a terminal", "user", "sudo -n id -u", "0\n"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "what", "who", "question", "answer"), KEPT, ids=[f"{row[0]}-{row[1]}" for row in KEPT])
def test_what_training_lives_on_is_left_alone(provisioned: Stages, number: int, what: str, who: str, question: str, answer: str) -> None:
    ask = provisioned.as_user if who == "user" else provisioned.shell
    assert ask(question) == answer, f"{number}: {what}"


def test_rails_in_one_subnet_get_loose_filters_and_a_compiler_stays_for_all(provisioned: Stages) -> None:
    """Breakages 8 and 17, on a host that has a second interface in the same network, and a compiler."""
    network = provisioned.lab.address(provisioned.host).rpartition(".")[0]
    provisioned.shell(f"ip link add rail1 type veth peer name rail1p; ip link set rail1 up; ip link set rail1p up; ip address add {network}.200/24 dev rail1")
    provisioned.shell("printf '#!/bin/sh\\n' > /usr/bin/gcc; chmod 755 /usr/bin/gcc")
    try:
        done = provisioned("hardening")
        assert done.code == 0, done.out
        filters = provisioned.shell("cat /proc/sys/net/ipv4/conf/*/rp_filter /etc/sysctl.d/95-nodectl-hardening.conf | grep -E 'rail1|eth0'")
        assert sorted(filters.splitlines()) == ["net/ipv4/conf/eth0/rp_filter = 2", "net/ipv4/conf/rail1/rp_filter = 2"]
        assert provisioned.shell("cat /proc/sys/net/ipv4/conf/eth0/rp_filter /proc/sys/net/ipv4/conf/all/rp_filter") == "2\n1\n"
        assert provisioned.shell("stat -c %a /usr/bin/gcc") == "755\n"
    finally:
        provisioned.shell("ip link delete rail1; rm /usr/bin/gcc")
    assert provisioned("hardening").code == 0


def test_any_port_is_open_between_nodes(provisioned: Stages, lab: Lab) -> None:
    """Breakage 9: NCCL and MPI listen where the kernel lets them, on both sides."""
    here, there = provisioned.host, lab.names[1]
    for listens, connects in ((here, there), (there, here)):
        serve = "import socket; s = socket.create_server(('', 40123)); s.settimeout(10); s.accept()[0].sendall(b'hello')"
        lab.inside(listens, "systemd-run", "--quiet", "--collect", "python3", "-c", serve)
        ask = f"import socket, time\nfor _ in range(50):\n    try:\n        print(socket.create_connection(('{lab.address(listens)}', 40123), 3).recv(9)); break\n    except ConnectionRefusedError:\n        time.sleep(0.1)"
        assert lab.inside(connects, "python3", "-c", ask).stdout == "b'hello'\n"


def test_forty_logins_at_once_are_all_greeted(provisioned: Stages, lab: Lab) -> None:
    """Breakage 18: sshd drops, at random, beyond its MaxStartups; its stock 10:30:100 refused 11 of 40."""
    with contextlib.ExitStack() as held:
        openings = [held.enter_context(socket.create_connection((lab.address(provisioned.host), 22), 10)) for _ in range(40)]
        for opening in openings:
            opening.settimeout(30)
        assert [opening.recv(8) for opening in openings] == [b"SSH-2.0-"] * 40
