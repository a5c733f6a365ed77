"""/etc/hosts: the own name leads to one address, everything else stays byte for byte."""

from __future__ import annotations

import pytest

from nodectl.agent.contract import Failed
from nodectl.agent.modules.hosts_entry import diff, wished

OURS = "10.0.0.11"
CASES = [
    # (before, after)
    ("", f"{OURS} gpu\n"),
    ("127.0.0.1 localhost\n", f"127.0.0.1 localhost\n{OURS} gpu\n"),
    (f"{OURS}\tgpu # mine", f"{OURS}\tgpu # mine"),
    (f"{OURS} gpu.rack1 gpu\n", f"{OURS} gpu.rack1 gpu\n"),
    ("127.0.1.1 gpu.rack1 gpu\n", f"{OURS} gpu.rack1 gpu\n"),
    (f"127.0.1.1 gpu.rack1 gpu\n{OURS} other # x\n", f"{OURS} other gpu.rack1 gpu # x\n"),
    ("127.0.1.1 elsewhere\n", f"127.0.1.1 elsewhere\n{OURS} gpu\n"),
    ("127.0.0.1 localhost gpu\n::1 localhost gpu\n", f"127.0.0.1 localhost\n::1 localhost\n{OURS} gpu\n"),
    ("10.0.0.5 gpu.rack1 gpu\n", f"10.0.0.5 gpu.rack1\n{OURS} gpu\n"),
    ("10.0.0.5 gpu\n10.0.0.6 gpu\n", f"{OURS} gpu\n"),
    ("fd00::11 gpu\n", f"fd00::11 gpu\n{OURS} gpu\n"),
    ("10.0.0.5 gpu10 my-gpu gpu.rack1\n", f"10.0.0.5 gpu10 my-gpu gpu.rack1\n{OURS} gpu\n"),
    ("# 10.0.0.5 gpu\n\n  # x\n", f"# 10.0.0.5 gpu\n\n  # x\n{OURS} gpu\n"),
    (f"{OURS} a\n{OURS} gpu\n", f"{OURS} a\n{OURS} gpu\n"),
]


@pytest.mark.parametrize(("before", "after"), CASES)
def test_one_address_and_nothing_else_touched(before: str, after: str) -> None:
    assert wished(before, "gpu", OURS) == after
    assert wished(after, "gpu", OURS) == after


@pytest.mark.parametrize(("name", "address", "reason"), [("gpu", "gpu-2", "is no IPv4 address"), ("a b", OURS, "is no name"), ("a#b", OURS, "is no name")])
def test_what_is_no_entry_is_refused(name: str, address: str, reason: str) -> None:
    with pytest.raises(Failed, match=reason):
        diff({"name": name, "address": address, "path": "/etc/hosts"}, {"text": ""})
