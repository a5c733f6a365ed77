"""Each fault does what it says, to exactly the host it names, and is gone when lifted."""

from __future__ import annotations

import subprocess
import time

import pytest

from nodectl.lab import lifecycle
from nodectl.lab.problem import LabProblem
from tests.conftest import Lab

pytestmark = pytest.mark.lab
MEGABYTES = 6
SLOW = "10mbit"
# 6 MB at 10 Mb/s take 4.8 s whatever the machine does; without the fault they took 0.3 s, and 1.7 s on a machine with load 18.
SLOW_S = 4.5
FAST_S = 3.5


def powers(lab: Lab) -> dict[str, tuple[str, bool]]:
    return {host.name: (host.power, host.ssh) for host in lifecycle.status(lab.dir).hosts}


def all_well(lab: Lab) -> dict[str, tuple[str, bool]]:
    return dict.fromkeys(lab.names, ("running", True))


def seconds_to_fetch(lab: Lab, host: str) -> float:
    began = time.monotonic()
    assert lab.ssh(host, f"head -c {MEGABYTES}000000 /dev/zero | base64").returncode == 0
    return time.monotonic() - began


def seconds_to_send(lab: Lab, host: str) -> float:
    argv = ["ssh", "-F", "none", "-i", str(lab.key), "-o", f"UserKnownHostsFile={lab.known_hosts}", "-o", "IdentitiesOnly=yes", f"ops@{lab.address(host)}", "cat >/dev/null"]
    began = time.monotonic()
    subprocess.run(argv, input=bytes(MEGABYTES * 10**6), check=True, timeout=60)
    return time.monotonic() - began


def test_a_slow_link_is_slow_both_ways_and_only_there(bare_lab: Lab) -> None:
    bare_lab.fault("n1", "slow-link", SLOW)
    assert seconds_to_send(bare_lab, "n1") > SLOW_S
    assert seconds_to_fetch(bare_lab, "n1") > SLOW_S
    assert seconds_to_fetch(bare_lab, "n2") < FAST_S
    bare_lab.lift("n1", "slow-link")
    assert seconds_to_fetch(bare_lab, "n1") < FAST_S
    assert seconds_to_send(bare_lab, "n1") < FAST_S


def test_a_host_without_power_is_silent_and_boots_with_what_it_had(bare_lab: Lab) -> None:
    bare_lab.ssh("n2", "sudo touch /etc/kept; sudo mkfs.xfs -q -L kept /dev/nvme0n1")
    bare_lab.fault("n2", "down")
    assert powers(bare_lab) == {**all_well(bare_lab), "n2": ("off", False)}
    said = bare_lab.ssh("n2", "true").stderr
    assert "timed out" in said or "No route" in said
    with pytest.raises(LabProblem, match="n2 is off"):
        bare_lab.fault("n2", "frozen")
    bare_lab.lift("n2", "down")
    assert powers(bare_lab) == all_well(bare_lab)
    assert bare_lab.ssh("n2", "ls /etc/kept; sudo blkid -o value -s LABEL /dev/nvme0n1").stdout.split() == ["/etc/kept", "kept"]


@pytest.mark.parametrize(("fault", "seen"), [("frozen", "frozen"), ("sshd-frozen", "running")])
def test_a_frozen_host_takes_connections_and_says_nothing(bare_lab: Lab, fault: str, seen: str) -> None:
    bare_lab.fault("n3", fault)
    assert powers(bare_lab) == {**all_well(bare_lab), "n3": (seen, False)}
    assert "banner exchange" in bare_lab.ssh("n3", "true").stderr
    bare_lab.lift("n3", fault)
    assert powers(bare_lab) == all_well(bare_lab)


def test_freezing_sshd_silences_a_session_that_is_open_and_nothing_else(bare_lab: Lab) -> None:
    argv = ["ssh", "-F", "none", "-i", str(bare_lab.key), "-o", f"UserKnownHostsFile={bare_lab.known_hosts}", f"ops@{bare_lab.address('n1')}"]
    session = subprocess.Popen([*argv, "while sleep 0.1; do echo tick; date +%s%N >/tmp/beat; done"], stdout=subprocess.PIPE, text=True)
    assert session.stdout is not None
    try:
        assert session.stdout.readline() == "tick\n"
        bare_lab.fault("n1", "sshd-frozen")
        one = bare_lab.inside("n1", "cat", "/tmp/beat").stdout
        time.sleep(0.5)
        assert bare_lab.inside("n1", "cat", "/tmp/beat").stdout != one
        bare_lab.lift("n1", "sshd-frozen")
        assert session.stdout.readline() == "tick\n"
    finally:
        session.kill()
        session.communicate()


def test_a_full_disk_has_no_block_left_and_gets_them_back(bare_lab: Lab) -> None:
    bare_lab.ssh("n1", "sudo sh -ec 'mkfs.xfs -q /dev/nvme0n1; mkdir /scratch; mount /dev/nvme0n1 /scratch; chmod 1777 /scratch'")
    bare_lab.fault("n1", "disk-full")
    full = bare_lab.ssh("n1", "head -c 100000 /dev/zero > /scratch/x")
    assert "No space left" in full.stderr
    bare_lab.lift("n1", "disk-full")
    assert bare_lab.ssh("n1", "head -c 100000 /dev/zero > /scratch/x && stat -c %s /scratch/x").stdout.strip() == "100000"


@pytest.mark.parametrize(("where", "said"), [("/", "is not a folder|lies on its root"), ("/etc", "lies on its root"), ("/nowhere", "is not a folder"), ("/lib", "is not a folder")])
def test_the_machines_own_disk_is_never_filled(lab: Lab, where: str, said: str) -> None:
    with pytest.raises(LabProblem, match=said):
        lab.fault("n1", "disk-full", where)
    assert lifecycle.status(lab.dir).faults == ()


def test_a_slow_disk_is_slow_and_only_there(bare_lab: Lab) -> None:
    write = "sudo dd if=/dev/zero of=/dev/nvme0n1 bs=1M count=20 oflag=direct 2>&1 | tail -1"

    def seconds(host: str) -> float:
        return float(bare_lab.ssh(host, write).stdout.split(" copied, ")[1].split()[0])

    bare_lab.fault("n1", "disk-slow", "10MB/s")
    assert seconds("n1") > 1.8
    assert seconds("n2") < 1.7
    bare_lab.lift("n1", "disk-slow")
    assert seconds("n1") < 1.7


@pytest.mark.parametrize("fault", ["store-down", "store-frozen"])
def test_a_store_in_trouble_does_not_answer_and_comes_back_with_its_data(bare_lab: Lab, fault: str) -> None:
    kept = bare_lab.dir / "store/ckpt/kept"
    kept.write_text("x")
    bare_lab.fault("", fault)
    assert dict(lifecycle.status(bare_lab.dir).services) == {"repo": True, "store": False}
    assert [applied.fault for applied in lifecycle.status(bare_lab.dir).faults] == [fault]
    bare_lab.lift("", fault)
    assert dict(lifecycle.status(bare_lab.dir).services) == {"repo": True, "store": True}
    assert kept.exists()


def test_a_reset_takes_the_hosts_faults_with_it(bare_lab: Lab) -> None:
    bare_lab.fault("n1", "slow-link", SLOW)
    bare_lab.fault("n2", "down")
    bare_lab.fault("n3", "frozen")
    bare_lab.reset()
    assert lifecycle.status(bare_lab.dir).faults == ()
    assert powers(bare_lab) == all_well(bare_lab)
    assert seconds_to_fetch(bare_lab, "n1") < FAST_S
