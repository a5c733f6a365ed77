"""The lab's hosts are what a rented node is: systemd, sshd, sudo, apt, disks, FUSE, a way to the store, and no way out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nodectl.lab import lifecycle, services
from nodectl.lab.hosts import await_boot, leader
from nodectl.lab.machine import until
from nodectl.lab.needs import rclone
from nodectl.lab.plan import LabPlan
from nodectl.lab.problem import LabProblem
from tests.conftest import Lab

pytestmark = pytest.mark.lab


def good(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, f"{done.args}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def test_every_host_is_up_and_answers_with_the_key_that_the_lab_wrote_down(lab: Lab) -> None:
    for host in lab.names:
        assert good(lab.ssh(host, "hostname; systemctl is-system-running; id -un; sudo -n id -un")).split() == [host, "running", "ops", "root"]


def test_status_agrees(lab: Lab) -> None:
    now = lifecycle.status(lab.dir)
    assert [(host.name, host.power, host.ssh) for host in now.hosts] == [(name, "running", True) for name in lab.names]
    assert dict(now.services) == {"repo": True, "store": True}
    assert now.faults == ()


def test_hosts_reach_each_other_by_name_and_nothing_else(lab: Lab) -> None:
    assert good(lab.ssh("n1", "ping -c1 -W2 n2 >/dev/null && echo yes")) == "yes"
    assert good(lab.ssh("n1", "ip -o route")).splitlines() == [f"{lab.address('n1').rpartition('.')[0]}.0/24 dev eth0 proto kernel scope link src {lab.address('n1')}"]
    assert lab.ssh("n1", "ping -c1 -W1 192.0.2.1").returncode != 0


def test_hosts_do_not_share_their_control_groups(lab: Lab) -> None:
    # With a common group, `systemctl stop` on one host waits for the processes of the others.
    groups = {Path(f"/proc/{_leader(lab, host)}/cgroup").read_text() for host in lab.names}
    assert len(groups) == len(lab.names)
    assert good(lab.ssh("n1", "time -p true; sudo timeout 10 systemctl restart systemd-journald && echo restarted")) == "restarted"


def _leader(lab: Lab, host: str) -> int:
    pid = leader(lab.state, host)
    assert pid > 1
    return pid


def test_disks_carry_the_serial_numbers_of_the_inventory(lab: Lab) -> None:
    for host in lab.names:
        for index, serial in enumerate(lab.state.host(host).serials):
            found = lab.ssh(host, f"n=$(stat -c %Hr:%Lr /dev/nvme{index}n1); cat /sys/dev/block/$n/loop/backing_file; cat /sys/dev/block/$n/size")
            backing, sectors = good(found).split()
            assert Path(backing).stem == serial
            assert int(sectors) * 512 == lab.state.disk_bytes


def test_a_bare_host_makes_a_file_system_and_mounts_it(bare_lab: Lab) -> None:
    script = "mkfs.xfs -q /dev/nvme0n1 && mkfs.ext4 -q /dev/nvme1n1 && mkdir /s && mount /dev/nvme0n1 /s && findmnt -no FSTYPE /s && umount /s"
    assert good(bare_lab.ssh("n1", f"sudo sh -ec '{script}'")) == "xfs"


def test_apt_works_without_a_way_out(bare_lab: Lab) -> None:
    assert bare_lab.ssh("n1", "command -v tree").returncode != 0
    good(bare_lab.ssh("n1", "sudo apt-get -qq update && sudo apt-get -qq install -y tree", timeout=120))
    assert good(bare_lab.ssh("n1", "tree --version")).startswith("tree v")


def test_the_time_service_runs_and_cannot_touch_the_machines_clock(bare_lab: Lab) -> None:
    good(bare_lab.ssh("n2", "sudo apt-get -qq update && sudo apt-get -qq install -y chrony", timeout=120))
    assert good(bare_lab.ssh("n2", "systemctl is-active chrony")) == "active"
    assert bare_lab.ssh("n2", "sudo date -s @0").returncode != 0


def test_settings_of_the_network_namespace_can_be_written_and_the_machines_cannot(lab: Lab) -> None:
    machines = Path("/proc/sys/vm/swappiness").read_text()
    assert good(lab.ssh("n1", "sudo sysctl -qw net.core.somaxconn=4097; cat /proc/sys/net/core/somaxconn")) == "4097"
    assert lab.ssh("n1", "sudo sysctl -qw vm.swappiness=1").returncode != 0
    assert Path("/proc/sys/vm/swappiness").read_text() == machines


def test_the_store_is_mounted_with_the_keys_of_the_inventory_and_written_to(bare_lab: Lab) -> None:
    host = "n1"
    good(bare_lab.ssh(host, "sudo apt-get -qq update && sudo apt-get -qq install -y rclone", timeout=120))
    access, secret = services.store_keys(bare_lab.state)
    config = f"[s]\ntype = s3\nprovider = Other\naccess_key_id = {access}\nsecret_access_key = {secret.reveal()}\nendpoint = {services.endpoint(bare_lab.state)}\n"
    (bare_lab.root(host) / "root/r.conf").write_text(config)
    mount = "rclone --config /root/r.conf mount --daemon --allow-other"
    good(bare_lab.ssh(host, f"sudo mkdir /data /ckpt && sudo {mount} --read-only s:dataset /data && sudo {mount} --vfs-cache-mode full --vfs-write-back=0s s:ckpt /ckpt"))
    shard = (bare_lab.dir / "store/dataset/shard-00003.bin").read_bytes()
    assert good(bare_lab.ssh(host, "cksum < /data/shard-00003.bin")) == subprocess.run(["cksum"], input=shard, capture_output=True).stdout.decode().strip()
    written = good(bare_lab.ssh(host, "head -c 300000 /dev/urandom | sudo tee /ckpt/from-n1.bin | sha256sum")).split()[0]
    stored = bare_lab.dir / "store/ckpt/from-n1.bin"
    _wait_for(stored)
    assert subprocess.run(["sha256sum", str(stored)], capture_output=True, text=True).stdout.split()[0] == written


def _wait_for(path: Path) -> None:
    assert until(path.exists, 15), f"{path} did not appear in the store within 15 s"


def test_a_wrong_key_is_refused_by_the_store(lab: Lab) -> None:
    access, _ = services.store_keys(lab.state)
    setting = f":s3,provider=Other,access_key_id={access},secret_access_key={'x' * 40},endpoint='{services.endpoint(lab.state)}':dataset"
    done = subprocess.run([rclone(), "--config=/dev/null", "--retries=1", "--low-level-retries=1", "lsf", setting], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "403" in done.stderr


def test_lent_torch_computes_and_cannot_be_changed(lab: Lab) -> None:
    if not lab.state.torch_site:
        pytest.skip(f"no torch was lent: {lab.state.notes}")
    assert good(lab.ssh("n1", "/opt/torch/bin/python -c 'import torch; print(int(torch.ones(3).sum()))'", timeout=120)) == "3"
    assert lab.ssh("n1", "sudo touch /opt/torch/lib/python3.11/site-packages/x").returncode != 0


def test_real_ansible_works_on_the_lab(lab: Lab) -> None:
    program = Path(sys.executable).parent / "ansible"
    if not program.exists():
        pytest.skip("ansible-core is not installed: pip install 'nodectl[test]'")
    done = subprocess.run([str(program), "-i", str(lab.hosts_yaml), "gpu", "-b", "-m", "command", "-a", "id -un", "-o"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("(stdout) root") == len(lab.names)


def test_a_reset_host_is_bare_and_has_new_keys_that_are_known(bare_lab: Lab) -> None:
    good(bare_lab.ssh("n3", "sudo touch /etc/mark && sudo mkfs.ext4 -q /dev/nvme0n1"))
    before = bare_lab.known_hosts.read_text()
    bare_lab.reset("n3")
    assert good(bare_lab.ssh("n3", "ls /etc/mark 2>/dev/null; sudo blkid /dev/nvme0n1; echo end")) == "end"
    after = bare_lab.known_hosts.read_text()
    changed = {line.split(",")[0] for line in set(before.splitlines()) ^ set(after.splitlines())}
    assert changed == {"n3"}


def test_a_reboot_from_within_brings_the_host_back(bare_lab: Lab) -> None:
    first = _leader(bare_lab, "n2")
    bare_lab.ssh("n2", "sudo touch /etc/kept; sudo systemctl reboot")
    assert until(lambda: leader(bare_lab.state, "n2") not in (0, first), 60)
    assert await_boot(bare_lab.state, bare_lab.state.host("n2")) == "running"
    assert good(bare_lab.ssh("n2", "ls /etc/kept")) == "/etc/kept"


def test_the_lab_that_is_up_is_not_started_twice(lab: Lab) -> None:
    with pytest.raises(LabProblem, match="is already up in"):
        lifecycle.up(LabPlan(dir=lab.dir))
    assert good(lab.ssh("n1", "true")) == ""


def test_the_state_tells_no_secret(lab: Lab) -> None:
    _, secret = services.store_keys(lab.state)
    assert secret.reveal() not in (lab.dir / "lab.json").read_text()
    listed = subprocess.run(["ps", "-eo", "args", "-ww"], capture_output=True, text=True).stdout
    assert secret.reveal() not in listed
    assert json.loads((lab.dir / "lab.json").read_text())["phase"] == "up"
