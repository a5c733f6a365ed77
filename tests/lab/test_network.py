from __future__ import annotations

import ipaddress
import json
from pathlib import Path

import pytest

from nodectl.lab import network
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabState


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        ([], 1),
        (["10.77.1.0/24"], 2),
        (["10.77.1.0/24", "10.77.3.0/24"], 2),
        (["10.77.1.5/32"], 2),
        (["10.77.0.0/20"], 16),
        (["192.168.0.0/16", "10.76.0.0/16"], 1),
    ],
)
def test_the_first_network_that_overlaps_nothing_is_taken(used: list[str], expected: int) -> None:
    assert network.free_net([ipaddress.IPv4Network(text) for text in used]) == expected


def test_a_machine_whose_routes_cover_all_of_them_is_told_so() -> None:
    with pytest.raises(LabProblem, match=r"10\.77\.1\.0/24 to 10\.77\.250\.0/24 are in use"):
        network.free_net([ipaddress.IPv4Network("10.0.0.0/8")])


def test_routes_are_read_from_ip_without_the_default_one(monkeypatch: pytest.MonkeyPatch) -> None:
    routes = [{"dst": "default", "gateway": "192.0.2.1"}, {"dst": "10.77.2.0/24"}, {"dst": "10.77.9.1"}]
    monkeypatch.setattr(network, "run", lambda argv: json.dumps(routes))
    assert network._used_networks() == [ipaddress.IPv4Network("10.77.2.0/24"), ipaddress.IPv4Network("10.77.9.1/32")]


def test_names_carry_the_lab_and_fit_the_kernel(tmp_path: Path) -> None:
    one, two = (LabState(lab_id, "dev", tmp_path) for lab_id in ("aaaaaa", "bbbbbb"))
    assert network.host_namespace(one, "n1") == "nodectl-dev-aaaaaa-n1"
    assert network.bridge_namespace(one) != network.bridge_namespace(two)
    assert len(network.controller_link(one)) <= 15
