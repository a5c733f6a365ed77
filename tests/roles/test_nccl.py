"""NCCL's settings follow from what was found: each fabric as a recorded finding, and the role on hosts that have none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.handoff.nccl_conf import parse
from nodectl.lang.template import Templar
from nodectl.lang.template_error import TemplateError
from nodectl.shipped import shipped
from tests.roles.stage import Stages

TEMPLATE = shipped("roles") / "nccl" / "templates" / "nccl.conf.j2"


def hca(name: str, reason: str = "") -> dict[str, Any]:
    return {"name": name, "usable": not reason, "reason": reason}


def fabric(kind: str, *hcas: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "hcas": list(hcas), "interfaces": [{"name": "eth0"}]}


IB = fabric("ib", hca("mlx5_0"), hca("mlx5_1"), hca("mlx5_10"), hca("mlx5_2", "port 1 is DOWN (Polling), not ACTIVE (LinkUp)"))
ROCE = fabric("roce", hca("mlx5_0"), hca("mlx5_3", "its interface eth5 has no address"))
RAILS = fabric("ib", {**hca("mlx5_0"), "near_gpu": None}, {**hca("mlx5_2"), "near_gpu": 3}, {**hca("mlx5_9"), "near_gpu": 0})
DOWN = fabric("ib", hca("mlx5_0", "port 1 is DOWN"), hca("mlx5_1", "port 1 is DOWN"))
EXTRA = [{"name": "NCCL_DEBUG", "value": "WARN", "why": "asked for\nby the site"}]
CASES: list[tuple[str, dict[str, Any], dict[str, Any], list[str], str]] = [
    # name, what was found, other variables, the settings, a part of the reasons
    ("ib", IB, {}, ["NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_10", "NCCL_NET=IB"], "mlx5_1 would also take mlx5_10"),
    ("roce", ROCE, {}, ["NCCL_IB_HCA==mlx5_0", "NCCL_NET=IB"], "Fail instead of falling back"),
    ("rails-by-gpu", RAILS, {}, ["NCCL_IB_HCA==mlx5_9,mlx5_2,mlx5_0", "NCCL_NET=IB"], "in the order of the GPUs beside them"),
    ("roce-class", ROCE, {"nccl_roce_tc": 41, "nccl_roce_ranges": ["10.224.0.0/12"]},
     ["NCCL_IB_HCA==mlx5_0", "NCCL_IB_TC=41", "NCCL_IB_ADDR_FAMILY=AF_INET", "NCCL_IB_ADDR_RANGE=10.224.0.0/12", "NCCL_NET=IB"], "an index is another one"),
    ("roce-six", ROCE, {"nccl_roce_ranges": ["fd02::/16"]},
     ["NCCL_IB_HCA==mlx5_0", "NCCL_IB_ADDR_FAMILY=AF_INET6", "NCCL_IB_ADDR_RANGE=fd02::/16", "NCCL_NET=IB"], "on each node anew"),
    ("ib-takes-no-class", IB, {"nccl_roce_tc": 41}, ["NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_10", "NCCL_NET=IB"], "exact"),
    ("gcp", fabric("tcp"), {"nccl_profile": "gcp"}, [], "sourcing\n# /x.sh"),
    ("ib-down", DOWN, {}, ["NCCL_NET=IB"], "No device is usable now: port 1 is DOWN."),
    ("ib-without-driver", fabric("ib"), {}, ["NCCL_NET=IB"], "no driver has taken the hardware"),
    ("efa", fabric("efa", hca("rdmap0s6")), {}, [], "aws-ofi-nccl plugin"),
    ("tcp", fabric("tcp"), {}, ["NCCL_IB_DISABLE=1"], "No RDMA device was found"),
    ("ib-standard", IB, {"network_tier": "standard"}, ["NCCL_IB_DISABLE=1", "NCCL_NET=Socket"], "asks for TCP, although this node has ib"),
    ("efa-standard", fabric("efa"), {"network_tier": "standard"}, ["NCCL_IB_DISABLE=1", "NCCL_NET=Socket"], "although this node has efa"),
    ("tcp-standard", fabric("tcp"), {"network_tier": "standard"}, ["NCCL_IB_DISABLE=1", "NCCL_NET=Socket"], "asks for TCP: neither"),
    ("extra", fabric("tcp"), {"nccl_extra": EXTRA}, ["NCCL_IB_DISABLE=1", "NCCL_DEBUG=WARN"], "# asked for by the site\n"),
]


def rendered(found: dict[str, Any], **more: Any) -> str:
    facts = {"default_ipv4": {"interface": "eth9"}}
    defaults = {
        "network_tier": "best", "nccl_interface": "", "nccl_extra": [], "nccl_roce_tc": 0, "nccl_roce_ranges": [], "nccl_profile": "auto", "nccl_gcp_script": "/x.sh",
    }
    variables = {"nodectl_fabric": found, **defaults, "ansible_facts": facts, **more}
    return Templar().render_file(TEMPLATE.read_text(), variables, str(TEMPLATE))


def settings(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize(("found", "more", "lines", "why"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_settings_of_each_fabric(found: dict[str, Any], more: dict[str, Any], lines: list[str], why: str) -> None:
    text = rendered(found, **more)
    assert settings(text) == ["NCCL_SOCKET_IFNAME==eth9", *lines]
    assert why in text
    assert parse(text)[1] == []  # nothing that NCCL would drop, cut or misread


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_each_setting_has_its_reason_above_it(case: tuple[str, dict[str, Any], dict[str, Any], list[str], str]) -> None:
    """A reason may stand for two lines that follow each other; no setting stands without one."""
    lines = rendered(case[1], **case[2]).splitlines()
    assert lines[0].startswith("# Written by nodectl")
    for number, line in enumerate(lines):
        if not line.startswith("#"):
            above = [one for one in lines[max(number - 2, 1) : number] if one.startswith("#")]
            assert above, line


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"nccl_interface": "bond0"}, "bond0"),
        ({"nccl_route": {"interface": "ib0"}}, "ib0"),
        ({"nccl_route": {"skipped": True}}, "eth9"),
        ({"nccl_interface": "bond0", "nccl_route": {"interface": "ib0"}}, "bond0"),
    ],
    ids=str,
)
def test_the_interface_is_the_one_asked_for_else_the_route_else_the_default(more: dict[str, Any], name: str) -> None:
    assert settings(rendered(fabric("tcp"), **more))[0] == f"NCCL_SOCKET_IFNAME=={name}"


def test_no_interface_is_no_line() -> None:
    assert settings(rendered(fabric("tcp"), ansible_facts={})) == ["NCCL_IB_DISABLE=1"]


def test_a_setting_without_a_reason_is_an_error() -> None:
    with pytest.raises(TemplateError, match="why"):
        rendered(fabric("tcp"), nccl_extra=[{"name": "NCCL_DEBUG", "value": "INFO"}])


@pytest.mark.lab
def test_hosts_that_are_named_by_their_address_alone(provisioned: Stages, tmp_path: Path) -> None:
    """Without ansible_host a node is reached by its name in the inventory, and so are its peers."""
    lab = provisioned.lab
    common = [f"ansible_ssh_private_key_file: {lab.key}", f'ansible_ssh_common_args: "-o UserKnownHostsFile={lab.known_hosts} -o IdentitiesOnly=yes"']
    names = [lab.address(name) for name in lab.names[:2]]
    text = "\n".join(["all:", "  vars:", *(f"    {line}" for line in ["ansible_user: ops", *common]), "  hosts:", *(f"    {name}:" for name in names), ""])
    (tmp_path / "hosts.yaml").write_text(text)
    done = provisioned("fabric", inventory=tmp_path / "hosts.yaml", hosts="all")
    assert done.code == 0, done.out
    assert "NCCL_SOCKET_IFNAME==eth0" in provisioned.shell("cat /etc/nccl.conf")


@pytest.mark.lab
def test_an_interface_that_is_not_there_is_refused(provisioned: Stages) -> None:
    done = provisioned("fabric", nccl_interface="ib7")
    assert done.code == 2
    assert "nccl_interface is ib7; this node has eth0" in done.reason
