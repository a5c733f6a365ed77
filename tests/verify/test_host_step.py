"""Steps host and route on a fleet of stand-ins: what trips jobs up is named on its node; what differs over the fleet is named on the odd one out."""

from __future__ import annotations

from typing import Any

import pytest

from nodectl.verify.judging.judge import judge
from nodectl.verify.judging.measurement import Verdict
from nodectl.verify.judging.reading import Reading
from nodectl.verify.node.fleet_traits import agreement, bridges, groups, packages
from nodectl.verify.node.limits import judge_limit
from nodectl.verify.node.traits import Trait
from nodectl.verify.node.xid import CatalogueError, catalogue_of, load_catalogue, sxids, xids
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import Suite, SuiteStep
from nodectl.wire.outcome import Outcome
from tests.verify.fleet import FakeFleet, FakeNode, Seen, address, node_of
from tests.verify.node_answers import HOST, PCI

SUITE = Suite("host", "", tuple(SuiteStep(kind, 20.0) for kind in ("pci", "host")))
ROUTE = Suite("route", "", (SuiteStep("route", 20.0),))
DOCKER = {"docker0": ["172.17.0.1"]}


def node(name: str, variables: dict[str, Any] | None = None, answers: dict[str, Any] | None = None, **host: Any) -> FakeNode:
    return FakeNode(name, answers={"probe_host": Outcome(values={**HOST, **host}), **(answers or {})}, variables=dict(variables or {}))


def judged(nodes: list[FakeNode], suite: Suite = SUITE) -> tuple[dict[str, Verdict], Seen]:
    seen = Seen()
    return verify([node_of(one) for one in nodes], suite, FakeFleet(*nodes), seen), seen


def test_a_healthy_fleet() -> None:
    verdicts, seen = judged([node(name) for name in ("n1", "n2", "n3")])
    assert set(verdicts.values()) == {"pass"}, seen.reasons("n1")
    names = {event.data["name"] for event in seen.of("check", "n1")}
    assert {"host.kernel", "host.memory", "host.own_name", "packages.same", "limits.memlock.service"} <= names
    assert not {"host.governor", "dns.resolvers", "mounts.answer", "host.port_free", "network.bridges", "host.modules_missing", "pci.gpus", "pci.hcas"} & names


CASES: list[tuple[dict[str, Any], dict[str, Any], str, str, str]] = [
    ({"kernel": "6.1.0-37-amd64"}, {}, "host.kernel", "fail", "6.1.0-40-amd64: n1, n3; 6.1.0-37-amd64: n2; drivers are built for one kernel"),
    ({"os": "Debian 12.9"}, {}, "host.os", "fail", "Debian 12.11: n1, n3"),
    ({"python": "3.11.9"}, {}, "host.python", "fail", "3.11.9: n2"),
    ({"cpus": 1}, {}, "host.cpus", "fail", "measured 1, expected 2"),
    ({"cpu_model": "AMD EPYC 7763"}, {}, "host.cpu_model", "fail", "AMD EPYC 7763: n2"),
    ({"numa_nodes": 4}, {}, "host.numa_nodes", "fail", "1: n1, n3; 4: n2"),
    ({"memory": int(24.4 * 2**30)}, {}, "host.memory", "fail", "98% of the fleet's median"),
    ({"memory": int(24.8 * 2**30)}, {}, "host.memory", "pass", "98% of the fleet's median"),
    ({"thp": "always"}, {}, "host.thp", "fail", "always: n2"),
    ({"hugepages": 1024}, {}, "host.hugepages", "fail", "0: n1, n3; 1024: n2"),
    ({"hugepages": 1024}, {"expected_hugepages": 2048}, "host.hugepages", "fail", "measured 1024, expected at least 2048 (expected_hugepages of the inventory"),
    ({"clocksource": "hpet"}, {}, "host.clocksource", "fail", "hpet: n2"),
    ({"governor": ["performance", "powersave"]}, {}, "host.governor", "fail", "measured performance, powersave, expected performance"),
    ({"governor": ["performance"]}, {}, "host.governor", "pass", "expected performance"),
    ({"governor": ["schedutil"]}, {"expected_governor": "schedutil"}, "host.governor", "pass", "expected_governor of the inventory"),
    ({"own_name_on_loopback": "127.0.1.1 n2"}, {}, "host.own_name", "fail", "127.0.1.1 n2"),
    ({"resolvers": [{"address": "10.0.0.53", "error": "no answer within 5 s"}]}, {}, "dns.resolvers", "fail", "10.0.0.53: no answer within 5 s"),
    ({"resolvers": [{"address": "10.0.0.53", "error": ""}]}, {}, "dns.resolvers", "pass", "measured 0"),
    ({"names_unresolved": {"store.local": "does not resolve"}}, {"expected_names": ["store.local"]}, "dns.names", "fail", "store.local: does not resolve"),
    ({"modules_missing": ["rdma_ucm"]}, {"expected_modules": ["rdma_ucm"]}, "host.modules_missing", "fail", "rdma_ucm"),
    ({"mounts_asked": 2, "mounts_hung": {"/nfs": "/nfs did not answer within 5 s"}}, {}, "mounts.answer", "fail", "/nfs: /nfs did not answer within 5 s"),
    ({"port_holder": "python3 (process 4711)"}, {"rendezvous_port": 29500}, "host.port_free", "fail", "python3 (process 4711)"),
    ({"packages": {**HOST["packages"], "libc6": "2.36-8"}}, {}, "packages.same", "fail", "libc6 2.36-8 here (2.36-9: n1, n3; 2.36-8: n2)"),
    ({"packages": {"libc6": "2.36-9"}}, {}, "packages.same", "fail", "python3 missing here"),
    ({"packages": None, "packages_error": "dpkg-query did not end within 5 s"}, {}, "packages.same", "unknown", "dpkg-query did not end within 5 s"),
    ({"service_limits": {"memlock": "8388608"}}, {}, "limits.memlock.service", "fail", "measured 8192 KiB, expected unlimited"),
    ({"service_limits": {"memlock": "8388608"}}, {"base_memlock": 8192}, "limits.memlock.service", "pass", "expected at least"),
    ({"service_limits": {}}, {}, "limits.memlock.service", "unknown", "nothing was said"),
    ({"service_limits": {"memlock": "infinity", "nofile": "1024"}}, {"base_nofile": 65536}, "limits.nofile.service", "fail", "measured 1024, expected at least 65536"),
    ({"kernel": None}, {}, "host.kernel", "unknown", "kernel could not be read"),
]


@pytest.mark.parametrize(("changes", "variables", "check", "verdict", "words"), CASES, ids=[f"{case[2]}-{index}" for index, case in enumerate(CASES)])
def test_one_odd_node_is_named_and_the_others_pass(changes: dict[str, Any], variables: dict[str, Any], check: str, verdict: str, words: str) -> None:
    verdicts, seen = judged([node("n1"), node("n2", variables, **changes), node("n3")])
    assert verdicts == {"n1": "pass", "n2": verdict, "n3": "pass"}, [seen.reasons(name) for name in verdicts]
    found = seen.check("n2", check).data
    assert found["verdict"] == verdict
    assert words in found["reason"]


@pytest.mark.parametrize(("answer", "words"), [
    (Outcome(failed=True, msg="the probe did not end"), "the probe did not end"), (Outcome(values={}), "probe_host gave nothing"),
    (Outcome(values={**HOST, "governor": "performance"}), "expected a list of texts"), (Outcome(values={**HOST, "resolvers": [1]}), "expected a list of mappings"),
    (Outcome(values={key: value for key, value in HOST.items() if key != "cpus"}), "gave nothing for cpus"),
])
def test_a_host_probe_that_is_no_evidence(answer: Outcome, words: str) -> None:
    verdicts, seen = judged([node("n1"), node("n2", answers={"probe_host": answer}), node("n3")])
    assert verdicts == {"n1": "pass", "n2": "unknown", "n3": "pass"}
    assert words in seen.reasons("n2")


def test_in_a_container_the_machines_own_settings_are_not_judged() -> None:
    inside = {"probe_pci": Outcome(values={**PCI, "container": "systemd-nspawn", "devices": [{"kind": "gpu", "address": "0000:01:00.0"}]})}
    verdicts, seen = judged([node("n1", answers=inside, governor=["powersave"]), node("n2", answers=inside, thp="always")])
    assert set(verdicts.values()) == {"pass"}, seen.reasons("n1")
    assert not [event for event in seen.of("check", "n1") if str(event.data["name"]).startswith("pci.")]


def test_modules_that_the_devices_need_are_asked_for() -> None:
    asked: list[dict[str, Any]] = []

    def probe(_node: FakeNode, args: dict[str, Any]) -> Outcome:
        asked.append(args)
        return Outcome(values={**HOST, "modules_missing": ["nvidia_uvm"]})

    devices = [{"kind": "gpu", "address": "0000:01:00.0", "alive": True, "whole": True, "driver": "nvidia", "numa_node": 0, "iommu": "off"},
               {"kind": "hca", "address": "0000:02:00.0", "alive": True, "whole": True, "driver": "mlx5_core", "numa_node": 0, "iommu": "off"}]
    one = node("n1", {"expected_modules": ["gdrdrv"]}, {"probe_pci": Outcome(values={**PCI, "devices": devices}), "probe_host": probe})
    verdicts, seen = judged([one])
    assert asked[0]["modules"] == ["gdrdrv", "nvidia", "nvidia_uvm", "mlx5_core", "mlx5_ib", "ib_uverbs"]
    assert verdicts == {"n1": "fail"}
    assert "nvidia_uvm" in seen.reasons("n1")


# -- bridges


@pytest.mark.parametrize(("setting", "verdict"), [
    ("", "pass"), ("=eth0", "pass"), ("eth", "pass"), ("docker", "fail"), ("=docker0", "fail"), ("=docker", "pass"), ("^docker0,lo", "pass"), ("^lo", "fail"),
    ("eth0,docker0", "fail"), ("^=docker0", "pass"), ("^=docker", "fail"),
])
def test_bridges_with_one_address_on_all_nodes(setting: str, verdict: str) -> None:
    """D39: NCCL's rules of naming interfaces; "^docker0" alone takes lo back in, which is not this check's business."""
    reading = bridges({"n1": DOCKER, "n2": DOCKER, "n3": {}}, {"n1": setting, "n2": "=eth0"})
    checks = {check.host: check for check in judge(reading.measurements, (), reading.expectations)}
    assert {host: check.verdict for host, check in checks.items()} == {"n1": verdict, "n2": "pass"}
    if verdict == "fail":
        assert "docker0 has 172.17.0.1, as on n2" in checks["n1"].reason


def test_other_bridges_are_not_left_out_by_nccl_itself() -> None:
    reading = bridges({name: {"virbr0": ["192.168.122.1"]} for name in ("n1", "n2")}, {"n2": "=eth0"})
    assert verdict_of([reading]) == {"n1": "fail", "n2": "pass"}


def test_bridges_of_their_own_are_nobodys_business() -> None:
    assert bridges({"n1": {"br0": ["10.0.0.1"]}, "n2": {"br0": ["10.0.0.2"]}}, {}).measurements == []


@pytest.mark.parametrize(("variables", "host", "verdict"), [
    ({}, {}, "pass"), ({"torch_env": {"NCCL_SOCKET_IFNAME": "=eth0"}}, {}, "pass"), ({}, {"nccl_interface": "=eth0"}, "pass"),
    ({"torch_env": {"NCCL_SOCKET_IFNAME": "docker0"}}, {"nccl_interface": "=eth0"}, "fail"),
])
def test_the_fleet_is_led_past_docker0_or_not(variables: dict[str, Any], host: dict[str, Any], verdict: Verdict) -> None:
    verdicts, seen = judged([node(name, variables, bridges=DOCKER, **host) for name in ("n1", "n2")])
    assert verdicts == {"n1": verdict, "n2": verdict}, seen.reasons("n1")


# -- path MTU


def route(name: str) -> Outcome:
    routes = [{"peer": f"n{index}", "address": address(f"n{index}"), "interface": "eth0"} for index in range(4, 9)]
    return Outcome(values={"interface": "eth0", "source": address(name), "mtu": 9000, "routes": routes})


def paths(*found: tuple[bool, bool]) -> Outcome:
    return Outcome(values={"peers": [{"address": f"10.0.0.{index}", "small": small, "full": full, "error": ""} for index, (small, full) in enumerate(found)]})


@pytest.mark.parametrize(("answer", "verdict", "words"), [
    (paths((True, True), (True, True), (True, True)), "pass", "packets of 9000 bytes, the MTU of eth0, get to peers and back"),
    (paths((True, False), (True, True), (True, False)), "pass", "packets of 9000 bytes"),
    (paths((True, False), (True, False), (True, False)), "fail", "packets of 9000 bytes do not get to 10.0.0.0, 10.0.0.1, 10.0.0.2 and back, small ones do"),
    (paths((True, False), (False, False)), "fail", "do not get to 10.0.0.0 and back"),
    (paths((False, False), (False, False)), "unknown", "10.0.0.0: no answer to a small packet"),
    (paths(), "unknown", "ICMP is blocked"),
    (Outcome(failed=True, msg="it did not end"), "unknown", "it did not end"),
    (Outcome(values={}), "unknown", "gave nothing for peers"),
])
def test_paths_and_their_mtu(answer: Outcome, verdict: str, words: str) -> None:
    orders: list[dict[str, Any]] = []

    def probe(_node: FakeNode, args: dict[str, Any]) -> Outcome:
        orders.append(args)
        return answer

    nodes = [FakeNode(name, answers={"probe_route": route(name)}) for name in ("n1", "n3")]
    nodes.append(FakeNode("n2", answers={"probe_route": route("n2"), "probe_path_mtu": probe}))
    verdicts, seen = judged(nodes, ROUTE)
    assert verdicts["n2"] == verdict, seen.reasons("n2")
    assert orders[0]["peers"] == [address("n4"), address("n6"), address("n8")]
    assert words in "; ".join(str(event.data["reason"]) for event in seen.of("check", "n2"))


# -- what must be alike


def text(value: str, **more: Any) -> Trait:
    return Trait(value, "text", "a probe", "because", **more)


def verdict_of(readings: list[Reading]) -> dict[str, str]:
    return {check.host: check.verdict for reading in readings for check in judge(reading.measurements, (), reading.expectations)}


@pytest.mark.parametrize(("values", "expected"), [
    ("aab", "ppf"), ("aaa", "ppp"), ("ab", "ff"), ("abc", "fff"), ("aabb", "ffff"), ("aaabb", "pppff"), ("a", ""),
])
def test_the_majority_is_right_and_a_tie_names_both_sides(values: str, expected: str) -> None:
    found = verdict_of(agreement({f"n{index}": {"m": text(value)} for index, value in enumerate(values)}))
    assert "".join(found[host][0] for host in sorted(found)) == expected


@pytest.mark.parametrize(("lone", "expected"), [("omit", {}), ("unknown", {"n1": "unknown"}), ("accept", {"n1": "pass"})])
def test_a_single_node(lone: Any, expected: dict[str, str]) -> None:
    assert verdict_of(agreement({"n1": {"m": text("a", lone=lone)}})) == expected


def test_only_nodes_that_have_it_are_compared() -> None:
    assert verdict_of(agreement({"n1": {"m": text("a")}, "n2": {}, "n3": {"m": text("a")}})) == {"n1": "pass", "n3": "pass"}


def test_a_large_fleet_is_summed_up() -> None:
    values: dict[str, float | str] = {**{f"n{index}": "6.1" for index in range(1000)}, "odd": "6.2"}
    assert groups(values) == "6.1: n0, n1, n2, n3, n4, n5 and 994 more; 6.2: odd"
    assert groups({"a": 8.0, "b": ""}) == "8: a; none: b"


def test_packages_without_a_majority_differ_everywhere() -> None:
    reading = packages({"n1": {"libnccl2": "1"}, "n2": {"libnccl2": "2"}})
    assert verdict_of([reading]) == {"n1": "fail", "n2": "fail"}
    many = {name: {f"nvidia-{index}": name for index in range(20)} for name in ("n1", "n2")}
    assert "and 14 more" in packages(many).measurements[0].detail
    assert packages({"n1": {"a": "1"}}).measurements == []


# -- limits


@pytest.mark.parametrize(("found", "wanted", "verdict"), [
    ({"soft": -1, "hard": -1}, "unlimited", "pass"), ("infinity", "unlimited", "pass"), ("65536", "64", "pass"), ("65535", "64", "fail"), (65536, 64, "pass"),
    ({"soft": 8 * 2**20}, "unlimited", "fail"), (None, "unlimited", "unknown"), ("lots", "unlimited", "unknown"), (True, "unlimited", "unknown"), ({}, 64, "unknown"),
])
def test_limits(found: Any, wanted: Any, verdict: str) -> None:
    reading = Reading()
    judge_limit(reading, ("n1",), "limits.memlock.service", found, wanted, "B", 1024.0, "why")
    assert verdict_of([reading]) == {"n1": verdict}


# -- Xid


def xid(code: int, message: str = "") -> dict[str, Any]:
    return {"kind": "xid", "pci": "0000:cb:00.0", "code": code, "text": message}


@pytest.mark.parametrize(("code", "action"), [(79, "reboot"), (54, "inspect"), (48, "reset"), (119, "reset"), (74, "reset"), (13, "restart"), (31, "restart"), (63, "ignore"), (94, "restart"), (95, "reset"), (145, "workflow"), (78, "update")])
def test_actions_of_the_catalogue(code: int, action: str) -> None:
    advice = load_catalogue().codes[code]
    assert advice.action == action
    assert advice.severe == (action not in ("restart", "ignore"))
    assert advice.source.endswith(")")


@pytest.mark.parametrize(("message", "severe", "mild"), [
    ("pid=1, name=x, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "do what the message itself names: GPU Reset Required", ""),
    ("pid=1, name=x, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "", "no action needed any more"),
    ("Node Reboot Required", "do what the message itself names: Node Reboot Required", ""),
])
def test_the_action_that_xid_154_names(message: str, severe: str, mild: str) -> None:
    found = xids([xid(154, message)], load_catalogue())
    assert severe in "; ".join(found.severe)
    assert mild in "; ".join(found.mild)
    assert bool(found.severe) == bool(severe)


def test_many_of_one_kind_are_one_sentence() -> None:
    found = xids([xid(48)] * 3 + [xid(999)] * 2 + [{"kind": "link_down"}], load_catalogue())
    assert found.severe == ("GPU 0000:cb:00.0: Xid 48 (3 times), drain the node and reset the GPU (nvidia-smi -r); if it comes back, replace the GPU",)
    assert found.unlisted == ("GPU 0000:cb:00.0: Xid 999 (2 times), which the catalogue does not know",)


@pytest.mark.parametrize(("code", "message", "severe"), [
    (20034, "Fatal, Link 30 LTSSM Fault Up", True), (28006, "Non-fatal, Link 46 MC TS", False), (12023, "Fatal, said of healthy machines", False), (99999, "something", True),
])
def test_messages_of_switches(code: int, message: str, severe: bool) -> None:
    found = sxids([{"kind": "sxid", "device": "nvidia-nvswitch0", "code": code, "text": message}], load_catalogue())
    assert (bool(found.severe), bool(found.mild)) == (severe, not severe)


GROUP = '[[group]]\naction = "reset"\nsevere = true\ntext = "x"\ncodes = [1]\nsource = "s"\ndate = "2026-08"\n'


@pytest.mark.parametrize(("content", "words"), [("[[group", "not TOML"), (GROUP + GROUP, "Xid 1 stands in two groups"), (GROUP.replace('source = "s"\n', ""), "missing source")])
def test_a_catalogue_that_may_not_be_used(content: str, words: str) -> None:
    with pytest.raises(CatalogueError) as error:
        catalogue_of(content)
    assert words in str(error.value)
