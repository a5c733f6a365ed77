"""Scratch disks on real kernels: four striped, through a kill, a power cycle that swaps their names, a wiped disk; a format by opt-in. In the order of the file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nodectl.lab import disks, hosts
from nodectl.lab import guests as lab_guests
from nodectl.lab.guest_image import BOOT_TIMEOUT_S
from nodectl.lab.machine import until
from tests.acceptance.run import image_hash
from tests.guests.conftest import PATIENCE_S, ROOT, Guests

# A boot took 60 to 110 s on a busy machine.
pytestmark = [pytest.mark.guest, pytest.mark.timeout(900)]

PLAYBOOK = """\
- hosts: guests
  become: true
  gather_facts: false
  vars:
    scratch_devices: "{{ wish[inventory_hostname].devices }}"
    nvme_scratch_format: "{{ wish[inventory_hostname].format | default([]) }}"
  roles: [nvme_scratch]
  tasks:
    - name: Make another array
      md_array:
        name: data
        devices: "{{ wish[inventory_hostname].array }}"
      when: "'array' in wish[inventory_hostname]"
"""
# The kernel's last words.
RESTARTED = b"reboot: Restarting system"
# Its answer is no matter: "degraded" is a system that has started as well.
SETTLED = "systemctl is-system-running --wait >/dev/null || true"
# Once the stripes run and mkfs is at work: the agent is killed, by the number it wrote into its lock, and mkfs (which nobody waits for now) is let end.
KILL = (
    "until grep -q raid0 /proc/mdstat && grep -q '^md.*active' /proc/mdstat; do sleep 0.1; done; kill -9 $(cat /run/nodectl-scratch_disks.lock); "
    "while pgrep -x 'mkfs.xfs|mdadm' >/dev/null; do sleep 0.2; done; cat /etc/nodectl/scratch.json"
)


class Scratch:
    """The role on both guests: g1 has four disks to stripe; g2 formats its first, keeps its second, and makes an array of the other two."""

    def __init__(self, guests: Guests, folder: Path) -> None:
        self.guests = guests
        self.folder = folder
        self.one, self.two = (guests.state.guest(name).serials for name in ("g1", "g2"))
        named = [{"serial": serial} for serial in self.two]
        self.wish = {"g1": {"devices": [{"serial": serial} for serial in self.one]}, "g2": {"devices": named[:1], "format": named[:1], "array": named[2:]}}
        (folder / "scratch.yml").write_text(PLAYBOOK)

    def words(self, limit: str) -> list[str]:
        run = self.folder / f"run{len(list(self.folder.iterdir()))}"
        extra = json.dumps({"wish": self.wish})
        return ["run", str(self.folder / "scratch.yml"), "-i", str(self.guests.state.hosts_yaml), "-l", limit, "--run-dir", str(run), "-e", extra]

    def run(self, limit: str = "guests", expect: int = 0, **more: object) -> str:
        return self.guests.nodectl(*self.words(limit), "-e", json.dumps(more), expect=expect)

    def device(self, guest: str, serial: str) -> str:
        return self.guests.ssh(guest, f"readlink -f /dev/disk/by-id/nvme-*_{serial}_1").strip()


@pytest.fixture(scope="module")
def scratch(guests: Guests, tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return Scratch(guests, tmp_path_factory.mktemp("scratch"))


def test_a_run_that_is_killed_over_its_stripes_is_finished_by_the_next(scratch: Scratch) -> None:
    guests = scratch.guests
    kept = scratch.two[1]
    guests.ssh("g2", f"sudo mkfs.ext4 -q -L KEPT {scratch.device('g2', kept)}; sync")
    before = image_hash(disks.image(guests.state, kept))
    argv = [sys.executable, "-m", "nodectl", *scratch.words("g1")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:
        shown = guests.inside("g1", KILL, PATIENCE_S)
        said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (2, 4), said
    record = json.loads(shown[shown.index("{") :])["devices"]  # the terminal's own signs stand before it
    assert [one["made"] for one in record.values()] == ["begun"]

    done = scratch.run()
    assert " ".join(("stripe", *scratch.one)) in done, "the plan names the serials"
    assert "su=chunk, sw=disks" in done
    again = scratch.run()
    assert again.count("changed=0") == 2, again
    assert image_hash(disks.image(guests.state, kept)) == before
    (record,) = json.loads(guests.ssh("g1", "cat /etc/nodectl/scratch.json"))["devices"].values()
    assert (record["made"], record["members"]) == ("done", list(scratch.one))
    assert "sunit=128    swidth=512 blks" in guests.ssh("g1", "sudo xfs_info /scratch")
    assert guests.ssh("g1", "grep -c ^ARRAY /etc/mdadm/mdadm.conf").strip() == "1"


def test_only_the_drive_that_is_named_has_larger_blocks(scratch: Scratch) -> None:
    sizes = {serial: scratch.guests.ssh("g2", f"cat /sys/class/block/{Path(scratch.device('g2', serial)).name}/queue/logical_block_size").strip() for serial in scratch.two}
    assert list(sizes.values()) == ["4096", "512", "512", "512"]
    assert scratch.guests.ssh("g2", "findmnt -no FSTYPE /scratch; cat /proc/mdstat").split()[0] == "xfs"
    assert "raid0" in scratch.guests.ssh("g2", "sudo mdadm --detail /dev/md/data")


def test_the_disk_that_the_system_runs_from_is_refused(scratch: Scratch) -> None:
    playbook = scratch.folder / "root.yml"
    playbook.write_text("- hosts: g2\n  become: true\n  gather_facts: false\n  tasks:\n    - scratch_disks: {devices: [{path: /dev/vda}], wipe: [{path: /dev/vda}]}\n")
    run = scratch.folder / f"run{len(list(scratch.folder.iterdir()))}"
    said = scratch.guests.nodectl("run", str(playbook), "-i", str(scratch.guests.state.hosts_yaml), "--run-dir", str(run), expect=2)
    assert "is mounted on / (this system runs from it)" in said
    assert "wipe does not override this" in said


def test_the_stripes_come_back_when_all_names_are_swapped(scratch: Scratch) -> None:
    guests = scratch.guests
    guest = guests.state.guest("g1")
    before = guests.ssh("g1", "sudo sh -c 'echo kept > /scratch/kept'; sync; cat /proc/sys/kernel/random/boot_id").strip()
    names = [scratch.device("g1", serial) for serial in scratch.one]
    lab_guests.power_off(guests.state, guest)
    lab_guests.power_on(guests.state, guest, [*scratch.one[2:], *scratch.one[:2]][::-1])
    guests.ssh("g1", SETTLED)
    after = guests.ssh("g1", "cat /proc/sys/kernel/random/boot_id; findmnt -no FSTYPE /scratch; cat /scratch/kept; hostname; rdma link").split()
    assert after[0] != before
    assert after[1:4] == ["xfs", "kept", "g1"]
    assert "ACTIVE" in after
    assert all(new != old for new, old in zip([scratch.device("g1", serial) for serial in scratch.one], names, strict=True))


def test_stripes_that_lost_a_disk_are_made_again(scratch: Scratch) -> None:
    guests = scratch.guests
    lost = scratch.device("g1", scratch.one[2])
    size = int(guests.ssh("g1", f"sudo blockdev --getsize64 {lost}"))
    wipe = f"umount /scratch && mdadm --stop /dev/md/scratch && for at in 0 {size // 1048576 - 4}; do dd if=/dev/zero of={lost} bs=1M count=4 seek=$at conv=fsync status=none; done"
    guests.ssh("g1", f"sudo sh -c '{wipe}'")
    reboot(guests, "g1")
    assert "/scratch" not in guests.ssh("g1", "findmnt -rno TARGET"), "nofail: it came up without"
    scratch.run("g1")
    found = guests.ssh("g1", "findmnt -no FSTYPE /scratch; ls -A /scratch; grep -c ^ARRAY /etc/mdadm/mdadm.conf; grep -c /scratch /etc/fstab; grep -c begun /etc/nodectl/scratch.json || true").split()
    assert found == ["xfs", "1", "1", "0"]
    assert "changed=0" in scratch.run("g1")


def reboot(guests: Guests, name: str) -> None:
    guest = guests.state.guest(name)
    own = lab_guests.files(guests.state, name)
    gone = own.console.read_bytes().count(RESTARTED)
    guests.ssh(name, "sudo systemctl reboot --no-block")
    assert until(lambda: own.console.read_bytes().count(RESTARTED) > gone, 120.0, 0.5), "it did not go down"
    assert until(lambda: hosts.greets(guest.address, lab_guests.GREETING_S), BOOT_TIMEOUT_S, 2.0), "its sshd did not come back"
    guests.ssh(name, SETTLED)
