"""Roles on real kernels: scratch disks through a kill, a wipe and a format by opt-in; one boot for all that roles set. In the order of the file."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from nodectl.lab import disks
from nodectl.lab import guests as lab_guests
from nodectl.lab.machine import run
from nodectl.lab.problem import LabProblem
from tests.acceptance.run import image_hash
from tests.guests.conftest import PATIENCE_S, ROOT, Guests, Provisioned

# The fixture that boots is the longest: a run of 10 s, 10 to 30 s down, 25 to 110 s up on a busy machine.
pytestmark = [pytest.mark.guest, pytest.mark.timeout(600)]

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
REFUSED = "- hosts: g2\n  become: true\n  gather_facts: false\n  tasks:\n    - scratch_disks: {devices: [{path: /dev/vda}], wipe: [{path: /dev/vda}]}\n"
# Its answer is no matter: "degraded" is a system that has started as well.
SETTLED = "timeout 120 systemctl is-system-running --wait >/dev/null || true"
# Once the stripes run, the agent is killed, by the number it wrote into its lock; what it started (nobody waits for that now) is let end, or the
# next run would find the disks in use. Only programs that make something: mdadm may also be there to watch arrays, and that never ends.
KILL = (
    "timeout 150 sh -c 'until grep -q \"^md.* : active raid0\" /proc/mdstat; do sleep 0.1; done' && kill -9 $(cat /run/nodectl-scratch_disks.lock) && "
    "timeout 60 sh -c 'while pgrep -f \"^(mkfs|mdadm --create)\" >/dev/null; do sleep 0.2; done' && cat /etc/nodectl/scratch.json"
)
KILL_S = 220.0
REBOOTS = "- hosts: g1\n  become: true\n  gather_facts: false\n  roles: [node_reboot]\n"


class Scratch:
    """The role on both guests: g1 has four disks to stripe; g2 formats its first, keeps its second, and makes an array of the other two."""

    def __init__(self, guests: Guests) -> None:
        self.guests = guests
        self.one, self.two = (guests.state.guest(name).serials for name in ("g1", "g2"))
        named = [{"serial": serial} for serial in self.two]
        self.wish = {"g1": {"devices": [{"serial": serial} for serial in self.one]}, "g2": {"devices": named[:1], "format": named[:1], "array": named[2:]}}
        self.playbook = guests.runs / "scratch.yml"
        self.playbook.write_text(PLAYBOOK)

    def run(self, limit: str = "guests", expect: int = 0) -> str:
        return self.guests.play(self.playbook, limit, expect, wish=self.wish)

    def names(self, guest: str) -> list[str]:
        """The kernel's names of the guest's disks, in the order of their serials."""
        serials = " ".join(self.guests.state.guest(guest).serials)
        return self.guests.ssh(guest, f"for s in {serials}; do readlink -f /dev/disk/by-id/nvme-*_${{s}}_1; done").split()

    def hashes(self, guest: str) -> list[str]:
        return [image_hash(disks.image(self.guests.state, serial)) for serial in self.guests.state.guest(guest).serials]


@dataclass
class Made:
    """``record`` is what g1 knew when its agent had been killed, ``said`` what the next run said; ``kept`` the image of g2's second disk, before and after."""

    scratch: Scratch
    record: dict[str, dict[str, object]]
    said: str
    kept: tuple[str, str]


@pytest.fixture(scope="module")
def made(guests: Guests) -> Made:
    scratch = Scratch(guests)
    guests.ssh("g2", f"sudo mkfs.ext4 -q -L KEPT {scratch.names('g2')[1]}; sync")
    before = scratch.hashes("g2")[1]
    record = killed(scratch)
    said = scratch.run()
    return Made(scratch, record, said, (before, scratch.hashes("g2")[1]))


def killed(scratch: Scratch) -> dict[str, dict[str, object]]:
    """Runs the role on g1 and kills its agent once the stripes are there; gives back the record on g1."""
    argv = [sys.executable, "-m", "nodectl", *scratch.guests.words(scratch.playbook, "g1", wish=scratch.wish)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:
        try:
            shown = scratch.guests.inside("g1", KILL, KILL_S)
        except LabProblem as problem:
            process.terminate()
            raise AssertionError(f"{problem}\nthe run said: {process.communicate(timeout=PATIENCE_S)[0]}") from problem
        said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (2, 4), said
    found: dict[str, dict[str, object]] = json.loads(shown[shown.index("{") :])["devices"]  # the terminal's own signs stand before it
    return found


def test_a_run_that_is_killed_over_its_stripes_is_finished_by_the_next(made: Made) -> None:
    scratch, guests = made.scratch, made.scratch.guests
    assert [one["made"] for one in made.record.values()] == ["begun"]
    assert " ".join(("stripe", *scratch.one)) in made.said, "the plan names the serials"
    assert "su=chunk, sw=disks" in made.said
    assert made.kept[0] == made.kept[1]
    again = scratch.run()
    assert again.count("changed=0") == 2, again
    shown = guests.ssh("g1", "sudo xfs_info /scratch; grep -c ^ARRAY /etc/mdadm/mdadm.conf; cat /etc/nodectl/scratch.json")
    assert "sunit=128    swidth=512 blks" in shown
    counted, record = shown[: shown.index("{")].split()[-1], json.loads(shown[shown.index("{") :])
    assert counted == "1"
    assert [(one["made"], one["members"]) for one in record["devices"].values()] == [("done", list(scratch.one))]


def test_only_the_drive_that_is_named_has_larger_blocks(made: Made) -> None:
    names = made.scratch.names("g2")
    sizes = " ".join(f"/sys/class/block/{Path(name).name}/queue/logical_block_size" for name in names)
    found = made.scratch.guests.ssh("g2", f"cat {sizes}; findmnt -no FSTYPE /scratch; systemctl is-active fstrim.timer; sudo mdadm --detail /dev/md/data").split()
    assert found[:6] == ["4096", "512", "512", "512", "xfs", "active"]
    assert "raid0" in found


def test_the_disk_that_the_system_runs_from_is_refused(guests: Guests) -> None:
    playbook = guests.runs / "refused.yml"
    playbook.write_text(REFUSED)
    said = guests.play(playbook, "g2", expect=2)
    assert "is mounted on / (this system runs from it)" in said
    assert "wipe does not override this" in said


@dataclass
class Booted:
    """g1 after the boot that node_reboot asked for: ``said`` is what that run said, ``boots`` and ``names`` its boot ids and its disks before and after."""

    scratch: Scratch
    said: str
    boots: tuple[str, str]
    names: tuple[list[str], list[str]]


def boot_id(guests: Guests) -> str:
    return guests.ssh("g1", "cat /proc/sys/kernel/random/boot_id").strip()


@pytest.fixture(scope="module")
def booted(made: Made, provisioned: Provisioned) -> Booted:
    """While it is off its disks change their ports, and thereby their names; its kernel is started as its boot loader's entry says."""
    guests, scratch = provisioned.guests, made.scratch
    state, guest = guests.state, guests.state.guest("g1")
    playbook = guests.runs / "reboot.yml"
    playbook.write_text(REBOOTS)
    before, names = boot_id(guests), scratch.names("g1")
    guests.ssh("g1", "sudo sh -c 'echo kept > /scratch/kept'; sync")
    lab_guests.off_at_reboot(state, guest)
    with ThreadPoolExecutor(1) as pool:
        rebooting = pool.submit(guests.play, playbook, "g1", node_reboot_timeout=240)
        assert lab_guests.went_off(state, guest, rebooting.done), f"it did not go down: {rebooting.result()}"
        lab_guests.power_on(state, guest, [*scratch.one[2:], *scratch.one[:2]][::-1], lab_guests.loader_line(state, guest))
        said = rebooting.result()
    guests.ssh("g1", SETTLED)
    return Booted(scratch, said, (before, boot_id(guests)), (names, scratch.names("g1")))


def test_the_stripes_come_back_when_all_names_are_swapped(booted: Booted) -> None:
    assert booted.boots[0] != booted.boots[1]
    assert all(new != old for old, new in zip(*booted.names, strict=True))
    assert booted.scratch.guests.ssh("g1", "findmnt -no FSTYPE /scratch; cat /scratch/kept; hostname").split() == ["xfs", "kept", "g1"]


def test_the_kernel_was_started_as_the_role_wished(booted: Booted) -> None:
    assert "g1 needs a reboot: kernel arguments: iommu=pt is missing, loglevel=5 is missing" in booted.said
    line, level, asked = booted.scratch.guests.ssh("g1", "cat /proc/cmdline; cut -f1 /proc/sys/kernel/printk; ls /run/nodectl/reboot 2>&1 || true").splitlines()
    assert {"iommu=pt", "loglevel=5", "root=/dev/vda"} <= set(line.split())
    assert "loglevel=4" not in line
    assert level == "5"
    assert "No such file" in asked


def test_what_roles_set_is_there_after_the_boot(booted: Booted, provisioned: Provisioned) -> None:
    guests = booted.scratch.guests
    shown = guests.ssh("g1", "cat /proc/sys/vm/nr_hugepages /proc/sys/vm/swappiness /sys/kernel/mm/transparent_hugepage/enabled; ulimit -l; rdma link; lsmod; systemctl --failed --no-legend")
    pages, swappiness, transparent, locked, link, *rest = shown.splitlines()
    assert (pages, swappiness, locked) == ("24", "1", "unlimited")
    assert "[madvise]" in transparent
    assert "rxe0/1 state ACTIVE" in link
    assert {"ib_uverbs", "rdma_ucm", "ib_umad", "ib_ipoib"} <= {row.split()[0] for row in rest}
    assert not [row for row in rest if "nodectl" in row], "units that failed"
    again = guests.play(provisioned.playbook, "g1")
    assert "changed=0" in again, again
    assert "needs a reboot" not in again


def test_stripes_are_made_again_where_the_lost_disk_was_ours_and_not_over_another_s(booted: Booted) -> None:
    scratch, guests = booted.scratch, booted.scratch.guests
    guest = guests.state.guest("g1")
    lost = disks.image(guests.state, scratch.one[2])
    guests.ssh("g1", "sudo systemctl poweroff --no-block")
    assert lab_guests.went_off(guests.state, guest), f"it is still on after {lab_guests.OFF_TIMEOUT_S:.0f} s"
    run(["mkfs.ext4", "-q", "-F", "-L", "THEIRS", str(lost)])
    lab_guests.power_on(guests.state, guest, scratch.one)
    guests.ssh("g1", SETTLED)
    assert "/scratch" not in guests.ssh("g1", "findmnt -rno TARGET").split(), "nofail: it came up without"
    before = scratch.hashes("g1")
    refused = scratch.run("g1", expect=2)
    assert scratch.one[2] in refused
    assert "ext4" in refused
    assert scratch.hashes("g1") == before
    # The start and every signature; the whole disk would be one long command, which a busy emulator does not answer in the 30 s that the driver waits.
    emptied = scratch.names("g1")[2]
    guests.ssh("g1", f"sudo wipefs -aq {emptied} && sudo dd if=/dev/zero of={emptied} bs=1M count=16 oflag=direct status=none")
    scratch.run("g1")
    found = guests.ssh("g1", "findmnt -no FSTYPE /scratch; ls -A /scratch; grep -c ^ARRAY /etc/mdadm/mdadm.conf; grep -c /scratch /etc/fstab; grep -c begun /etc/nodectl/scratch.json || true").split()
    assert found == ["xfs", "1", "1", "0"]
    assert "changed=0" in scratch.run("g1")
