"""The rows of busy nodes on a terminal: who is in them, for how long, and that no node can steer the terminal through them."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from nodectl.report.human import View, printable
from nodectl.report.live import ROWS, Live, console_for
from nodectl.wire.event import Event


def live(**options: Any) -> tuple[Live, io.StringIO]:
    stream = io.StringIO()
    return Live(Console(file=stream, width=80, highlight=False, markup=False, **options), View()), stream


def drawn(shown: Live) -> str:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    with console.capture() as captured:
        console.print(shown._table())
    return captured.get()


def rows(shown: Live) -> list[str]:
    """The live rows as plain lines, without their seconds."""
    lines = [line.split() for line in drawn(shown).splitlines() if line.strip()]
    return [" ".join([*words[:1], *words[3:]]) for words in lines]


PLAY = Event("play.start", 1.0, "", {"play": "p", "hosts": ["n1", "n2", "n3"]})
TASK = Event("task.start", 1.0, "", {"task": "install", "role": "base"})


def of(kind: str, host: str, **data: Any) -> Event:
    return Event(kind, 1.0, host, data)


# events, the hosts that are shown as busy
BUSY: list[tuple[list[Event], list[str]]] = [
    ([], []),
    ([PLAY], []),
    ([PLAY, TASK], ["n1 base : install", "n2 base : install", "n3 base : install"]),
    ([PLAY, TASK, of("task.end", "n2", status="ok", task="install")], ["n1 base : install", "n3 base : install"]),
    ([PLAY, TASK, of("progress", "n1", stage="apt", text="50 %")], ["n1 apt: 50 %", "n2 base : install", "n3 base : install"]),
    ([PLAY, TASK, of("host.lost", "n1", reason="silent")], ["n2 base : install", "n3 base : install"]),
    # who left the play is not at work in its next task
    ([PLAY, TASK, of("host.unreachable", "n1", reason="refused"), TASK], ["n2 base : install", "n3 base : install"]),
    ([PLAY, TASK, of("host.stopped", "n3", reason="end_host"), TASK], ["n1 base : install", "n2 base : install"]),
    ([of("progress", "n9", stage="", text="connecting")], ["n9 connecting"]),
    ([of("progress", "", stage="verify", text="pairs")], []),
    ([PLAY, TASK, *(of("verdict", host, verdict="pass", reasons=[]) for host in ("n1", "n2", "n3"))], []),
    ([PLAY, of("task.start", "n2", task="own", role="")], ["n1 own", "n2 own", "n3 own"]),
]


@pytest.mark.parametrize(("events", "expected"), BUSY, ids=[str(number) for number in range(len(BUSY))])
def test_who_is_at_work(events: list[Event], expected: list[str]) -> None:
    shown, _ = live()
    for event in events:
        shown(event)
    assert sorted(rows(shown)) == expected


STEP = of("progress", "", stage="verify", text="scratch: n1, n2, n3", hosts=["n1", "n2", "n3"], bound=310.0)
# events, the lines that are shown
STEPS: list[tuple[list[Event], list[str]]] = [
    ([STEP], ["0 s of at most 310 s, 3 at work verify: scratch: n1, n2, n3", "n1 0 s", "n2 0 s", "n3 0 s"]),
    ([STEP, of("check", "n2", name="disk.x", verdict="pass")], ["0 s of at most 310 s, 2 at work verify: scratch: n1, n2, n3", "n1 0 s", "n3 0 s"]),
    ([STEP, of("host.lost", "n1", reason="silent")], ["0 s of at most 310 s, 2 at work verify: scratch: n1, n2, n3", "n2 0 s", "n3 0 s"]),
    ([STEP, of("progress", "", stage="verify", text="round 2")], ["0 s of at most 310 s, 3 at work verify: round 2", "n1 0 s", "n2 0 s", "n3 0 s"]),
    ([STEP, of("progress", "n1", stage="", text="connecting")], ["0 s of at most 310 s, 3 at work verify: scratch: n1, n2, n3", "n2 0 s", "n3 0 s", "n1 0 s connecting"]),
    ([STEP, *(of("check", host, name="x", verdict="pass") for host in ("n1", "n2", "n3"))], ["0 s of at most 310 s verify: scratch: n1, n2, n3"]),
    ([STEP, of("handoff", "", hosts=[])], []),
    ([of("progress", "", stage="verify", text="a", hosts=["n1"], bound="soon")], ["0 s, 1 at work verify: a", "n1 0 s"]),
    ([of("progress", "", stage="verify", text="a", hosts="n1")], []),
]


@pytest.mark.parametrize(("events", "expected"), STEPS, ids=range(len(STEPS)))
def test_a_step_shows_how_long_it_may_take_and_who_is_still_at_it(events: list[Event], expected: list[str]) -> None:
    shown, _ = live()
    for event in events:
        shown(event)
    lines = [" ".join(line.split()) for line in drawn(shown).splitlines() if line.strip()]
    assert lines == expected


def test_many_nodes_are_counted_in_the_last_row() -> None:
    shown, _ = live()
    for number in range(ROWS + 5):
        shown(of("progress", f"n{number:02}", stage="", text="busy"))
    found = rows(shown)
    assert len(found) == ROWS + 1
    assert found[0].startswith("n00"), "the one who is at work longest is the one to wait for"
    assert drawn(shown).rstrip().endswith("and 5 more")


HOSTILE = ["\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x9b31m", "a\rb", "a\x08b", "\u202egnihtyna", "\x00", "\x7f"]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_node_steers_the_terminal(text: str) -> None:
    """Progress comes from programs on the node, word for word."""
    shown, stream = live(force_terminal=True, color_system=None)
    for event in (PLAY, TASK, of("progress", "n1", stage="x", text=text), of("warning", "n1", text=text), of("host.stopped", "n2", reason=text)):
        shown(event)
    for said in (drawn(shown), stream.getvalue()):
        assert all(char.isprintable() or char == "\n" for char in said), ascii(said)


@pytest.mark.parametrize(("text", "expected"), [
    ("plain", "plain"), ("two\nlines\tand a tab", "two\nlines\tand a tab"), ("\x1b[31m", "\\x1b[31m"), ("\x9b", "\\x9b"), ("\r", "\\r"), ("\u202e", "\\u202e"), ("\udcff", "\\udcff"),
    ("ünïcode ✓", "ünïcode ✓"), ("", ""), ("\U000e0001", "\\U000e0001"),
])
def test_printable(text: str, expected: str) -> None:
    assert printable(text) == expected


def test_stopping_twice_and_using_it_without_a_terminal_is_fine() -> None:
    shown, stream = live()
    with shown:
        shown(PLAY)
    shown.stop()
    assert "PLAY [p]" in stream.getvalue()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_a_terminal_cannot_encode_is_escaped(encoding: str) -> None:
    raw = io.BytesIO()
    console = console_for(io.TextIOWrapper(raw, encoding=encoding, write_through=True))
    console.print("päckage ✓ \udcff")
    assert raw.getvalue().decode(encoding).strip().startswith("p")
