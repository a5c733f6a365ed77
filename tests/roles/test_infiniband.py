"""The fabric's settings on a simulated machine of eight GPUs and eight cards: what is written, in which order, and what is refused. Nothing is set here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from nodectl.lab.fault_hardware import HARDWARE_ROOT
from tests.roles.stage import Stages

pytestmark = pytest.mark.lab
SCRIPT = "/usr/local/sbin/nodectl-fabric"
FILES = f"{SCRIPT} /etc/systemd/system/nodectl-fabric.service /etc/sysctl.d/91-nodectl-rails.conf /etc/udev/rules.d/60-rdma-persistent-naming.rules"
ROCE: dict[str, Any] = {
    "infiniband_roce_tos": 104, "infiniband_pfc_priority": "3", "infiniband_mtu": 9000, "infiniband_addresses": {"eth0": "10.224.0.1/24"}, "infiniband_names": "pci",
    "infiniband_acs_off": "yes",
}


@pytest.fixture
def clean(provisioned: Stages) -> Iterator[Stages]:
    try:
        yield provisioned
    finally:
        provisioned.shell(f"systemctl disable nodectl-fabric 2>/dev/null; rm -f {FILES}; systemctl daemon-reload")
        provisioned.lab.lift(provisioned.host, "hardware")
        provisioned("fabric")


def test_infiniband_by_the_machine_s_own_order(clean: Stages) -> None:
    clean.lab.fault(clean.host, "hardware")
    check, real = clean.rehearsed("fabric", hardware_root=HARDWARE_ROOT)
    assert (check.code, real.code) == (0, 0), check.out + real.out
    assert check.changed == real.changed != set()
    assert "mlx5_7 [simulated]" in real.out
    assert "how many ports there must be, of which rate: unknown" in real.out
    assert "NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7\n" in clean.shell("cat /etc/nccl.conf")
    assert clean.inside("systemctl", "is-enabled", "nodectl-fabric") == "enabled\n"
    assert clean.inside("systemctl", "show", "-p", "ActiveState", "nodectl-fabric") == "ActiveState=inactive\n"
    assert clean("fabric", hardware_root=HARDWARE_ROOT).changed == set()
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"infiniband_hcas": 9}, "has 8 of 9 RDMA devices up"), ({"infiniband_rate_gbps": 800}, "mlx5_0 has 400 Gb/sec (4X NDR)"),
    )
    for wish, said in wrong:
        done = clean("fabric", hardware_root=HARDWARE_ROOT, **wish)
        assert (done.code, said in done.reason) == (2, True), done.out


def test_roce_rails_keep_to_themselves(clean: Stages) -> None:
    clean.lab.fault(clean.host, "hardware", "roce")
    done = clean("fabric", hardware_root=HARDWARE_ROOT, **ROCE)
    assert done.code == 0, done.out
    script = clean.shell(f"sh -n {SCRIPT} && cat {SCRIPT}")
    for line in ("ip address replace 10.224.0.1/24 dev eth0", "--pfc 0,0,0,1,0,0,0,0", "echo 104 > ", "ECAP_ACS+0x6.w=0000", "set \"$interface\" mtu 9000"):
        assert line in script, line
    assert "NAME_PCI" in clean.shell("cat /etc/udev/rules.d/60-rdma-persistent-naming.rules")
    assert "NCCL_IB_TC=104" in clean.shell("cat /etc/nccl.conf")
