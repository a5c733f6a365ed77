"""The system modules through the real agent on a real host: systemd, dpkg's lock, disks that are told apart by their serial."""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from nodectl.transport.channel import BecomeTarget, Limits, Target
from nodectl.transport.pool import Pool
from nodectl.wire.outcome import Outcome
from nodectl.wire.step import Step
from tests.conftest import Lab

pytestmark = pytest.mark.lab
Do = Callable[..., Outcome]


@pytest.fixture
def do(bare_lab: Lab) -> Iterator[Do]:
    """Runs one module as root on the first host; ``check=True`` only foretells."""
    host = bare_lab.names[0]
    target = Target(host, bare_lab.address(host), user="ops", key_file=str(bare_lab.key), options={"userknownhostsfile": str(bare_lab.known_hosts)}, python="/usr/bin/python3")
    pool = Pool(Limits())
    channel = pool.channel(target, BecomeTarget())
    numbers = itertools.count(1)

    def run(module: str, check: bool = False, **args: Any) -> Outcome:
        return channel.submit(Step(id=next(numbers), module=module, args=args, check=check, diff=True)).result(120)

    yield run
    pool.close()


def image_sum(lab: Lab, disk: int) -> str:
    """Over every block of the image that is not zero, with its place: the holes of 4 GiB need not be read, and may become zeros."""
    total, size = hashlib.sha256(), 65536
    handle = os.open(lab.image(lab.names[0], disk), os.O_RDONLY)
    try:
        at = 0
        while True:
            try:
                start = os.lseek(handle, at, os.SEEK_DATA)
            except OSError:  # no data after this place
                return total.hexdigest()
            at = os.lseek(handle, start, os.SEEK_HOLE)
            for place in range(start // size * size, at, size):
                block = os.pread(handle, size, place)
                if block.strip(b"\0"):
                    total.update(f"{place}:".encode() + block)
            at = -(-at // size) * size
    finally:
        os.close(handle)


def serials(lab: Lab) -> tuple[str, ...]:
    return lab.state.host(lab.names[0]).serials


def test_scratch_on_two_disks(bare_lab: Lab, do: Do) -> None:
    one, two = serials(bare_lab)[:2]
    wish: dict[str, Any] = {"devices": [{"serial": one}, {"serial": two}], "count": 2, "mode": "1777"}
    foretold = do("scratch_disks", check=True, **wish)
    assert foretold.changed, foretold.msg
    assert bare_lab.inside(bare_lab.names[0], "cat", "/etc/fstab").stdout.count("scratch") == 0
    done = do("scratch_disks", **wish)
    assert not done.failed, done.msg
    assert done.values["plan"] == foretold.values["plan"]
    assert do("scratch_disks", **wish).changed is False
    assert do("probe_mounts").values["all_present"] is True
    target = do("probe_storage_target", path="/scratch").values
    assert (target["target"], target["fstype"], target["kind"]) == ("/scratch", "xfs", "loop")
    assert target["disks"]
    assert all(name.startswith("loop") for name in target["disks"]), target["disks"]
    written = do("probe_fio", path="/scratch", size="16MiB", runtime=0.5)
    assert written.values["bytes_per_second"] > 0, written.msg
    ways = do("probe_fio", path="/scratch", ways=["write", "read", "randread", "randwrite", "fsync"], size="16MiB", runtime=0.5).values["ways"]
    assert {name: way.get("proof") for name, way in ways.items()} == dict.fromkeys(ways, "device"), ways
    assert ways["fsync"]["sync_latency_s"]["p99"] > 0


def test_scratch_leaves_what_carries_something(bare_lab: Lab, do: Do) -> None:
    host = bare_lab.names[0]
    one, two = serials(bare_lab)[:2]
    assert bare_lab.inside(host, "mkfs.ext4", "-q", "-L", "KEEP", "/dev/nvme1n1").returncode == 0
    bare_lab.inside(host, "blockdev", "--flushbufs", "/dev/nvme1n1")
    before = (image_sum(bare_lab, 0), image_sum(bare_lab, 1))
    refused = do("scratch_disks", devices=[{"serial": one}, {"serial": two}])
    assert refused.failed
    assert "label KEEP" in refused.msg
    assert two in refused.msg
    assert (image_sum(bare_lab, 0), image_sum(bare_lab, 1)) == before


def test_service_that_runs_and_one_that_dies(bare_lab: Lab, do: Do) -> None:
    host = bare_lab.names[0]
    for name, command in (("good", "/bin/sleep 300"), ("bad", '/bin/sh -c "echo no such store; exit 3"')):
        bare_lab.inside(host, "sh", "-c", f"printf '[Service]\\nExecStart={command}\\n[Install]\\nWantedBy=multi-user.target\\n' > /etc/systemd/system/t-{name}.service")
    assert do("systemd", daemon_reload=True).changed is False
    assert do("systemd", check=True, name="t-good", state="started", enabled=True).changed
    done = do("systemd", name="t-good", state="started", enabled=True)
    assert not done.failed, done.msg
    assert done.values["status"]["ActiveState"] == "active"
    assert do("systemd", name="t-good", state="started", enabled=True).changed is False
    bad = do("service", name="t-bad", state="started")
    assert bad.failed
    assert "no such store" in bad.msg
    assert do("systemd", name="t-good", state="stopped", enabled=False).changed
    assert do("systemd", name="t-good", masked=True).failed is True  # the unit's own file stands in the way of a mask


def test_limits_in_a_login_and_in_a_unit(do: Do) -> None:
    values = do("probe_limits").values
    assert values["unit"], values["unit_error"]
    assert set(values["unit"]) == set(values["login"]) == {"memlock", "nofile", "nproc", "stack"}


def test_lock_of_dpkg_is_waited_for(bare_lab: Lab, do: Do) -> None:
    program = "import fcntl,time; f=open('/var/lib/dpkg/lock-frontend','w'); fcntl.lockf(f,fcntl.LOCK_EX); print('held',flush=True); time.sleep(60)"
    options = ["-F", "none", "-i", str(bare_lab.key), "-o", f"UserKnownHostsFile={bare_lab.known_hosts}", f"ops@{bare_lab.address(bare_lab.names[0])}"]
    holder = subprocess.Popen(["ssh", "-tt", *options, f'sudo python3 -c "{program}"'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert "held" in holder.stdout.readline()
        refused = do("apt", name="fuse3", state="absent", lock_timeout=1)
        if not refused.failed:
            pytest.fail(f"fuse3 was to be there and the lock held: {refused.msg}")
    finally:
        holder.kill()
        holder.wait(10)
    assert "lock-frontend is held by process" in refused.msg
    assert "fcntl" in refused.values["holder"]


def test_sysctl_that_only_a_boot_can_set(do: Do) -> None:
    done = do("sysctl", name="vm.swappiness", value="11", sysctl_file="/etc/sysctl.d/t.conf")
    assert not done.failed
    assert "takes effect at boot" in done.warnings[0]
    assert do("sysctl", name="vm.swappiness", value="11", sysctl_file="/etc/sysctl.d/t.conf").changed is False
    live = do("sysctl", name="net.core.somaxconn", value="5000", sysctl_file="/etc/sysctl.d/t.conf")
    assert (live.failed, live.values["live"]) == (False, "5000"), live.msg
