"""Diagnostics as people, programs and GitHub see them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from nodectl.diagnostics.model import Collector, Diagnostic, Mistakes
from nodectl.diagnostics.order import in_order
from nodectl.diagnostics.render_github import render_github
from nodectl.diagnostics.render_human import render_human, wants_colour
from nodectl.diagnostics.render_json import render_json
from nodectl.diagnostics.source import MAX_WIDTH, cut, snippet
from nodectl.wire.origin import Origin


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "site.yml").write_text("- hosts: all\n  tasks:\n\t- wen: x\n    - größe: 'ä'\n")
    monkeypatch.chdir(tmp_path)
    return "site.yml"


def block(text: str) -> str:
    return text.strip("\n")


def test_a_block_has_arrow_gutter_line_caret_label_and_help(site: str) -> None:
    shown = render_human(Diagnostic("E202", "unknown keyword 'hosts'", Origin(site, 1, 3, 5), "not a keyword", "did you mean 'host'?"), colour=False)
    assert shown == block("""
error[E202]: unknown keyword 'hosts'
 --> site.yml:1:3
  |
1 | - hosts: all
  |   ^^^^^ not a keyword
  = help: did you mean 'host'?
""")


def test_without_a_place_there_is_only_the_sentence() -> None:
    assert render_human(Diagnostic("E401", "no task has the tag 'x'", None, help="known tags: y", severity="warning"), colour=False) == block("""
warning[E401]: no task has the tag 'x'
  = help: known tags: y
""")


def test_a_file_that_is_gone_still_gives_place_and_label() -> None:
    assert render_human(Diagnostic("E109", "cannot read", Origin("gone.yml", 12, 1), "here"), colour=False) == block("""
error[E109]: cannot read
  --> gone.yml:12:1
   | here
""")


def test_tabs_and_wide_characters_keep_the_caret_under_the_token(site: str) -> None:
    assert "3 |     - wen: x\n  |       ^^^ tab" in render_human(Diagnostic("E202", "m", Origin(site, 3, 4, 3), "tab"), colour=False)
    assert "4 |     - größe: 'ä'\n  |              ^^^" in render_human(Diagnostic("E202", "m", Origin(site, 4, 14, 3)), colour=False)


def test_what_steers_a_terminal_is_not_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "evil.yml"
    path.write_text("a: \x1b[31mred\x07\n")
    shown = render_human(Diagnostic("E202", "bad \x1b[2J name\nline", Origin(str(path), 1, 4, 3), "\x1b[1m"), colour=False)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert shown.splitlines()[0] == "error[E202]: bad  [2J name line"


@pytest.mark.parametrize(
    ("row", "column", "width", "token"),
    [
        ("short: x", 8, 1, "x"),
        ("k: " + "a" * 500, 4, 10, "aaaaaaaaaa"),
        ("b" * 400 + " TOKEN " + "c" * 400, 402, 5, "TOKEN"),
        ("x", 50, 3, ""),
        ("", 1, 1, ""),
    ],
)
def test_long_lines_are_cut_around_the_token(row: str, column: int, width: int, token: str) -> None:
    shown = cut(row, Origin("f", 1, column, width))
    assert len(shown.text) <= MAX_WIDTH
    assert shown.text[shown.indent : shown.indent + len(token)] == token
    assert shown.indent + shown.width <= MAX_WIDTH


@pytest.mark.parametrize("line", [0, 5, 999])
def test_a_line_that_is_not_there_has_no_snippet(site: str, line: int) -> None:
    assert snippet(Origin(site, line, 1)) is None


def test_colour_is_for_terminals_only(site: str) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert wants_colour(Terminal(), {})
    assert not wants_colour(Terminal(), {"NO_COLOR": "1"})
    assert wants_colour(Terminal(), {"NO_COLOR": ""}), "no-color.org: only a value that is not empty counts"
    assert not wants_colour(Terminal(), {"TERM": "dumb"})
    assert not wants_colour(io.StringIO(), {})
    coloured = render_human(Diagnostic("E202", "m", Origin(site, 1, 3, 5)), colour=True)
    assert "\x1b[" in coloured
    assert "^^^^^" in coloured


def test_order_is_by_place_and_each_is_said_once() -> None:
    a, b = Origin("a.yml", 9, 1), Origin("b.yml", 1, 5)
    found = [Diagnostic("E2", "m", b), Diagnostic("E1", "m", a), Diagnostic("E9", "m"), Diagnostic("E1", "m", b._replace(column=2)), Diagnostic("E1", "m", a)]
    assert [(one.code, str(one.origin)) for one in in_order(found)] == [("E9", "None"), ("E1", "a.yml:9:1"), ("E1", "b.yml:1:2"), ("E2", "b.yml:1:5")]


def test_json_holds_everything() -> None:
    shown = json.loads(render_json([Diagnostic("E2", "späte", Origin("b.yml", 1, 5, 2), "l", "h"), Diagnostic("E1", "m", severity="warning")]))
    assert shown["diagnostics"] == [
        {"code": "E1", "severity": "warning", "message": "m", "label": "", "help": "", "file": None, "line": None, "column": None, "width": None},
        {"code": "E2", "severity": "error", "message": "späte", "label": "l", "help": "h", "file": "b.yml", "line": 1, "column": 5, "width": 2},
    ]


def test_github_commands_are_escaped() -> None:
    shown = render_github(Diagnostic("E202", "100% of\nit", Origin("a,b:c.yml", 3, 5, 4), "label", "help", "warning"))
    assert shown == "::warning file=a%2Cb%3Ac.yml,line=3,col=5,endColumn=9,title=nodectl E202::100%25 of%0Ait. label. help"
    assert render_github(Diagnostic("E401", "m")) == "::error title=nodectl E401::m"


def test_a_collector_stops_for_errors_and_not_for_warnings() -> None:
    found = Collector()
    found.warning("E214", "w", None)
    found.stop_if_wrong()
    found.error("E202", "first", Origin("f", 1, 2))
    found.error("E203", "second", None)
    with pytest.raises(Mistakes, match=r"w; f:1:2: first; second") as caught:
        found.stop_if_wrong()
    assert len(caught.value.diagnostics) == 3
    assert (len(found.errors), len(found.warnings)) == (2, 1)
