"""Each stage alone, in order, on a bare host: check mode foretells exactly, the second run changes nothing, wrong arguments are named."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from nodectl.shipped import shipped
from tests.roles.stage import STAGES, Stages, Trial


def test_bootstrap_is_these_stages_in_this_order() -> None:
    book = yaml.safe_load((shipped("playbooks") / "bootstrap.yml").read_text())
    assert [play["import_playbook"] for play in book] == [f"{stage}.yml" for stage in STAGES]


@pytest.mark.lab
@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_alone_is_foretold_exactly_and_then_settled(first: dict[str, Trial], stage: str) -> None:
    check, real, again = first[stage][:3]
    assert (check.code, real.code) == (0, 0), check.out + real.out
    assert check.changed == real.changed
    assert (again.code, again.changed) == (0, set()), again.out


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("facts", {"node_facts_supported": {"Ubuntu": ["24.04"]}}, "supported are Ubuntu 24.04"),
    ("facts", {"node_profile": "h100"}, "node_profile: nobody knows 'h100'"),
    ("base", {"base_thp": "sometimes"}, "arguments of role base: 'base_thp' is 'sometimes'"),
    ("base", {"base_journal_size": "much"}, "base_journal_size 'much'; expected a size as 4G"),
    ("gpu", {"gpu_driver_modules": "both"}, "arguments of role gpu_driver: 'gpu_driver_modules' is 'both'"),
    ("reboot", {"node_reboot_timeout": "soon"}, "arguments of role node_reboot: 'node_reboot_timeout' wants a whole number"),
    ("base", {"base_nofile": "many"}, "arguments of role base: 'base_nofile' wants a whole number"),
    ("base", {"base_memlock": "8 MB"}, "base_memlock is '8 MB'; expected unlimited, or KiB"),
    ("base", {"base_sysctl": [{"name": "vm.swappiness", "value": 1}]}, "arguments of role base: 'base_sysctl[0].why' is required"),
    ("storage", {"scratch_devices": "nvme0n1"}, "arguments of role nvme_scratch: 'scratch_devices' wants a mapping"),
    ("storage", {"nvme_scratch_layout": "stripe"}, "'nvme_scratch_layout' is 'stripe'; expected one of auto, single, each, raid0"),
    ("fabric", {"infiniband_modules": {"ib": 1}}, "arguments of role infiniband: 'infiniband_modules'"),
    ("fabric", {"nccl_extra": [{"name": "NCCL_DEBUG", "valeu": "INFO"}]}, "arguments of role nccl: 'nccl_extra[0]' has no key 'valeu'"),
    ("fabric", {"infiniband_rxe": "eth9"}, "infiniband_rxe is eth9; n1 has eth0"),
    ("fabric", {"infiniband_max_read_request": 4000}, "arguments of role infiniband: 'infiniband_max_read_request' is 4000"),
    ("fabric", {"nccl_profile": "aws"}, "arguments of role nccl: 'nccl_profile' is 'aws'"),
    ("cache", {"object_cache_share": "half"}, "arguments of role object_cache: 'object_cache_share'"),
    ("hardening", {"hardening_sshd_extra": ["PermitRootLogin no"]}, "arguments of role hardening: 'hardening_sshd_extra'"),
    ("hardening", {"hardening_ssh_kex": "all"}, "'hardening_ssh_kex' is 'all'; expected one of compatible, pq-only"),
    ("hardening", {"hardening_shared_trees": [{"path": "/srv"}]}, "arguments of role hardening: 'hardening_shared_trees[0].group' is required"),
    ("hardening", {"hardening_switches": {"umask": False, "no-root": True}}, "hardening_switches: no rule is called no-root"),
    ("hardening", {"hardening_revert_after": 0}, "hardening_revert_after is 0; expected at least 1 second"),
    ("torch", {"torch_packages": {"torch": 2}}, "arguments of role torch: 'torch_packages'"),
]


@pytest.mark.lab
@pytest.mark.parametrize(("stage", "variables", "reason"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_a_wrong_argument_is_named_with_its_role(provisioned: Stages, stage: str, variables: dict[str, Any], reason: str) -> None:
    done = provisioned(stage, **variables)
    assert (done.code, done.changed) == (2, set())
    assert reason in done.out
