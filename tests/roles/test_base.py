"""The base system on a real host: limits as a fresh login has them, the own name, a package manager that is busy."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.roles.stage import Stages

pytestmark = pytest.mark.lab
LOCK = "/var/lib/dpkg/lock-frontend"
# What is installed here, and taken away again: small, and needed by nobody.
PACKAGE = "tree"


def test_limits_are_in_force_in_a_login_and_for_services(provisioned: Stages) -> None:
    """The lab's machine allows no more than the inventory asks for, so the figures are those."""
    files = provisioned.shell("sed -n 's/^root hard nofile //p' /etc/security/limits.d/90-nodectl.conf").strip()
    memlock = provisioned.shell("sed -n 's/^root hard memlock //p' /etc/security/limits.d/90-nodectl.conf").strip()
    assert provisioned.as_user("ulimit -Hn; ulimit -Hl").split() == [files, memlock]
    shown = provisioned.inside("systemctl", "show", "-p", "DefaultLimitNOFILE", "-p", "DefaultLimitMEMLOCK").split()
    assert sorted(shown) == sorted([f"DefaultLimitNOFILE={files}", f"DefaultLimitMEMLOCK={int(memlock) * 1024}"])


def test_what_the_kernel_forgets_is_set_at_every_boot_and_said_where_it_cannot_be(provisioned: Stages) -> None:
    assert provisioned.inside("systemctl", "show", "-p", "Result", "-p", "ActiveState", "nodectl-tuning").split() == ["Result=success", "ActiveState=active"]
    assert provisioned.inside("systemctl", "is-enabled", "nodectl-tuning") == "enabled\n"
    script = provisioned.shell("cat /usr/local/sbin/nodectl-tuning")
    assert ("put performance " in script, "put madvise " in script, "swapoff" in script, "smp_affinity" in script) == (True, True, False, False)


def test_journal_and_core_files_are_capped(provisioned: Stages) -> None:
    assert "SystemMaxUse=4G" in provisioned.inside("systemd-analyze", "cat-config", "systemd/journald.conf")
    assert provisioned.as_user("ulimit -Sc; ulimit -Hc").split() == ["0", "unlimited"]


def test_updates_and_the_kernel_are_held_where_it_is_asked_for_and_let_go_by_hand(provisioned: Stages) -> None:
    provisioned.shell("mkdir -p /tmp/p/DEBIAN; printf 'Package: linux-image-lab\nVersion: 1\nArchitecture: all\nMaintainer: lab <l@l>\nDescription: x\n' > /tmp/p/DEBIAN/control")
    provisioned.shell("dpkg-deb --build /tmp/p /tmp/p.deb > /dev/null; dpkg -i /tmp/p.deb > /dev/null")
    try:
        check, real = provisioned.rehearsed("base", base_hold_updates="true")
        assert (check.code, real.code, check.changed == real.changed != set()) == (0, 0, True), check.out + real.out
        assert "linux-image-lab" in provisioned.inside("apt-mark", "showhold").split()
        assert provisioned.shell("apt-config dump APT::Periodic::Unattended-Upgrade").split('"')[1] == "0"
        assert provisioned("base", base_hold_updates="true").changed == set()
    finally:
        provisioned.shell("dpkg --purge --force-hold linux-image-lab > /dev/null; rm -rf /tmp/p /tmp/p.deb /etc/apt/apt.conf.d/99-nodectl-hold-updates")


def test_kernel_settings_that_only_a_boot_can_make_are_said(provisioned: Stages) -> None:
    done = provisioned("base", base_sysctl=[{"name": "vm.swappiness", "value": "11", "why": "test"}])
    assert (done.code, "takes effect at boot" in done.out) == (0, True), done.out
    assert "vm.swappiness=11" in provisioned.shell("cat /etc/sysctl.d/90-nodectl.conf | tr -d ' '")


def test_the_own_name_leads_to_one_address(provisioned: Stages) -> None:
    host, address = provisioned.host, provisioned.lab.address(provisioned.host)
    provisioned.shell(f"printf '# kept\\n127.0.0.1 localhost {host}\\n127.0.1.1 {host}.rack1 {host}\\n10.9.9.9 {host} old # stale\\n' > /etc/hosts")
    check, real = provisioned.rehearsed("base")
    assert (check.code, real.code) == (0, 0), real.out
    assert check.changed == real.changed != set()
    assert provisioned.shell("cat /etc/hosts") == f"# kept\n127.0.0.1 localhost\n10.9.9.9 old\n{address} {host}.rack1 {host}\n"
    assert provisioned.inside("getent", "ahostsv4", host).split()[0] == address
    assert provisioned.inside("hostname", "-f") == f"{host}.rack1\n"
    start = time.monotonic()
    assert provisioned.as_user("sudo -n true") == ""
    assert time.monotonic() - start < 5.0, "sudo waits for a name server"
    assert provisioned("base").changed == set()


@contextmanager
def lock_held(stages: Stages, seconds: float) -> Iterator[None]:
    """Somebody else's package manager is at work for a while."""
    program = f"import fcntl,time; f=open('{LOCK}','w'); fcntl.lockf(f,fcntl.LOCK_EX); print('held',flush=True); time.sleep({seconds})"
    options = ["-F", "none", "-i", str(stages.lab.key), "-o", f"UserKnownHostsFile={stages.lab.known_hosts}", "-o", "IdentitiesOnly=yes"]
    argv = ["ssh", "-tt", *options, f"ops@{stages.lab.address(stages.host)}", f'sudo python3 -c "{program}"']
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert "held" in holder.stdout.readline()
        try:
            yield
        finally:
            holder.kill()


def test_a_busy_package_manager_is_named_and_waited_for(provisioned: Stages) -> None:
    provisioned.shell(f"dpkg --purge {PACKAGE} > /dev/null 2>&1 || true")
    with lock_held(provisioned, 60):
        refused = provisioned("base", base_packages=[PACKAGE], base_lock_timeout=1)
        assert refused.code == 2
        assert f"{LOCK} is held by process" in refused.reason
        assert "fcntl" in refused.reason
    with lock_held(provisioned, 8):
        done = provisioned("base", base_packages=[PACKAGE])
    assert done.code == 0, done.out
    assert [event["text"] for event in done.events if event["kind"] == "progress" and f"waiting for {LOCK}, held by process" in event["text"]]
    assert provisioned.inside("dpkg-query", "-W", "-f", "${db:Status-Abbrev}", PACKAGE).startswith("ii")
