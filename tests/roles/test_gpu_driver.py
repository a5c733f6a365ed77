"""The driver's set on a simulated machine of eight H100: packages of the right names, made here, prove selection, versions, holds and order. Nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from nodectl.lab.fault_hardware import HARDWARE_ROOT
from tests.roles.stage import Stages

pytestmark = pytest.mark.lab
VERSION, OTHER = "570.86.15-1", "570.86.16-1"
SET = ["nvidia-kernel-open-dkms", "nvidia-driver-cuda", "nvidia-fabricmanager-570", "libnvidia-nscq-570"]
UNITS = {"nvidia-driver-cuda": "nvidia-persistenced", "nvidia-fabricmanager-570": "nvidia-fabricmanager"}
BUILD = """
set -e
mkdir -p /srv/gpu/p/DEBIAN; cd /srv/gpu
make() {
    rm -rf p; mkdir -p p/DEBIAN
    printf 'Package: %s\\nVersion: %s\\nArchitecture: all\\nMaintainer: lab <l@l>\\nDescription: not the real one\\n' "$1" "$2" > p/DEBIAN/control
    if [ -n "$3" ]; then
        mkdir -p p/lib/systemd/system
        printf '[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n' > "p/lib/systemd/system/$3.service"
    fi
    dpkg-deb --build p "$1_$2.deb" > /dev/null
}
"""
INDEX = """
for deb in *.deb; do
    dpkg-deb -f "$deb"; printf 'Filename: ./%s\\nSize: %s\\nSHA256: %s\\n\\n' "$deb" "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -d' ' -f1)"
done > Packages
echo 'deb [trusted=yes] file:/srv/gpu ./' > /etc/apt/sources.list.d/gpu.list
apt-get update -o Dir::Etc::sourcelist=/etc/apt/sources.list.d/gpu.list -o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0 > /dev/null
"""
CLEAN = (
    "for u in nvidia-persistenced nvidia-fabricmanager nodectl-peermem; do systemctl disable --now $u 2>/dev/null; done; "
    "dpkg --purge --force-all $(dpkg-query -W -f '${Package} ' 'nvidia-*' 'libnvidia-*' 'linux-headers-*' 2>/dev/null) > /dev/null 2>&1; "
    "rm -rf /srv/gpu /etc/apt/sources.list.d/gpu.list /etc/modprobe.d/90-nodectl-n* /etc/systemd/system/nodectl-peermem.service /run/nodectl; "
    "rm -f /var/lib/apt/lists/*srv_gpu*; systemctl daemon-reload"
)


def packages(kernel: str) -> str:
    made = [f"make {name} {version} '{UNITS.get(name, '')}'" for name in SET for version in (VERSION, OTHER)]
    return BUILD + "\n".join([*made, f"make linux-headers-{kernel} 1 ''", "make nvidia-container-toolkit 1.17 ''"]) + INDEX


@pytest.fixture(scope="module")
def machine(stages: Stages) -> Iterator[Stages]:
    """The host with the recorded machine and its packages; as it was afterwards."""
    stages.lab.fault(stages.host, "hardware")
    try:
        stages.shell(packages(stages.shell("uname -r").strip()))
        yield stages
    finally:
        stages.shell(CLEAN)
        stages.lab.lift(stages.host, "hardware")


def test_the_set_is_installed_as_one_held_and_settled(provisioned: Stages, machine: Stages) -> None:
    wish: dict[str, Any] = {"hardware_root": HARDWARE_ROOT, "gpu_driver_version": VERSION}
    check, real = machine.rehearsed("gpu", **wish)
    assert (check.code, real.code) == (0, 0), check.out + real.out
    versions = machine.inside("dpkg-query", "-W", "-f", "${Package} ${Version}\n", *SET).split("\n")
    assert sorted(filter(None, versions)) == sorted(f"{name} {VERSION}" for name in SET)
    assert set(SET) <= set(machine.inside("apt-mark", "showhold").split())
    assert machine.shell("systemctl is-enabled nvidia-persistenced nvidia-fabricmanager").split() == ["enabled", "enabled"]
    assert "blacklist nouveau" in machine.shell("cat /etc/modprobe.d/90-nodectl-nouveau.conf")
    assert "8 GPUs, fabric ib, profile h100-sxm [simulated]" in real.out
    assert "MIG, ECC, clocks and services are unknown: the machine is simulated" in real.out
    again = machine("gpu", **wish)
    assert (again.code, again.changed) == (0, set()), again.out
    # A later version is there, and is not taken without being asked for.
    assert machine("gpu", hardware_root=HARDWARE_ROOT).changed == set()


def test_a_set_with_two_versions_in_it_is_refused(provisioned: Stages, machine: Stages) -> None:
    machine.shell(f"cd /srv/gpu && dpkg -i --force-hold nvidia-fabricmanager-570_{OTHER}.deb > /dev/null")
    try:
        done = machine("gpu", hardware_root=HARDWARE_ROOT)
        assert done.code == 2
        assert "are there as 570.86.15 and 570.86.16: driver, fabric manager, IMEX and NSCQ must be of one version" in done.reason
    finally:
        machine.shell(f"cd /srv/gpu && dpkg -i --force-hold --force-downgrade nvidia-fabricmanager-570_{VERSION}.deb > /dev/null 2>&1")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"gpu_driver_modules": "proprietary", "gpu_driver_version": "570.0.0-1"}, "no package list"),
    ({"node_stack": {"kernel": "6.1.0-1", "driver": VERSION}, "node_stack_file": ""}, "is locked to 6.1.0-1: boot that one first"),
]


@pytest.mark.parametrize(("wish", "said"), REFUSED, ids=["packages-not-there", "kernel"])
def test_what_cannot_be_is_refused_before_anything_is_changed(provisioned: Stages, machine: Stages, wish: dict[str, Any], said: str) -> None:
    before = machine.tree("/etc/modprobe.d", "/var/lib/dpkg/info")
    done = machine("gpu", hardware_root=HARDWARE_ROOT, **wish)
    assert done.code == 2
    assert said in done.reason
    assert machine.tree("/etc/modprobe.d", "/var/lib/dpkg/info") == before
