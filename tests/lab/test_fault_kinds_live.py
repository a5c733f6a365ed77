"""Every mechanism of trouble that needs no prepared host, on real ones: seen while it is applied, on its host alone, and gone when lifted."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from nodectl.lab import lifecycle
from nodectl.lab.problem import LabProblem
from tests.conftest import Lab

pytestmark = pytest.mark.lab
PING = "ping -c 1 -W 1"


@pytest.fixture
def well(lab: Lab) -> Iterator[Lab]:
    """The session's lab as it is; only faults are made, and they are lifted."""
    lab.lift_all()
    try:
        yield lab
    finally:
        lab.lift_all()


def inside(lab: Lab, host: str, line: str) -> str:
    done = lab.inside(host, "sh", "-c", line)
    return (done.stdout + done.stderr).strip()


# Whether what waits for torch was loaded; what it then does is tried in the fault suite.
HOOKED = "python3 -c 'import sys; print(any(type(one).__name__ == \"_Hook\" for one in sys.meta_path))'"
# fault, value, a line that shows it, what it then prints, what it prints otherwise
SEEN = [
    ("mtu", "1400", "cat /sys/class/net/eth0/mtu", "1400", "1500"),
    ("docker0", "", "ip -brief -4 address show docker0 2>&1 | grep -o 172.17.0.1", "172.17.0.1", ""),
    ("low-memlock", "64", "su ops -c 'ulimit -l'", "64", None),
    ("low-nofile", "512", "su ops -c 'ulimit -n'", "512", None),
    ("hosts-loopback", "", "getent hosts $(hostname) | cut -d' ' -f1", "127.0.1.1", None),
    ("dns-broken", "192.0.2.9", "grep -c 192.0.2.9 /etc/resolv.conf || true", "1", "0"),
    ("port-taken", "29500", "ss -Hltn 'sport = :29500' | wc -l", "1", "0"),
    ("kernel-release", "5.4.0-lab", "cat /proc/sys/kernel/osrelease", "5.4.0-lab", None),
    ("modules", "ib_uverbs", "cat /lib/modules/*/modules.builtin 2>/dev/null | grep -c ib_uverbs || true", "1", "0"),
    ("package-version", "fuse3", "dpkg-query --show --showformat '${Version}' fuse3 | grep -c lab1 || true", "1", "0"),
    ("python-clock", "5000", "echo $(( $(python3 -I -S -c 'import time; print(int(time.time()))') - $(date +%s) > 4000 ))", "1", "0"),
    ("python-clock", "-5000", "echo $(( $(python3 -I -S -c 'import time; print(time.time_ns() // 10**9)') - $(date +%s) < -4000 ))", "1", "0"),
    ("torch-nccl", "Socket", HOOKED, "True", "False"),
    ("torch-corrupts", "sent", HOOKED, "True", "False"),
    ("hardware", "roce", "/var/lib/nodectl-lab/hardware/bin/nvidia-smi -q -x 2>/dev/null | grep -c '<gpu ' || true", "8", "0"),
]


@pytest.mark.parametrize(("fault", "value", "line", "then", "else_"), SEEN, ids=[f"{one[0]}-{one[1]}" for one in SEEN])
def test_it_is_seen_on_its_host_alone_and_gone_when_lifted(well: Lab, fault: str, value: str, line: str, then: str, else_: str | None) -> None:
    before = inside(well, "n2", line)
    assert before != then
    assert else_ in (None, before)
    well.fault("n2", fault, value)
    assert inside(well, "n2", line) == then
    assert inside(well, "n1", line) != then
    well.lift("n2", fault)
    assert inside(well, "n2", line) == before


def answers(lab: Lab, host: str, address: str, size: int) -> bool:
    return lab.inside(host, "sh", "-c", f"for i in 1 2; do {PING} -M do -s {size} {address} && exit 0; done; exit 1").returncode == 0


def test_a_hole_takes_large_packets_between_peers_and_no_others(well: Lab) -> None:
    peer, controller = well.address("n3"), well.address("n3").rpartition(".")[0] + ".1"
    well.fault("n2", "mtu-hole", "1300")
    assert [answers(well, "n2", peer, 1200), answers(well, "n2", peer, 1400), answers(well, "n2", controller, 1400)] == [True, False, True]
    assert answers(well, "n1", peer, 1400)
    well.lift("n2", "mtu-hole")
    assert answers(well, "n2", peer, 1400)


def test_a_host_cut_off_from_its_peers_is_still_reached(well: Lab) -> None:
    well.fault("n2", "peers-cut")
    assert not answers(well, "n2", well.address("n3"), 56)
    assert not answers(well, "n3", well.address("n2"), 56)
    assert well.ssh("n2", "echo here").stdout == "here\n"
    well.lift("n2", "peers-cut")
    assert answers(well, "n3", well.address("n2"), 56)


def test_a_lossy_link_loses_about_its_share_and_faults_of_one_link_hold_side_by_side(well: Lab) -> None:
    well.fault("n2", "lossy-link", "30%")
    well.fault("n2", "mtu-hole", "1300")
    # Of 100 pings both ways 49 are lost at 30 %; fewer than 25 or more than 75 would be luck of one in a million.
    received = int(inside(well, "n2", f"ping -q -i 0.01 -c 100 -W 1 {well.address('n3')} | grep -o '[0-9]* received' | cut -d' ' -f1"))
    assert 25 <= received <= 75
    well.lift("n2", "lossy-link")
    assert [answers(well, "n2", well.address("n3"), 1200), answers(well, "n2", well.address("n3"), 1400)] == [True, False]
    well.lift("n2", "mtu-hole")
    assert inside(well, "n2", f"ping -q -i 0.01 -c 50 {well.address('n3')} | grep -o '[0-9]* received'") == "50 received"


def test_slow_one_way_is_slow_that_way_only(well: Lab) -> None:
    def seconds(line: str) -> float:
        began = time.monotonic()
        assert well.ssh("n2", line).returncode == 0
        return time.monotonic() - began

    well.fault("n2", "slow-out", "10mbit")
    assert seconds("head -c 3000000 /dev/zero | base64 -w 0") > 2.5
    well.lift("n2", "slow-out")
    well.fault("n2", "slow-in", "10mbit")
    assert seconds("head -c 3000000 /dev/zero | base64 -w 0") < 2.4
    well.lift("n2", "slow-in")


def test_a_starved_host_has_a_tenth_of_a_core_and_then_all_of_it_again(well: Lab) -> None:
    line = "python3 -I -S -c 'import time; b=time.perf_counter(); c=time.process_time()\nwhile time.process_time()-c < 0.2: pass\nprint(time.perf_counter()-b)'"
    well.fault("n2", "cpu-starved", "10")
    assert float(well.ssh("n2", line).stdout) > 1.0
    well.lift("n2", "cpu-starved")
    assert float(well.ssh("n2", line).stdout) < 3.0
    assert inside(well, "n2", "cat /proc/1/cgroup | grep -c ':cpu:/nodectl' || true") == "0"


def test_a_host_without_its_cable_runs_on(well: Lab) -> None:
    well.fault("n2", "unplugged")
    found = {host.name: (host.power, host.ssh) for host in lifecycle.status(well.dir).hosts}
    assert found["n2"] == ("running", False)
    well.lift("n2", "unplugged")
    assert well.ssh("n2", "true").returncode == 0


@pytest.mark.parametrize("fault", ["store-forbidden", "store-throttled", "store-corrupt"])
def test_a_spoiled_store_answers_and_is_the_old_one_again(well: Lab, fault: str) -> None:
    well.fault("", fault)
    assert dict(lifecycle.status(well.dir).services)["store"]
    well.lift("", fault)
    assert dict(lifecycle.status(well.dir).services)["store"]
    assert lifecycle.status(well.dir).faults == ()


def test_a_strike_is_called_off_with_nothing_left(well: Lab) -> None:
    well.fault("n2", "dies-in-group")
    assert [fault.fault for fault in lifecycle.status(well.dir).faults] == ["dies-in-group"]
    well.lift("n2", "dies-in-group")
    assert {host.name: host.power for host in lifecycle.status(well.dir).hosts}["n2"] == "running"


@pytest.mark.parametrize(("fault", "value", "said"), [
    ("lossy-link", "0", "whole number from 1 to 100"), ("mtu", "9", "from 68"), ("cpu-starved", "many", "whole number"), ("low-memlock", "a lot", "is not KiB"), ("port-taken", "http", "is not port"),
    ("package-version", "not-there", "not-there"), ("hardware-fault", "xid", "no recorded machine"),
])
def test_a_value_that_makes_no_sense_leaves_no_fault(well: Lab, fault: str, value: str, said: str) -> None:
    with pytest.raises(LabProblem, match=said):
        well.fault("n2", fault, value)
    assert lifecycle.status(well.dir).faults == ()
