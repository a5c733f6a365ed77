"""The file itself: it asks for nothing, runs nothing but its own scripts, and says first what matters."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from nodectl.report.fold import fold
from nodectl.report.page import ASSETS, SCRIPTS, embedded, page
from nodectl.report.page_top import FEW, NAMES_MOST, ROWS_MOST, SIGNS, headline, took
from nodectl.wire.event import Event
from tests.report.fleet import fleet
from tests.report.test_page_browser import HOSTILE, everything, hostile_run


class Parts(HTMLParser):
    """What a browser finds in the file."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.contents: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        self.contents.append((self._open[-1] if self._open else "", data))

    def text(self) -> str:
        return " ".join(" ".join(data for tag, data in self.contents if tag not in ("script", "style")).split())


def parts(events: list[Event]) -> Parts:
    return Parts(page(fold(events)))


def scripts(text: str) -> list[str]:
    return re.findall(r"<script>(.*?)</script>", text, re.DOTALL)


def policy(text: str) -> dict[str, str]:
    [said] = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    return {words.split()[0]: " ".join(words.split()[1:]) for words in said.split("; ")}


def hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("text", ["plain", *HOSTILE], ids=range(len(HOSTILE) + 1))
def test_the_policy_names_exactly_the_files_own_scripts_and_styles(text: str) -> None:
    made = page(fold(hostile_run(text)))
    found = scripts(made)
    assert len(found) == 2
    rules = policy(made)
    assert rules["default-src"] == "'none'"
    assert rules["script-src"].split() == [hashed(script) for script in found]
    [style] = re.findall(r"<style>(.*?)</style>", made, re.DOTALL)
    assert rules["style-src"] == hashed(style)
    assert "unsafe" not in " ".join(rules.values())


def test_nothing_in_the_file_points_outside() -> None:
    found = parts(everything())
    addresses = [value for _, attributes in found.tags for name, value in attributes.items() if name in ("src", "href", "action", "data", "poster", "srcset")]
    assert [address for address in addresses if not str(address).startswith(("#", "data:"))] == []
    assert not re.search(r"url\(|@import", (ASSETS / "style.css").read_text() + (ASSETS / "uplot.css").read_text())


@pytest.mark.parametrize("name", [*SCRIPTS, "uplot.js"])
def test_scripts_make_no_html_from_texts_and_ask_for_nothing(name: str) -> None:
    text = (ASSETS / name).read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|fetch\(|XMLHttpRequest|WebSocket|import\(|localStorage|\.cssText", text)
    assert "</script" not in text
    assert "<!--" not in text


def test_every_script_is_in_the_page_and_every_file_is_used() -> None:
    assert {path.name for path in ASSETS.iterdir()} == {*SCRIPTS, "page.html", "style.css", "uplot.js", "uplot.css", "uplot.license"}


def test_no_attribute_holds_a_script_or_a_style() -> None:
    for text in HOSTILE:
        names = {name for _, attributes in parts(hostile_run(text)).tags for name in attributes}
        assert {name for name in names if name.startswith("on") or name == "style"} == set()


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_are_texts(text: str) -> None:
    found = parts(hostile_run(text))
    assert [tag for tag, _ in found.tags].count("script") == 3
    assert {tag for tag, _ in found.tags} & {"img", "svg", "iframe", "object", "embed", "b"} == set()
    [data] = [data for tag, data in found.contents if tag == "script" and data.startswith("{")]
    assert json.loads(data)["nodes"]


@pytest.mark.parametrize("text", ["</script>", "<!--", "]]>", "\u2028", "ü", "\ud800", "&amp;", "\x00"])
def test_embedded_data_is_ascii_and_ends_nothing(text: str) -> None:
    made = embedded({"x": text, text: [text]})
    assert made.isascii()
    assert not set(made) & set("<>&")
    assert json.loads(made) == {"x": text, text: [text]}


def test_the_same_signs_in_both_languages() -> None:
    [said] = re.findall(r"const SIGNS = (\{.*?\});", (ASSETS / "format.js").read_text())
    assert json.loads(re.sub(r"(\w+):", r'"\1":', said)) == SIGNS


def test_the_same_verdicts_and_steps_in_both_languages() -> None:
    from nodectl.report.page_data import VERDICTS
    from nodectl.report.page_pairs import FAILED, NOT_MEASURED, STEPS

    assert f"const VERDICTS = {json.dumps(list(VERDICTS))};" in (ASSETS / "format.js").read_text()
    assert f"const STEPS = {STEPS}, FAILED = {FAILED}, NOT_MEASURED = {NOT_MEASURED};" in (ASSETS / "pairs.js").read_text()


# -- what is said first


def run(command: str, *events: Event, hosts: tuple[str, ...] = ("n1", "n2"), **more: Any) -> list[Event]:
    return [Event("run.start", 1.0, "", {"command": command, "run_id": "r", "hosts": list(hosts), **more}), *events]


def verdict(host: str, word: str, *reasons: str) -> Event:
    return Event("verdict", 2.0, host, {"verdict": word, "reasons": list(reasons)})


HEADLINES: list[tuple[list[Event], str]] = [
    (run("verify", verdict("n1", "pass"), verdict("n2", "pass")), "All 2 nodes are proven ready"),
    (run("verify", verdict("n1", "pass"), hosts=("n1",)), "1 node is proven ready"),
    (run("verify", verdict("n1", "pass"), verdict("n2", "fail")), "1 of 2 nodes is not ready: n2"),
    (run("verify", verdict("n1", "unknown"), verdict("n2", "fail")), "2 of 2 nodes are not ready: n2, n1"),
    (run("verify", verdict("n1", "pass"), verdict("n2", "skipped")), "1 of 2 nodes is ready only by a waiver: n2"),
    (run("verify", verdict("n1", "fail"), verdict("n2", "skipped")), "1 of 2 nodes is not ready: n1; 1 more is ready only by a waiver"),
    (run("verify", verdict("n1", "pass")), "1 of 2 nodes is not ready: n2"),
    (run("verify"), "2 of 2 nodes are not ready: n1, n2"),
    (run("run"), "All 2 nodes are done"),
    (run("run", Event("host.lost", 2.0, "n2", {"reason": "x"})), "1 of 2 nodes is not done: n2"),
    (run("bootstrap", check=True), "All 2 nodes are done"),
    (run("verify", hosts=()), "No node took part in this run"),
    (run("verify", hosts=tuple(f"n{place}" for place in range(9))), "9 of 9 nodes are not ready: n0, n1, n2 and 6 more"),
]


@pytest.mark.parametrize(("events", "words"), HEADLINES, ids=[words for _, words in HEADLINES])
def test_headlines(events: list[Event], words: str) -> None:
    assert headline(fold(events)) == words


def test_few_nodes_one_by_one_with_their_reasons_and_what_helps() -> None:
    text = parts(everything()).text()
    for words in ("connection refused", "is sshd running?", "silent for 30 s", "nvidia-smi did not answer", "network.pairs: measured 12 GB/s"):
        assert words in text
    assert "By cause" not in text


def test_where_a_failed_task_was_written() -> None:
    failed = Event("task.end", 2.0, "n1", {"status": "failed", "task": "install", "result": {"msg": "no space"}, "origin": "roles/base/tasks/main.yml:12:5"})
    assert "n1 ✕ failed install: no space written at roles/base/tasks/main.yml:12:5" in parts(run("run", failed)).text()


def test_many_nodes_by_cause() -> None:
    events = run("verify", *(verdict(f"n{place}", "fail", f"network.pairs: measured {place} MB/s") for place in range(30)), verdict("x", "unknown", "gpu.ecc: hung"), hosts=())
    text = parts(events).text()
    assert f"30 nodes fail: network.pairs: measured 0 MB/s n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11 and {30 - NAMES_MOST} more" in text
    assert "1 node unknown: gpu.ecc: hung x" in text
    assert "Node by node (31 of 31)" in text


@pytest.mark.parametrize("count", [FEW, FEW + 1, ROWS_MOST + 10])
def test_the_table_is_bounded(count: int) -> None:
    made = page(fold(run("verify", *(verdict(f"n{place}", "fail", "r") for place in range(count)), hosts=())))
    assert made.count('href="#node=') == min(count, ROWS_MOST)
    assert ("<details>" in made.split("<script")[0]) == (count > FEW)


def test_what_to_do() -> None:
    events = run("verify", verdict("n1", "pass"), verdict("n2", "fail"), Event("handoff", 3.0, "", {"path": "/r/handoff", "hosts": ["n1"], "world_size": 8}), inventory=["my hosts.yaml"])
    text = parts(events).text()
    assert "1 node is handed off (world size 8): /r/handoff" in text
    assert "prove it again: nodectl verify 'my hosts.yaml'" in text
    assert "This run has no end in its journal" in text


def test_a_finished_clean_run_asks_for_nothing() -> None:
    text = parts(fleet(2, bad=0)).text()
    assert "prove it again" not in text
    assert "no end in its journal" not in text


def test_waivers_and_stand_ins_are_said_at_the_top() -> None:
    text = parts(everything()).text()
    assert "clock.offset (waived by ops until 2027-01-31: the new cable is on its way)" in text
    assert "1 of 183 checks ran on stand-ins" in text


@pytest.mark.parametrize(("seconds", "words"), [(0.0, "0.0 s"), (4.23, "4.2 s"), (59.4, "59.4 s"), (60, "1 min 0 s"), (272, "4 min 32 s"), (3600, "1 h 0 min"), (7380, "2 h 3 min")])
def test_how_long_it_took(seconds: float, words: str) -> None:
    assert took(seconds) == words


def test_the_same_events_give_the_same_page(tmp_path: Path) -> None:
    assert page(fold(fleet(6))) == page(fold(fleet(6)))
