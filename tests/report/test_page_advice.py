"""The advice on report.html in headless Chromium: what is read, heard and reached with keys, with and without scripts, on every width."""

from __future__ import annotations

import importlib.resources
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodectl.advise.advice import Advice, advise
from nodectl.advise.figure import Figure
from nodectl.advise.measured import read
from nodectl.advise.text import shown
from nodectl.report.fold import fold
from nodectl.report.page import page
from nodectl.report.page_advice import advice_html
from tests.advise.jobs import shipped
from tests.advise.test_measured import GROUP, SCRATCH, events, mount
from tests.report.browser import Browser, Tab
from tests.report.fleet import fleet

PRICE = Figure("price of a node", 32 / 3600, "money/s", "a test says so", "workload")


def answer(name: str = "12b", **changes: Any) -> Advice:
    return advise(shipped(name, **changes), read(events(GROUP, *SCRATCH, *mount("/ckpt"))))


def paged(path: Path, found: Advice) -> Path:
    file = path / "report.html"
    file.write_text(page(fold(fleet(4)), advice=found), encoding="utf-8")
    return file


def test_every_answer_stands_there() -> None:
    found = answer(price=PRICE)
    text = advice_html(found)
    for figure in (found.found.step, found.found.gpu, found.found.net, found.found.io, found.found.run, found.found.idle, found.found.load, found.found.cost):
        assert figure is not None
        assert shown(figure) in text, figure.name
    for name, _ in (*found.networks, *found.storage):
        assert f'<th scope="row">{name}</th>' in text
    for leaf in found.found.run.leaves():
        assert leaf.how.replace("'", "&#x27;") in text, leaf.how
    assert text.count("<li>") == text.count("</li>")
    assert text.count("<ul>") == text.count("</ul>")


def test_no_word_of_a_workload_is_markup() -> None:
    evil = "<script>window.owned = 1</script></section>\u202e"
    text = advice_html(advise(replace(shipped("12b"), name=evil), read(events(GROUP, *SCRATCH, *mount("/<b>ckpt</b>")))))
    assert "<script" not in text
    assert "<b>" not in text
    assert "\u202e" not in text
    assert text.count("</section>") == 1


@pytest.mark.servers
def test_the_last_section_is_read_and_heard(tab: Tab, tmp_path: Path) -> None:
    found = answer(price=PRICE)
    tab.open(paged(tmp_path, found))
    assert tab.run("[...document.querySelectorAll('main > section')].pop().id") == "advice"
    assert "Where the time goes" in tab.text("#advice h2")
    assert f"A step takes {shown(found.found.step)}" in tab.text("#advice")
    assert "It costs " in tab.text("#advice")
    rows = tab.run("[...document.querySelectorAll('#advice table')].map(one => [one.caption.innerText, one.tBodies[0].rows.length])")
    assert [count for _, count in rows] == [4, len(found.found.sent), len(found.networks), len(found.storage), 4]
    spoken = tab.spoken()
    assert ("heading", "Where the time goes") in spoken
    assert ("region", "Where the time goes") in spoken
    for caption, _ in rows:
        assert ("table", caption) in spoken


@pytest.mark.servers
def test_the_figures_are_unfolded_with_keys_alone(tab: Tab, tmp_path: Path) -> None:
    tab.open(paged(tmp_path, answer()))
    tab.run("document.querySelector('#warnings').focus()")
    for _ in range(80):
        tab.key("Tab")
        if tab.run("document.activeElement.matches('#advice summary')"):
            break
    assert "overlap" not in tab.text("#advice details ul")
    tab.key("Enter")
    assert "measured: network.all_reduce" in tab.text("#advice details")


@pytest.mark.servers
@pytest.mark.parametrize(("scheme", "width"), [("light", 320), ("dark", 1280)])
def test_axe_finds_nothing_and_no_width_scrolls_sideways(browser: Browser, tmp_path: Path, scheme: str, width: int) -> None:
    axe = (importlib.resources.files("axe_core_python") / "axe.min.js").read_text()
    with browser.tab(width, 800) as tab:
        tab.prefer(color_scheme=scheme)
        tab.open(paged(tmp_path, answer("120b-moe", price=PRICE)))
        tab.run("(() => { for (const fold of document.querySelectorAll('details')) fold.open = true; })()")
        tab.run(f"(() => {{ {axe}; window.axe = axe; }})()")
        found = tab.run("axe.run('#advice', {resultTypes: ['violations']}).then(found => found.violations.map(({id, nodes}) => [id, nodes[0].html.slice(0, 200)]))")
        assert found == []
        assert tab.run("document.documentElement.scrollWidth") <= width
        assert tab.complaints == []
        tab.picture(tmp_path / f"advice-{scheme}.png")


@pytest.mark.servers
def test_it_reads_without_scripts(browser: Browser, tmp_path: Path) -> None:
    found = answer()
    with browser.tab() as tab:
        tab.send("Emulation.setScriptExecutionDisabled", value=True)
        tab.load(paged(tmp_path, found))
        spoken = " ".join(name for _, name in tab.spoken())
    assert shown(found.found.step) in spoken
    assert found.choices[0].place.name in spoken
