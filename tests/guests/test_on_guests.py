"""Real kernels: RDMA for real over soft-RoCE with its faults, a disk that is pulled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodectl.lab import guests as lab_guests
from nodectl.lab import lifecycle
from tests.guests.conftest import Guests, Provisioned

# A guest that is reset needs a minute on a busy machine.
pytestmark = [pytest.mark.guest, pytest.mark.timeout(600)]

SUITE = """\
summary = "RDMA between two nodes"
[[step]]
kind = "fabric"
deadline = 60
[[step]]
kind = "route"
deadline = 60
[[step]]
kind = "rdma"
deadline = 120
rounds = 1
size = "1 MiB"
iterations = 5000
soft_size = "64 KiB"
soft_iterations = 100
queue_pairs = 1
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "rdma.toml"
    path.write_text(SUITE)
    return path


def test_guests_are_nodes_of_their_own(guests: Guests) -> None:
    boots = {name: guests.ssh(name, "uname -r; hostname; cat /etc/machine-id; lsblk -dno SERIAL; rdma link").splitlines() for name in ("g1", "g2")}
    assert boots["g1"][0] != Path("/proc/sys/kernel/osrelease").read_text().strip()
    assert [boots[name][1] for name in boots] == ["g1", "g2"]
    assert boots["g1"][2] != boots["g2"][2]
    for name in boots:
        assert set(guests.state.guest(name).serials) <= {line.strip() for line in boots[name]}
        assert any("rxe0/1 state ACTIVE" in line for line in boots[name])
    assert {one.name: (one.power, one.ssh) for one in lifecycle.status(guests.state.dir).hosts} == {"g1": ("running", True), "g2": ("running", True)}


def test_the_rdma_step_measures_the_role_s_own_link_for_real(provisioned: Provisioned, suite: Path, tmp_path: Path) -> None:
    guests = provisioned.guests
    for name in ("g1", "g2"):
        states = guests.ssh(name, "systemctl is-active nodectl-rxe lab-rxe; systemctl is-enabled nodectl-rxe lab-rxe || true").split()
        assert states == ["active", "inactive", "enabled", "disabled"]
    run = guests.verify(tmp_path / "run", suite, expect=0)
    assert run.verdicts() == {"g1": "pass", "g2": "pass"}
    pairs = {event["tool"]: event for event in run.of("pair")}
    assert pairs["ib_write_bw"]["hosts"] == ["g1", "g2"]
    assert pairs["ib_write_bw"]["value"] > 100e3
    # Slower than any wire, and not an hour.
    assert 1e-6 < pairs["ib_write_lat"]["value"] < 10
    check = run.check("g1", "rdma.write_bw.rail0")
    assert check["simulated"] is True
    conditions = next(one for event in run.of("reading") for one in event["measurements"] if one["name"] == "rdma.write_bw.rail0")["conditions"]
    assert conditions["device"] == "rxe0"
    assert conditions["gid"].endswith("ffff:c0a8:4d65"), "192.168.77.101 as a GID, found by rule"


def test_a_port_without_its_cable_is_named(guests: Guests, suite: Path, tmp_path: Path) -> None:
    guests.cable("g2", plugged=False)
    try:
        run = guests.verify(tmp_path / "run", suite, expect=3)
    finally:
        guests.cable("g2", plugged=True)
    check = run.check("g2", "fabric.hcas")
    assert check["verdict"] == "fail"
    assert "rxe0: port 1 is DOWN" in check["reason"]
    assert run.check("g1", "fabric.hcas")["verdict"] == "pass"
    assert not run.of("host.unreachable") + run.of("host.lost"), "only the fabric is cut"


def test_a_wrong_gid_is_unknown_with_perftest_s_own_words(guests: Guests, suite: Path, tmp_path: Path) -> None:
    run = guests.verify(tmp_path / "run", suite, "-e", "rdma_gid_index=2", expect=3)
    assert run.verdicts() == {"g1": "unknown", "g2": "unknown"}
    assert "Failed to modify QP" in run.check("g1", "rdma.write_bw.rail0")["reason"]


@pytest.fixture
def without_perftest(guests: Guests) -> Iterator[None]:
    guests.inside("g2", "mv /usr/bin/ib_write_bw /usr/bin/ib_write_bw.away")
    try:
        yield
    finally:
        guests.inside("g2", "mv /usr/bin/ib_write_bw.away /usr/bin/ib_write_bw")


@pytest.mark.usefixtures("without_perftest")
def test_without_perftest_nothing_is_claimed(guests: Guests, suite: Path, tmp_path: Path) -> None:
    run = guests.verify(tmp_path / "run", suite, expect=3)
    assert run.verdicts() == {"g1": "unknown", "g2": "unknown"}
    assert "g2: ib_write_bw is not installed: apt-get install perftest" in run.check("g1", "rdma.write_bw.rail0")["reason"]


def test_a_disk_that_is_pulled_is_gone_and_a_reset_guest_is_as_new(guests: Guests) -> None:
    guest = guests.state.guest("g2")
    lab_guests.unplug_disk(guests.state, guest, 1)
    until_s = time.monotonic() + 60.0
    while guest.serials[1] in (listed := guests.ssh("g2", "lsblk -dno SERIAL")) and time.monotonic() < until_s:
        time.sleep(1.0)
    assert guest.serials[1] not in listed
    assert guest.serials[0] in listed
    key = guests.state.known_hosts.read_text()
    guests.ssh("g2", "touch marker")
    guests.state = lifecycle.reset(guests.state, ["g2"])
    found = guests.ssh("g2", "ls; lsblk -dno SERIAL; rdma link")
    assert "marker" not in found
    assert all(serial in found for serial in guest.serials)
    assert "rxe0/1 state ACTIVE" in found
    assert guests.state.known_hosts.read_text() != key
