"""RDMA between nodes: perftest's output as recorded, the GID by rule, rails, bars, and the whole step over made-up nodes with faults."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodectl.transport.channel import Lost, Target
from nodectl.verify.group.hunt import Bars, diagnose
from nodectl.verify.group.isolate import PairResult
from nodectl.verify.group.rdma_checks import PORT_SHARE, WRITE_BW, WRITE_LAT, Measured, Rail, Site, floor_of, gid_of, rail_reading, rails_of, site_of
from nodectl.verify.group.rdma_pair import End, Load, measure
from nodectl.verify.judging.judge import judge
from nodectl.verify.judging.measurement import Verdict
from nodectl.verify.parse.perftest import perftest
from nodectl.verify.session import Session
from nodectl.verify.settings import mistakes
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import suite_of
from nodectl.wire.outcome import Outcome
from tests.verify.fleet import FakeFleet, FakeNode, Seen, fabric, node_of
from tests.verify.rdma_answers import DURATION, GBIT, LAT, NEW, OLD, gid, measured, outcome, port, recorded, table

# tool, what the probe gave back, the figure (B/s or s), bytes and iterations
FIGURES: list[tuple[str, dict[str, Any], float, int, int]] = [
    (WRITE_BW, recorded("bw"), 4.84 * 2**20, 65536, 400),
    (WRITE_LAT, recorded("lat"), 4224.01e-6, 2, 200),
    (WRITE_BW, table(OLD, " 65536      5000             11017.66           11016.84"), 11016.84 * 2**20, 65536, 5000),
    (WRITE_BW, table(NEW, " 1048576    5000             392.65             392.61               0.046803"), 392.61 * GBIT, 1048576, 5000),
    (WRITE_BW, table(NEW, " 1048576    5000             0.00               196.30               0.023"), 196.3 * GBIT, 1048576, 5000),
    (WRITE_LAT, table(LAT, " 2       1000          1.62           6.31         1.66     \t       1.67        \t0.09\t\t1.72   \t\t6.31"), 1.66e-6, 2, 1000),
    (WRITE_LAT, table(DURATION, " 2       600000       1.71            584000.1"), 1.71e-6, 2, 600000),
]


@pytest.mark.parametrize(("tool", "ended", "value", "size", "iterations"), FIGURES, ids=range(len(FIGURES)))
def test_figures_of_perftest(tool: str, ended: dict[str, Any], value: float, size: int, iterations: int) -> None:
    found = perftest(tool, ended)
    assert found.error == ""
    assert found.value == pytest.approx(value)
    assert (found.bytes, found.iterations) == (size, iterations)


# what the probe gave back, words of the error
NO_FIGURES: list[tuple[dict[str, Any], str]] = [
    ({"installed": False, "rc": 127}, "ib_write_bw is not installed: apt-get install perftest"),
    ({"rc": -15, "timed_out": True, "stdout": "waiting"}, "did not end within its deadline"),
    ({"rc": 1, "stdout": " Failed to modify QP 17 to RTR\n Unable to Connect the HCA's through the link\n"}, "ended with 1: Failed to modify QP 17 to RTR"),
    ({"rc": 1, "stdout": "Couldn't connect to 10.0.0.1:18515\n", "stderr": "Unable to open file descriptor"}, "Couldn't connect to 10.0.0.1:18515"),
    ({"rc": 1, "stdout": "", "stderr": "IB device mlx5_9 not found\n Unable to find the Infiniband/RoCE device\n"}, "IB device mlx5_9 not found"),
    ({"rc": 1, "stderr": " Couldn't allocate MR\n"}, "Couldn't allocate MR"),
    (recorded("gid", 1), "Found Incompatibility issue with GID types"),
    ({"rc": -9}, "ended with -9"),
    ({"rc": None}, "ended with None"),
    ({}, "ended with None"),
    ({"rc": 0, "stdout": ""}, "printed no result"),
    ({"rc": 0, "stdout": OLD + "\n"}, "printed no result"),
    ({"rc": 0, "stdout": OLD + "\n 65536 5000 nan nan\n"}, "printed no result"),
    ({"rc": 0, "stdout": OLD + "\n 65536 5000 -1 -1\n"}, "printed no result"),
    (table(" #bytes #iterations    speed[furlongs]", " 1 2 3"), "columns that are not known: #bytes, #iterations, speed[furlongs]"),
]


@pytest.mark.parametrize(("ended", "words"), NO_FIGURES, ids=[words for _, words in NO_FIGURES])
def test_what_is_no_figure_says_why(ended: dict[str, Any], words: str) -> None:
    found = perftest(WRITE_BW, ended)
    assert found.value is None
    assert words in found.error


@settings(deadline=None, max_examples=150)
@given(st.text(), st.text(), st.sampled_from([WRITE_BW, WRITE_LAT]), st.sampled_from([0, 1, None, "x"]))
def test_any_output_gives_a_figure_or_a_reason(stdout: str, more: str, tool: str, rc: Any) -> None:
    found = perftest(tool, {"rc": rc, "stdout": f"{stdout}\n{OLD}\n{more}"})
    assert (found.value is None) is bool(found.error)


# -- the GID


# what the port is, the site's pin; the index, whether there is a problem
GIDS: list[tuple[str, dict[str, Any], Any, int, str]] = [
    ("the IPv4 one before the link-local", port(), None, 3, ""),
    ("another order", port(gids=[gid(0, "10.0.0.1"), gid(1, "fe80::1")], matching=[0, 1]), None, 0, ""),
    ("IPv6 only", port(gids=[gid(0, "2001:db8::1"), gid(1, "2001:db8::1")], matching=[1]), None, 1, ""),
    ("two addresses", port(gids=[gid(4, "10.9.0.1"), gid(7, "10.0.0.1")], matching=[4, 7]), None, 4, ""),
    ("none matches", port(matching=[]), None, -1, "has no RoCE v2 GID that is an address of eth1"),
    ("an empty table", port(gids=[], matching=[]), None, -1, "its GIDs are none"),
    ("a match that is not in the table", port(gids=[], matching=[3]), None, -1, "has no RoCE v2 GID"),
    ("the site knows better", port(), 1, 1, ""),
    ("the site says zero", port(), "0", 0, ""),
    ("InfiniBand", port(link_layer="InfiniBand", gids=[gid(0, "fe80::1")], matching=[]), None, -1, ""),
    ("EFA", port(link_layer="Unspecified", driver="efa", gids=[gid(0, "fe80::1")], matching=[]), None, 0, ""),
    ("nonsense", port(gids=[7, None, {"index": "x"}], matching=None), None, -1, "has no RoCE v2 GID"),
]


@pytest.mark.parametrize(("found", "pinned", "index", "words"), [case[1:] for case in GIDS], ids=[case[0] for case in GIDS])
def test_the_gid_is_chosen_by_rule(found: dict[str, Any], pinned: Any, index: int, words: str) -> None:
    chosen, _, problem = gid_of(found, pinned)
    assert chosen == index
    assert words in problem
    assert bool(words) is bool(problem)


def test_rails_are_the_usable_ports_in_their_order() -> None:
    ports = [port("mlx5_0"), port("mlx5_1", usable=False), port("mlx5_2", state="DOWN"), port("mlx5_3", rate=200.0), port("rxe0", driver="", rate=100.0)]
    rails = rails_of({"ports": ports})
    assert [(rail.name, rail.device, rail.hardware) for rail in rails] == [("rail0", "mlx5_0", True), ("rail1", "mlx5_3", True), ("rail2", "rxe0", False)]
    assert [rail.rate for rail in rails] == [50e9, 25e9, 12.5e9]
    assert {rail.connection for rail in rails} == {"RC"}


@pytest.mark.parametrize("values", [{}, {"ports": None}, {"ports": "x"}, {"ports": [None, 7]}, {"ports": [{}]}])
def test_a_probe_that_says_nothing_has_no_rails(values: dict[str, Any]) -> None:
    assert rails_of(values) == []


def test_efa_has_its_own_kind_of_connection() -> None:
    (rail,) = rails_of({"ports": [port("rdmap0s1", driver="efa", link_layer="Unspecified")]})
    assert (rail.connection, rail.gid_index) == ("SRD", 0)


# -- bars

SOFT = Rail("rail0", "rxe0", 1, 1, rate=12.5e9, hardware=False)
HARD = Rail("rail0", "mlx5_0", 1, 3, rate=50e9)


@pytest.mark.parametrize(("rails", "site", "expected"), [
    ([HARD], Site(), PORT_SHARE * 50e9), ([SOFT], Site(), None), ([SOFT], Site(1e5), 1e5), ([HARD], Site(48e9), 48e9), ([HARD], Site(1e9), PORT_SHARE * 50e9),
    ([HARD, Rail("rail1", "mlx5_1", 1, rate=25e9)], Site(), PORT_SHARE * 25e9), ([Rail("rail0", "x", 1)], Site(), None),
])
def test_floor_of_pairs(rails: list[Rail], site: Site, expected: float | None) -> None:
    assert floor_of(rails, site) == (pytest.approx(expected) if expected is not None else None)


def checked(rail: Rail, figure: float | None, latency: float | None = None, site: Site | None = None, sku: str = "H100-SXM", error: str = "") -> dict[str, tuple[Verdict, str]]:
    results = [PairResult(("n1", "n2"), figure, error, rail.name)] if figure is not None or error else []
    diagnosis = diagnose(results, ["n1", "n2"], Bars({"n1": floor_of([rail], site or Site())}))
    latencies = {("n1", rail.name): latency} if latency is not None else {}
    reading = rail_reading("n1", rail, diagnosis, site or Site(), Measured(2**20, 2, "6.06", sku, latencies, {}))
    return {check.name: (check.verdict, check.reason) for check in judge(reading.measurements, (), reading.expectations)}


# rail, B/s, s, site, sku; verdict of bandwidth and of latency ("" where there is no such check)
BARS: list[tuple[str, Rail, float | None, float | None, Site, str, str, str]] = [
    ("a healthy port", HARD, 48e9, 2e-6, Site(), "H100-SXM", "pass", "pass"),
    ("half the rate", HARD, 24e9, 2e-6, Site(), "H100-SXM", "fail", "pass"),
    ("just below", HARD, 44.9e9, 2e-6, Site(), "H100-SXM", "fail", "pass"),
    ("slow answers", HARD, 48e9, 7e-6, Site(), "H100-SXM", "pass", "fail"),
    ("slow answers of a Grace host", HARD, 48e9, 7e-6, Site(), "GB200", "pass", "pass"),
    ("the site allows it", HARD, 48e9, 7e-6, Site(latency=8e-6), "H100-SXM", "pass", "pass"),
    ("the site wants more", HARD, 46e9, 2e-6, Site(47e9), "H100-SXM", "fail", "pass"),
    ("software without a bar", SOFT, 4e6, 5e-3, Site(), "", "unknown", ""),
    ("software above the site's bar", SOFT, 4e6, 5e-3, Site(1e5), "", "pass", ""),
    ("software below it", SOFT, 4e4, 5e-3, Site(1e5), "", "fail", ""),
    ("software with a bar for latency", SOFT, 4e6, 5e-3, Site(1e5, 1e-3), "", "pass", "fail"),
    ("no pair", HARD, None, None, Site(), "H100-SXM", "unknown", ""),
    ("no usable GID", Rail("rail0", "mlx5_0", 1, problem="mlx5_0 has no GID"), None, None, Site(), "", "unknown", ""),
]


@pytest.mark.parametrize(("rail", "figure", "latency", "site", "sku", "bandwidth", "delay"), [case[1:] for case in BARS], ids=[case[0] for case in BARS])
def test_verdict_of_a_rail(rail: Rail, figure: float | None, latency: float | None, site: Site, sku: str, bandwidth: str, delay: str) -> None:
    found = checked(rail, figure, latency, site, sku)
    assert found["rdma.write_bw.rail0"][0] == bandwidth
    assert found.get("rdma.write_lat.rail0", ("", ""))[0] == delay


def test_the_source_and_the_port_s_rate_stand_in_the_reason() -> None:
    _, reason = checked(HARD, 24e9)["rdma.write_bw.rail0"]
    assert "measured 24 GB/s (192 Gb/s), expected at least 45 GB/s (360 Gb/s) (90% of the port's rate, 400 Gb/s)" in reason


@pytest.mark.parametrize(("variables", "words"), [
    ({"rdma_floor": "x"}, "rdma_floor"), ({"rdma_floor": 0}, "a bar of 0 passes everything"), ({"rdma_latency": "5 GB/s"}, "rdma_latency"),
    ({"rdma_gid_index": "three"}, "rdma_gid_index"), ({"rdma_floor": "40 GB/s", "rdma_latency": "4 us", "rdma_gid_index": 3}, ""),
])
def test_variables_are_checked_before_any_node_is_asked(variables: dict[str, Any], words: str) -> None:
    found = mistakes(variables)
    assert bool(found) is bool(words)
    assert all(words in one for one in found)


def test_variables_of_the_site() -> None:
    site = site_of({"rdma_floor": "320 Gb/s", "rdma_latency": "4 us"})
    assert site.floor == pytest.approx(40e9)
    assert site.latency == pytest.approx(4e-6)
    assert site_of({"rdma_floor": ""}) == Site()


# -- one pair


class Ends:
    """Two nodes whose probe_perftest answers as the case says: an outcome, or an exception."""

    def __init__(self, client: Any, server: Any, free_port: Any = None) -> None:
        self.answers = {"n1": client, "n2": server}
        self.free_port = free_port or Outcome(values={"port": 18600})
        self.cancelled = 0
        self.resets: list[str] = []
        self.orders: dict[str, dict[str, Any]] = {}

    def channel(self, target: Target, become: Any = None) -> Any:
        ends = self

        class Pending:
            def __init__(self, found: Any) -> None:
                self.found = found

            def result(self, timeout: float | None = None) -> Outcome:
                if isinstance(self.found, BaseException):
                    raise self.found
                assert isinstance(self.found, Outcome)
                return self.found

            def cancel(self) -> None:
                ends.cancelled += 1

        class Channel:
            def submit(self, step: Any, blobs: Any = None) -> Pending:
                if step.module == "probe_free_port":
                    return Pending(ends.free_port)
                ends.orders[target.host] = dict(step.args)
                return Pending(ends.answers[target.host])

        return Channel()

    def reset(self, host: str) -> None:
        self.resets.append(host)


GOOD = outcome(**table(OLD, " 65536 200 100.0 100.0"))
FAILED = outcome(rc=1, stdout=" Failed to modify QP 17 to RTR\n")


def pair_of(ends: Any, tool: str = WRITE_BW) -> Any:
    one, other = (End(Session(host, Target(host, host), {}, ends), f"10.0.0.{host[1:]}", HARD) for host in ("n1", "n2"))
    return measure(tool, one, other, Load(2**20, 5000, 2), 30.0)


# client, server, port; words of the error, who is gone, whether the server was told to stop
PAIRS: list[tuple[str, Any, Any, Any, str, set[str], int]] = [
    ("well", GOOD, GOOD, None, "", set(), 0),
    ("the server's table is cut", GOOD, outcome(rc=1), None, "", set(), 0),
    ("the client is refused", FAILED, outcome(rc=-15, timed_out=True), None, "Failed to modify QP 17 to RTR", set(), 1),
    ("the server says why", FAILED, outcome(rc=1, stderr=" Couldn't allocate MR"), None, "n2: ib_write_bw ended with 1: Couldn't allocate MR", set(), 1),
    ("not installed on the server", outcome(rc=1, stdout="Couldn't connect to 10.0.0.2:18600"), outcome(installed=False), None, "n2: ib_write_bw is not installed", set(), 1),
    ("not installed on the client", outcome(installed=False), FAILED, None, "ib_write_bw is not installed: apt-get install perftest", set(), 1),
    ("the client's step failed", Outcome(failed=True, msg="the step was ended"), GOOD, None, "ended with 1", set(), 1),
    ("the client is lost", Lost("no byte"), GOOD, None, "n1 was lost", {"n1"}, 1),
    ("the server is lost", GOOD, Lost("no byte"), None, "", {"n2"}, 0),
    ("the server hangs", GOOD, TimeoutError(), None, "", {"n2"}, 0),
    ("no port", GOOD, GOOD, Outcome(failed=True, msg="no port is free"), "n2: no port is free", set(), 0),
    ("no port is said", GOOD, GOOD, Outcome(values={}), "n2:", set(), 0),
    ("lost at the port", GOOD, GOOD, Lost("no byte"), "n2 was lost", {"n2"}, 0),
]


@pytest.mark.parametrize(("client", "server", "free", "words", "gone", "cancelled"), [case[1:] for case in PAIRS], ids=[case[0] for case in PAIRS])
def test_one_pair(client: Any, server: Any, free: Any, words: str, gone: set[str], cancelled: int) -> None:
    ends = Ends(client, server, free)
    result = pair_of(ends)
    assert (result.figure.value is None) is bool(words)
    assert words in result.figure.error
    assert set(result.gone or {}) == gone
    assert ends.cancelled == cancelled


@pytest.mark.parametrize(("tool", "size"), [(WRITE_BW, 2**20), (WRITE_LAT, 2)])
def test_the_orders_to_both_ends(tool: str, size: int) -> None:
    ends = Ends(GOOD, GOOD)
    pair_of(ends, tool)
    assert (ends.orders["n1"]["peer"], ends.orders["n2"]["peer"]) == ("10.0.0.2", "")
    for order in ends.orders.values():
        assert (order["tool"], order["size"], order["iterations"], order["tcp_port"], order["gid_index"], order["device"]) == (tool, size, 5000, 18600, 3, "mlx5_0")


# -- the whole step

SUITE = suite_of(
    """
[[step]]
kind = "fabric"
deadline = 10
[[step]]
kind = "route"
deadline = 10
[[step]]
kind = "rdma"
deadline = 60
rounds = 3
size = "1 MiB"
iterations = 5000
soft_size = "64 KiB"
soft_iterations = 200
queue_pairs = 2
""", "rdma")
RATE = 48e9
Write = Callable[[str, str, int], float]


class Network:
    """Figures of perftest between made-up nodes of ``rails`` ports: ``speed`` of (sender, receiver, rail) in B/s, 0 for a QP that cannot be set up."""

    def __init__(self, count: int, rails: int = 1, speed: Write = lambda _a, _b, _rail: RATE, latency: float = 2e-6, **odd: dict[str, Any]) -> None:
        self.speed, self.latency = speed, latency
        self.nodes = [FakeNode(f"n{index}") for index in range(1, count + 1)]
        self.places: dict[str, str] = {}
        for node in self.nodes:
            self.places[f"10.77.1.{10 + int(node.name[1:])}"] = node.name
            node.answers = {
                "fabric_facts": fabric("roce", [{"name": f"mlx5_{rail}", "usable": True, "reason": ""} for rail in range(rails)]),
                "probe_hca": Outcome(values={"ports": [port(f"mlx5_{rail}", **odd) for rail in range(rails)]}), "probe_perftest": self.perftest,
            }

    def perftest(self, node: FakeNode, args: dict[str, Any]) -> Outcome:
        if not args["peer"]:
            return GOOD
        value = self.speed(node.name, self.places[args["peer"]], int(args["device"].rpartition("_")[2]))
        if not value:
            return FAILED
        return measured(args["tool"], value, self.latency)

    def run(self) -> tuple[dict[str, Verdict], Seen]:
        seen = Seen()
        return verify([node_of(node) for node in self.nodes], SUITE, FakeFleet(*self.nodes), seen), seen


def failing(seen: Seen, host: str) -> dict[str, str]:
    return {str(event.data["name"]): str(event.data["verdict"]) for event in seen.of("check", host) if event.data["verdict"] != "pass"}


def test_healthy_nodes_pass_and_every_pair_is_told() -> None:
    verdicts, seen = Network(4, rails=2).run()
    assert set(verdicts.values()) == {"pass"}
    names = {str(event.data["name"]) for event in seen.of("check", "n1")}
    assert {"rdma.write_bw.rail0", "rdma.write_bw.rail1", "rdma.write_lat.rail0", "rdma.write_lat.rail1"} <= names
    pairs = seen.of("pair")
    # Three rounds of two pairs, two rails, two tools.
    assert len(pairs) == 3 * 2 * 2 * 2
    assert {(event.data["tool"], event.data["unit"]) for event in pairs} == {(WRITE_BW, "B/s"), (WRITE_LAT, "s")}
    assert all(set(event.data) == {"hosts", "rail", "tool", "bytes", "value", "unit", "round", "error"} for event in pairs)
    assert "6.06" in str(seen.of("reading")[-1].data)


# the odd speed between nodes; who does not pass, with the checks that say so; words of the reason or of a warning
FAULTS: list[tuple[str, Write, dict[str, set[str]], str]] = [
    ("one rail of one node", lambda a, b, rail: RATE / 2 if "n2" in (a, b) and rail == 1 else RATE, {"n2": {"rdma.write_bw.rail1"}}, "Pairs without n2 are fine"),
    ("a node on all rails", lambda a, b, rail: RATE / 4 if "n3" in (a, b) else RATE, {"n3": {"rdma.write_bw.rail0", "rdma.write_bw.rail1"}}, "Pairs without n3"),
    ("one way only", lambda a, b, rail: RATE / 4 if a == "n4" and rail == 0 else RATE, {"n4": {"rdma.write_bw.rail0"}}, "only when n4 is sending"),
    ("cannot be reached on one rail", lambda a, b, rail: 0.0 if "n1" in (a, b) and rail == 0 else RATE, {"n1": {"rdma.write_bw.rail0"}}, "Failed to modify QP"),
    ("a path", lambda a, b, rail: RATE / 4 if {a, b} == {"n1", "n2"} and rail == 0 else RATE, {}, "path n1 - n2 on rail rail0"),
    ("a rail's switch", lambda a, b, rail: RATE / 4 if rail == 1 else RATE, {f"n{n}": {"rdma.write_bw.rail1"} for n in range(1, 7)}, "rail rail1: 6 of 6 nodes are slow on it"),
]


@pytest.mark.parametrize(("speed", "blamed", "words"), [case[1:] for case in FAULTS], ids=[case[0] for case in FAULTS])
def test_what_is_slow_is_named(speed: Write, blamed: dict[str, set[str]], words: str) -> None:
    verdicts, seen = Network(6, 2, speed).run()
    assert {host for host, verdict in verdicts.items() if verdict != "pass"} == set(blamed)
    for host, checks in blamed.items():
        assert failing(seen, host) == dict.fromkeys(checks, "fail")
    said = [seen.reasons(host) for host in blamed] + [str(event.data["text"]) for event in seen.of("warning")]
    assert any(words in one for one in said), said


def test_two_nodes_that_cannot_talk_are_unknown_with_the_reason() -> None:
    verdicts, seen = Network(2, 1, lambda _a, _b, _rail: 0.0).run()
    assert set(verdicts.values()) == {"unknown"}
    assert "Failed to modify QP 17 to RTR" in seen.reasons("n1")


def test_a_slow_answer_fails() -> None:
    verdicts, seen = Network(3, latency=20e-6).run()
    assert set(verdicts.values()) == {"fail"}
    assert failing(seen, "n1") == {"rdma.write_lat.rail0": "fail"}


def test_without_perftest_it_is_unknown_and_the_package_is_named() -> None:
    network = Network(3)
    for node in network.nodes:
        node.answers["probe_perftest"] = outcome(installed=False, rc=127)
    verdicts, seen = network.run()
    assert set(verdicts.values()) == {"unknown"}
    assert "apt-get install perftest" in seen.reasons("n2")


def test_where_there_is_no_hca_nothing_is_measured_and_nothing_is_missed() -> None:
    network = Network(3)
    for node in network.nodes:
        node.answers["fabric_facts"] = fabric()
    verdicts, seen = network.run()
    assert set(verdicts.values()) == {"pass"}
    assert not [event for event in seen.of("check") if str(event.data["name"]).startswith("rdma")]
    assert "probe_hca" not in network.nodes[0].asked


@pytest.mark.parametrize(("answer", "words"), [
    (Outcome(failed=True, msg="sysfs is not mounted"), "sysfs is not mounted"), (Outcome(values={"ports": []}), "no RDMA port is usable"),
    (Outcome(values={"ports": [port(state="DOWN")]}), "no RDMA port is usable"), (Outcome(values={"ports": [port(matching=[])]}), "has no RoCE v2 GID"),
])
def test_a_node_that_has_no_rail_is_unknown_and_the_others_are_measured(answer: Outcome, words: str) -> None:
    network = Network(4)
    network.nodes[1].answers["probe_hca"] = answer
    verdicts, seen = network.run()
    assert verdicts == {"n1": "pass", "n2": "unknown", "n3": "pass", "n4": "pass"}
    assert words in seen.reasons("n2")


def test_a_node_that_is_lost_takes_nobody_with_it() -> None:
    network = Network(4)
    network.nodes[2].gone_at = ("probe_perftest", 2)
    verdicts, seen = network.run()
    assert verdicts["n3"] != "pass"
    assert {verdicts[host] for host in ("n1", "n2", "n4")} == {"pass"}
    assert len(seen.of("host.lost", "n3")) == 1


def test_a_pair_whose_time_is_spent_is_unknown_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(2, rails=2)
    started = time.monotonic()
    # The first measurement takes all of the deadline.
    ticks = iter([started, started + 1.0] + [started + 59.0] * 100)
    monkeypatch.setattr("nodectl.verify.group.rdma_step.time.monotonic", lambda: next(ticks))
    verdicts, seen = network.run()
    assert set(verdicts.values()) == {"unknown"}
    assert "deadline was spent" in seen.reasons("n1")
