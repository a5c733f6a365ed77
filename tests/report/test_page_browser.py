"""report.html in headless Chromium: real clicks and keys, what a screen reader finds, how wide it is, and that nothing is asked for."""

from __future__ import annotations

import importlib.resources
import json
import random
from pathlib import Path
from typing import Any

import pytest

from nodectl.report.fold import fold
from nodectl.report.page import page
from nodectl.wire.event import Event
from tests.report.browser import Browser, Tab
from tests.report.conftest import written
from tests.report.fleet import fleet, measured, names, sweeps

pytestmark = pytest.mark.servers

SMALL = 20


def bad_of(events: list[Event]) -> list[str]:
    return [event.host for event in events if event.kind == "verdict" and event.data["verdict"] == "fail"]


@pytest.fixture
def shown(tab: Tab, tmp_path: Path) -> tuple[Tab, list[str]]:
    """A page of twenty nodes, two of them bad: (the tab, the bad nodes)."""
    events = fleet(SMALL, bad=2)
    tab.open(written(tmp_path, events))
    return tab, bad_of(events)


def unfold(tab: Tab) -> None:
    """Every fold opened, and what is made then is made."""
    tab.run("(() => { for (const fold of document.querySelectorAll('details')) fold.open = true; })()")
    tab.run("new Promise(done => setTimeout(done, 20))")


def cell(name: str) -> str:
    return f".cell[aria-label^={json.dumps(name + ',')}]"


def test_first_of_all_the_verdict_the_nodes_the_reason_and_what_to_do(shown: tuple[Tab, list[str]]) -> None:
    tab, bad = shown
    assert "2 of 20 nodes are not ready" in tab.text("h1")
    top = tab.text("main section")
    for name in bad:
        assert name in top
    assert "expected at least 24 GB/s" in top
    assert "18 nodes are handed off" in top
    assert "nodectl verify hosts.yaml" in top


def test_a_click_on_a_node_shows_its_failing_check(shown: tuple[Tab, list[str]]) -> None:
    tab, bad = shown
    tab.click(cell(bad[1]))
    assert bad[1] in tab.text("#node h2")
    first = tab.text("#node table tbody tr")
    assert "fail" in first
    assert "network.pairs" in first
    assert "12 GB/s" in first
    assert "24 GB/s" in first
    assert "Source: this fleet" in first
    assert "27 checks passed" in tab.text("#node")
    assert "Not passed (3)" in tab.text("#node")
    assert tab.run(f"document.querySelector({json.dumps(cell(bad[1]))}).getAttribute('aria-selected')") == "true"


def test_raw_output_is_there_when_asked_for(shown: tuple[Tab, list[str]]) -> None:
    tab, bad = shown
    tab.click(cell(bad[0]))
    assert "Raw output" in tab.text("#node")
    tab.click("#node tbody details summary")
    tab.wait("document.querySelector('#node pre') !== null")
    assert f"{bad[0]} network.pairs" in tab.text("#node pre")


def test_the_worst_node_is_open_from_the_start(shown: tuple[Tab, list[str]]) -> None:
    tab, bad = shown
    assert any(name in tab.text("#node h2") for name in bad)


@pytest.mark.parametrize(("typed", "left"), [
    ("rack2", 4), ("gpu-0003", 1), ("GPU-0003", 1), ("0003,0004", 2), ("0003 0004", 2), ("nobody", 0), ("", 20), (".*", 0),
])
def test_filter_by_node(shown: tuple[Tab, list[str]], typed: str, left: int) -> None:
    tab, _ = shown
    tab.click("#terms")
    tab.type(typed or "x")
    if not typed:
        tab.key("Backspace")
    wanted = "20 nodes" if left == 20 else f"{left} of 20 nodes"
    tab.wait(f"document.querySelector('#shown').textContent === {json.dumps(wanted)}")
    assert tab.run("[...document.querySelectorAll('.cell')].filter(cell => !cell.hidden).length") == left
    assert tab.text("#live").startswith(wanted)


def test_the_filter_reaches_the_matrix_the_storage_and_the_checks(shown: tuple[Tab, list[str]]) -> None:
    tab, bad = shown
    tab.click("#terms")
    tab.type(bad[0])
    tab.wait("document.querySelector('#shown').textContent.startsWith('1 of')")
    assert bad[0] in tab.text("#node h2")
    assert f"{bad[0]} (19 of 19)" in tab.text("#worst-pairs")
    assert tab.text("#checks").count("1 fail") == 3  # pairs and two of the disk
    assert "Not passed: " + bad[0] in tab.text("#storage")
    sizes = tab.run("[...document.querySelectorAll('#storage .figure')].length")
    assert sizes == 8


def test_pairs_are_those_of_the_nodes_shown(shown: tuple[Tab, list[str]]) -> None:
    tab, bad = shown
    good = next(name for name in names(SMALL) if name not in bad)
    pairs = "[...document.querySelectorAll('#worst-pairs tbody th')].map(one => one.innerText)"
    tall = tab.run("document.querySelector('#matrix').clientHeight")
    assert [one for one in tab.run(pairs) if good in one] != tab.run(pairs)
    tab.click("#terms")
    tab.type(good)
    tab.wait("document.querySelector('#shown').textContent.startsWith('1 of')")
    assert [one for one in tab.run(pairs) if good not in one] == []
    assert len(tab.run(pairs)) == 12
    assert "19 pairs measured" in tab.text("#pairs-about")
    assert "2 below 80 %" in tab.text("#pairs-about")
    assert tab.run("document.querySelector('#matrix').clientHeight") < tall
    tab.click("#terms")
    tab.key("Backspace", times=len(good))
    tab.wait("document.querySelector('#shown').textContent === '20 nodes'")
    assert "190 pairs measured" in tab.text("#pairs-about")


def test_verdicts_can_be_hidden(shown: tuple[Tab, list[str]]) -> None:
    tab, bad = shown
    tab.click("#verdicts input[value=pass]")
    tab.wait("document.querySelector('#shown').textContent === '2 of 20 nodes'")
    assert tab.run("[...document.querySelectorAll('.cell:not([hidden])')].map(cell => cell.getAttribute('aria-label').split(',')[0])") == sorted(bad)


def test_keyboard_only(shown: tuple[Tab, list[str]]) -> None:
    """From the top of the page to a node's checks, and on to the matrix, without a mouse."""
    tab, _ = shown
    focus = "document.activeElement"
    tab.key("Tab")
    assert tab.run(f"{focus}.className") == "skip"
    tab.key("Enter")
    tab.wait(f"{focus}.id === 'rack'")
    tab.key("Tab")
    start = tab.run(f"{focus}.dataset.place")
    assert tab.run(f"{focus}.classList.contains('fail')") is True
    tab.key("Home")
    assert tab.run(f"{focus}.dataset.place") == "0"
    tab.key("ArrowRight", times=2)
    assert tab.run(f"{focus}.dataset.place") == "2"
    tab.key("ArrowLeft")
    tab.key("ArrowDown")
    below = tab.run(f"{focus}.dataset.place")
    assert below not in ("1", "0")
    tab.key("ArrowUp")
    assert tab.run(f"{focus}.dataset.place") == "1"
    tab.key("End")
    assert tab.run(f"{focus}.dataset.place") == str(SMALL - 1)
    tab.key("Enter")
    assert names(SMALL)[-1] in tab.text("#node h2")
    assert tab.run(f"{focus}.id") == "node-title", "the focus is where the news is"
    tab.key("Tab", shift=True)
    assert tab.run(f"{focus}.dataset.place") == str(SMALL - 1), "and one step back leads to the rack again"
    assert start is not None
    for _ in range(30):
        tab.key("Tab")
        if tab.run(f"{focus}.id") == "matrix":
            break
    assert tab.run(f"{focus}.id") == "matrix", "the matrix is a stop of the Tab key"
    tab.key("ArrowRight")
    assert tab.text("#matrix-cell").startswith(f"{names(SMALL)[0]} ↔ {names(SMALL)[1]}: ")
    tab.key("Enter")
    assert names(SMALL)[0] in tab.text("#node h2")


def test_focus_can_be_seen(shown: tuple[Tab, list[str]]) -> None:
    tab, _ = shown
    tab.key("Tab", times=3)
    assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_what_a_screen_reader_finds(shown: tuple[Tab, list[str]]) -> None:
    tab, bad = shown
    spoken = tab.spoken()
    roles = [role for role, _ in spoken]
    for wanted in ("banner", "main", "search", "listbox", "table", "heading", "searchbox"):
        assert wanted in roles, wanted
    options = [name for role, name in spoken if role == "option"]
    assert len([name for name in options if "pass" in name or "fail" in name]) == SMALL
    assert any(name.startswith(f"{bad[0]}, fail: network.pairs") for name in options)
    assert any("Matrix of pairs" in name and "190 pairs measured" in name for _, name in spoken)
    assert any(role == "group" and name == "disk.scratch.seq_read" for role, name in spoken)
    headings = [name for role, name in spoken if role == "heading"]
    assert headings[0].endswith("2 of 20 nodes are not ready: " + ", ".join(bad))


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_axe_finds_nothing(browser: Browser, tmp_path: Path, scheme: str, width: int) -> None:
    """Contrast of 4.5:1, names, roles, order: with everything folded open."""
    axe = (importlib.resources.files("axe_core_python") / "axe.min.js").read_text()
    events = everything()
    with browser.tab(width, 800) as tab:
        tab.prefer(color_scheme=scheme)
        tab.open(written(tmp_path, events))
        unfold(tab)
        tab.run(f"(() => {{ {axe}; window.axe = axe; }})()")
        found: list[dict[str, Any]] = tab.run("axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(({id, nodes}) => ({id, where: nodes.slice(0, 3).map(one => one.html.slice(0, 200) + ' ' + one.failureSummary)})))")
    assert found == []


def everything() -> list[Event]:
    """One node of every state, and checks of every verdict."""
    hosts = names(6)
    waiver = {"who": "ops", "why": "the new cable is on its way", "until": "2027-01-31"}
    events = fleet(6, bad=0)
    end = events.pop()
    events += [
        measured(hosts[4], "network.pairs", 12e9, 24e9, 100, "this fleet"),
        Event("verdict", end.at, hosts[4], {"verdict": "fail", "reasons": ["network.pairs: measured 12 GB/s, expected at least 24 GB/s"]}),
        Event("check", end.at, hosts[0], {"name": "clock.offset", "verdict": "skipped", "reason": "0.9 s", "value": 0.9, "unit": "s", "floor": 0.5, "waiver": waiver, "step": "clock", "simulated": True, "raw": "chronyc tracking"}),
        Event("check", end.at, hosts[1], {"name": "gpu.ecc", "verdict": "unknown", "reason": "nvidia-smi did not answer within 10 s", "simulated": False}),
        Event("verdict", end.at, hosts[0], {"verdict": "skipped", "reasons": ["clock.offset: 0.9 s"]}),
        Event("verdict", end.at, hosts[1], {"verdict": "unknown", "reasons": ["gpu.ecc: nvidia-smi did not answer"]}),
        Event("host.unreachable", end.at, hosts[2], {"reason": "connection refused", "hint": "is sshd running?"}),
        Event("host.lost", end.at, hosts[3], {"reason": "silent for 30 s"}),
        Event("warning", end.at, hosts[4], {"text": "vm.max_map_count is 65530"}),
        Event("pair", end.at, "", {"hosts": [hosts[0], hosts[1]], "rail": "mlx5_0", "tool": "ib_write_bw", "bytes": 65536, "value": 24e9, "unit": "B/s", "round": 1, "error": ""}),
        Event("pair", end.at, "", {"hosts": [hosts[1], hosts[0]], "rail": "mlx5_0", "tool": "ib_write_bw", "bytes": 65536, "value": None, "unit": "B/s", "round": 1, "error": "QP refused"}),
        end,
    ]
    return events


def test_every_state_has_its_word_and_its_sign(tab: Tab, tmp_path: Path) -> None:
    tab.open(written(tmp_path, everything()))
    found = tab.run("[...document.querySelectorAll('.cell')].map(cell => [cell.getAttribute('aria-label').split(',')[1].split(':')[0].trim(), cell.querySelector('.sign').textContent])")
    words = dict(found)
    assert words["skipped"] == "⊘"
    assert words["unknown"] == "?"
    assert words["unreachable"] == "✕"
    assert words["lost"] == "✕"
    tab.click(cell(names(6)[0]))
    assert "waived by ops until 2027-01-31: the new cable is on its way" in tab.text("#node")
    assert "simulated" in tab.text("#node")
    tab.click(cell(names(6)[2]))
    assert "connection refused" in tab.text("#node")
    assert "is sshd running?" in tab.text("#node")
    assert "vm.max_map_count" in tab.text("#warnings")


def test_several_kinds_of_pairs_are_chosen_from_a_list(tab: Tab, tmp_path: Path) -> None:
    tab.open(written(tmp_path, everything()))
    tab.run("(() => { const pick = document.querySelector('#layer'); pick.value = '1'; pick.dispatchEvent(new Event('change')); })()")
    assert "ib_write_bw, rail mlx5_0, 64 KiB: 1 pair measured" in tab.text("#pairs-about")
    assert "1 failed" in tab.text("#pairs-about")
    assert "QP refused" in tab.text("#worst-pairs")


@pytest.mark.parametrize("bad", [0, 2, 19])
def test_no_width_scrolls_sideways(browser: Browser, tmp_path: Path, bad: int) -> None:
    file = written(tmp_path, fleet(SMALL, bad=bad))
    with browser.tab() as tab:
        for width in (320, 360, 412, 768, 1280):
            tab.resize(width, 800)
            tab.open(file)
            unfold(tab)
            assert tab.run("document.documentElement.scrollWidth") <= width, width


def test_the_phone_is_turned(tab: Tab, tmp_path: Path) -> None:
    tab.resize(360, 740)
    tab.open(written(tmp_path, fleet(SMALL)))
    narrow = tab.run("document.querySelector('#matrix').clientWidth")
    tab.resize(800, 360)
    tab.wait(f"document.querySelector('#matrix').clientWidth > {narrow}")
    tab.resize(360, 740)
    tab.wait(f"document.querySelector('#matrix').clientWidth === {narrow}")
    tab.wait("document.documentElement.scrollWidth <= 360")


def drawn(tab: Tab, selector: str) -> str:
    """The picture on a canvas, as it stands in its data address."""
    return str(tab.run(f"document.querySelector({json.dumps(selector)}).toDataURL()"))


def test_the_figures_are_drawn_and_follow_the_theme(tab: Tab, tmp_path: Path) -> None:
    tab.prefer(color_scheme="light")
    tab.open(written(tmp_path, fleet(SMALL)))
    places = ("#matrix", "#sweeps canvas", "#storage canvas")
    light = {place: drawn(tab, place) for place in places}
    for place, picture in light.items():
        empty = tab.run(f"(() => {{ const old = document.querySelector({json.dumps(place)}), made = document.createElement('canvas'); made.width = old.width; made.height = old.height; return made.toDataURL(); }})()")
        assert picture != empty, place
    tab.prefer(color_scheme="dark")
    tab.wait(f"document.querySelector('#storage canvas').toDataURL() !== {json.dumps(light['#storage canvas'])}")
    assert {place for place in places if drawn(tab, place) == light[place]} == set()


@pytest.mark.parametrize("wish", ["reduce", "no-preference"])
def test_nothing_moves_by_itself(tab: Tab, tmp_path: Path, wish: str) -> None:
    """Nobody has to ask for a still page."""
    tab.prefer(reduced_motion=wish)
    tab.open(written(tmp_path, fleet(4)))
    tab.click(".cell")
    assert tab.run("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    assert tab.run("document.getAnimations().length") == 0


def test_busbw_over_size_with_its_floor(shown: tuple[Tab, list[str]]) -> None:
    tab, _ = shown
    assert "Highest 369.6 GB/s at 8 GiB. Floor 333 GB/s, reached (NVIDIA, 2026-03)." in tab.text("#sweeps")
    assert "floor 333 GB/s" in tab.text("#sweeps .u-legend")
    tab.run("(() => { const pick = document.querySelector('#family'); pick.value = '2'; pick.dispatchEvent(new Event('change')); })()")
    assert "alltoall float32" in tab.text("#sweeps h3")
    tab.click("#sweeps details summary")
    tab.wait("document.querySelectorAll('#sweeps details tbody tr').length === 62")
    assert "times the median" in tab.text("#sweeps details tbody tr")


def test_a_floor_that_is_not_reached_is_said(tab: Tab, tmp_path: Path) -> None:
    nodes = names(2)
    sweep = next(sweeps(nodes, random.Random(1)))
    slow = Event("sweep", 2.0, "", {**sweep.data, "floor": 1e12, "rows": [{**row, "wrong": 3} for row in sweep.data["rows"]]})
    tab.open(written(tmp_path, [Event("run.start", 1.0, "", {"command": "verify", "hosts": nodes}), slow]))
    assert "not reached" in tab.text("#sweeps")
    assert "186 wrong values!" in tab.text("#sweeps")


def test_an_address_opens_its_node(tab: Tab, tmp_path: Path) -> None:
    file = written(tmp_path, fleet(SMALL, bad=0))
    tab.open(file, f"#node={names(SMALL)[7]}")
    assert names(SMALL)[7] in tab.text("#node h2")


def test_a_link_at_the_top_opens_its_node(shown: tuple[Tab, list[str]]) -> None:
    tab, bad = shown
    tab.click("main table.why tbody tr:nth-child(2) a")
    tab.wait(f"document.querySelector('#node h2').textContent.includes({json.dumps(bad[1])})")


@pytest.mark.parametrize("hash_", ["#node=%E0%A4%A", "#node=nobody", "#node=", "#node=__proto__", "#<img src=x onerror=alert(1)>"])
def test_an_address_of_nobody_does_nothing(tab: Tab, tmp_path: Path, hash_: str) -> None:
    tab.open(written(tmp_path, fleet(4, bad=0)), hash_)
    assert tab.text("#node") == ""


# What a node, a file or a person may have named or printed.
HOSTILE = [
    "</script><script>window.owned = 1</script>",
    "<img src=x onerror='window.owned = 1'>",
    "\"><svg onload=window.owned=1>",
    "<!--<script>",
    "]]></script><script>window.owned=1//",
    "javascript:window.owned=1",
    "{{7*7}}${7*7}$headline",
    "a\u2028b\u2029c\u202egnp.exe\u0000\u001b[31m",
    "__proto__", "constructor", "&lt;b&gt;&amp;#39;", "%27%22%3E", "\ud800 half", "=cmd|' /C calc'!A0",
    "x" * 400,
]


def hostile_run(text: str) -> list[Event]:
    """The text in every place that somebody else fills."""
    good = "n1"
    check = {"name": text, "verdict": "fail", "value": text, "unit": "text", "floor": text, "reason": text, "source": text, "step": text, "simulated": False, "raw": text}
    waiver = {"who": text, "why": text, "until": text}
    sweep = {"hosts": [text, good], "op": text, "dtype": text, "redop": text, "backend": text, "ranks": 2, "in_place": False, "floor": 1.0, "source": text,
             "rows": [{"bytes": 8, "time": 1.0, "algbw": 1.0, "busbw": 1.0, "wrong": 0, "in_place": False, "ranks": [1.0, 2.0]}]}
    return [
        Event("run.start", 1.0, "", {"command": text, "run_id": text, "version": text, "check": False, "inventory": [text], "hosts": [text, good]}),
        Event("suite", 1.0, "", {"name": text, "text": text, "floors": []}),
        Event("check", 1.0, text, check),
        Event("check", 1.0, text, {**check, "name": "disk.x", "value": 1.0, "unit": "B/s", "floor": 2.0}),
        Event("check", 1.0, good, {**check, "verdict": "skipped", "waiver": waiver}),
        Event("verdict", 1.0, text, {"verdict": "fail", "reasons": [text]}),
        Event("host.lost", 1.0, good, {"reason": text, "hint": text}),
        Event("warning", 1.0, text, {"text": text}),
        Event("pair", 1.0, "", {"hosts": [text, good], "rail": text, "tool": text, "bytes": 8, "value": None, "unit": text, "round": 1, "error": text}),
        Event("sweep", 1.0, "", sweep),
        Event("handlers.pending", 1.0, text, {"handlers": [text]}),
        Event("handoff", 1.0, "", {"path": text, "hosts": [text], "excluded": [], "world_size": text}),
        Event("run.end", 2.0, "", {"exit_code": 4, "seconds": 1.0}),
    ]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_that_a_node_says_is_run(tab: Tab, tmp_path: Path, text: str) -> None:
    tab.open(written(tmp_path, hostile_run(text)))
    unfold(tab)
    tab.click(".cell")
    unfold(tab)
    assert tab.run("window.owned ?? null") is None
    assert tab.run("document.querySelectorAll('script').length") == 3
    assert tab.run("document.querySelectorAll('img, svg, iframe, object, embed, form').length") == 0
    assert tab.run("document.querySelectorAll('.cell').length") == 2
    assert tab.run("document.documentElement.scrollWidth") <= 1280


def test_the_policy_stops_a_script_that_got_in_anyhow(browser: Browser, tmp_path: Path) -> None:
    """Were there a hole in our escaping, the browser would still run nothing and fetch nothing."""
    text = page(fold(fleet(2, bad=0)))
    holed = text.replace("</header>", "<script>window.owned = 1</script><img src='http://127.0.0.1:9/x.png' onerror='window.owned = 2'><link rel='stylesheet' href='http://127.0.0.1:9/x.css'></header>")
    assert holed != text
    file = tmp_path / "holed.html"
    file.write_text(holed)
    with browser.tab() as tab:
        tab.open(file)
        assert tab.run("window.owned ?? null") is None
        assert len([said for said in tab.complaints if "Content Security Policy" in said]) >= 3
        assert tab.text("h1").endswith("All 2 nodes are proven ready"), "and the page itself still works"


def test_a_thousand_nodes(tab: Tab, tmp_path: Path) -> None:
    """30 checks each, three rounds of pairs, 2 kB of output per figure: below 5 MB, and drawn within seconds on two busy cores."""
    events = fleet(1000, bad=16, raw=2000, rounds=3)
    file = written(tmp_path, events)
    assert file.stat().st_size < 5_000_000
    took = tab.open(file)
    assert took < 20
    assert tab.run("document.querySelectorAll('.cell').length") == 1000
    assert "1500 pairs measured" in tab.text("#pairs-about")
    assert "16 of 1000 nodes are not ready" in tab.text("h1")
    tab.click("#terms")
    tab.type(bad_of(events)[3])
    tab.wait("document.querySelector('#shown').textContent === '1 of 1000 nodes'", 20)
    assert "network.pairs" in tab.text("#node table tbody tr")
    assert f"{bad_of(events)[3]} (3 of 3)" in tab.text("#worst-pairs")


def test_without_scripts_the_verdict_still_stands(browser: Browser, tmp_path: Path) -> None:
    events = fleet(SMALL)
    with browser.tab() as tab:
        tab.send("Emulation.setScriptExecutionDisabled", value=True)
        tab.load(written(tmp_path, events))
        spoken = [name for _, name in tab.spoken()]
    text = " ".join(spoken)
    assert "2 of 20 nodes are not ready" in text
    assert "need JavaScript" in text
    assert all(name in text for name in bad_of(events))


def test_printed_on_paper_it_is_light(tab: Tab, tmp_path: Path) -> None:
    tab.open(written(tmp_path, fleet(4)))
    tab.send("Emulation.setEmulatedMedia", media="print")
    assert tab.run("getComputedStyle(document.querySelector('.filter')).display") == "none"
    assert tab.text("h1") != ""


def test_one_measured_node(tab: Tab, tmp_path: Path) -> None:
    """The smallest fleet: no pairs, no sweep."""
    events = [Event("run.start", 1.0, "", {"command": "verify", "hosts": ["n1"]}), measured("n1", "disk.scratch.seq_read", 1e9, 2e9, 50, "s"), Event("verdict", 1.0, "n1", {"verdict": "fail", "reasons": ["slow"]})]
    tab.open(written(tmp_path, events))
    assert tab.run("[...document.querySelectorAll('main > section')].filter(one => one.hidden).map(one => one.id)") == ["pairs", "sweeps", "warnings"]
    assert "At least 2 GB/s. Not passed: n1." in tab.text("#storage")


def test_a_run_that_promises_no_proof_has_nodes_that_are_done(tab: Tab, tmp_path: Path) -> None:
    events = [
        Event("run.start", 1.0, "", {"command": "run", "hosts": ["n1", "n2"]}), Event("task.end", 1.0, "n1", {"status": "changed", "task": "t", "result": {}}),
        Event("task.end", 1.0, "n2", {"status": "failed", "task": "install", "role": "base", "result": {"msg": "no space"}}), Event("run.end", 2.0, "", {"exit_code": 2}),
    ]
    tab.open(written(tmp_path, events))
    assert "1 of 2 nodes is not done: n2" in tab.text("h1")
    assert "base : install: no space" in tab.text("#node")
    tab.click(cell("n1"))
    assert "✓ done" in tab.text("#node h2")
    assert "changed=1" in tab.text("#node")
    tab.open(written(tmp_path, [*events[:2], events[3]]))
    assert tab.text("h1") == "✓ done All 2 nodes are done"


def test_a_run_without_nodes(tab: Tab, tmp_path: Path) -> None:
    tab.open(written(tmp_path, [Event("run.start", 1.0, "", {"command": "verify"})]))
    assert "No node took part" in tab.text("h1")
