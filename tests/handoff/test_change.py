"""The way back: from two runs to who has to be taken out, and the commands for it."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from nodectl.handoff.change import change, commands
from nodectl.handoff.pool import Pool, pool_of
from nodectl.wire.event import Event
from tests.handoff.pool_events import node, start, verdict

BOTH = ["slurm", "kubernetes"]


def run(**fates: str) -> Pool:
    """A run of hosts that each passed, or failed with the words given; "-": the run does not know the host."""
    events: list[Event] = []
    for host, fate in fates.items():
        if fate != "-":
            events += [node(host), verdict(host, "fail" if fate else "pass", fate)]
    return pool_of([*start(*(host for host, fate in fates.items() if fate != "-")), *events])


# earlier and later fates of n1, n2, n3; who is out, back, unseen
CHANGES = [
    (("", "", ""), ("", "", ""), "", "", ""),
    (("", "", ""), ("", "slow", ""), "n2", "", ""),
    (("", "bad", ""), ("", "", "slow"), "n3", "n2", ""),
    (("bad", "bad", "bad"), ("", "bad", "bad"), "", "n1", ""),
    (("bad", "", ""), ("bad", "-", ""), "", "", "n2"),
    (("-", "", ""), ("", "", ""), "", "n1", ""),
    (("", "", ""), ("a", "b", "c"), "n1 n2 n3", "", ""),
]


@pytest.mark.parametrize(("before", "after", "out", "back", "unseen"), CHANGES)
def test_who(before: tuple[str, str, str], after: tuple[str, str, str], out: str, back: str, unseen: str) -> None:
    names = ("n1", "n2", "n3")
    found = change(run(**dict(zip(names, before, strict=True))), run(**dict(zip(names, after, strict=True))))
    assert ([item.host for item in found.out], list(found.back), list(found.unseen)) == (out.split(), back.split(), unseen.split())


def test_commands() -> None:
    text = commands(change(run(n1="", n2=""), run(n1="it's \"slow\"\nhere", n2="")), BOTH)
    assert text.splitlines() == [
        "# out: n1: failed: it's \"slow\" here",
        "scontrol update NodeName=n1 State=DRAIN 'Reason=nodectl: failed: it'\"'\"'s '\"'\"'slow'\"'\"' here'",
        "kubectl taint node n1 --overwrite nodectl/unproven=failed:NoSchedule",
    ]
    assert commands(change(run(n1=""), run(n1="slow")), ["slurm"]).count("\n") == 2
    assert commands(change(run(n1=""), run(n1="")), BOTH) == "# nothing changed\n"


@pytest.mark.parametrize("why", ["$(touch X)", "`touch X`", "'; touch X; '", "\ntouch X", "\rtouch X\n", "\\\ntouch X", "\u2028touch X", "#"])
def test_what_a_node_said_is_no_command(why: str, tmp_path: Path) -> None:
    for name in ("scontrol", "kubectl"):
        (tmp_path / name).write_text(f'#!/bin/sh\nprintf "{name}:%s " "$#" >>"$0.log"\n')
        (tmp_path / name).chmod(0o755)
    text = commands(change(run(n1=""), run(n1=why)), BOTH)
    done = subprocess.run(["sh"], input=text, text=True, capture_output=True, cwd=tmp_path, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kubectl", "kubectl.log", "scontrol", "scontrol.log"]
    assert (tmp_path / "scontrol.log").read_text() == "scontrol:4 "


@pytest.mark.parametrize("host", ["ALL", "Default", "a=b", "a[1]", "ü"])
def test_a_name_that_a_format_cannot_hold_is_a_comment(host: str) -> None:
    before = pool_of([Event("node", 1.0, host, node("n1").data), verdict(host)])
    after = pool_of([verdict(host, "fail", "slow")])
    lines = commands(change(before, after), BOTH).splitlines()
    assert all(line.startswith("# ") for line in lines)
    assert "# not by slurm: " in lines[1]


def test_every_line_that_is_no_comment_is_one_command() -> None:
    lines = commands(change(run(n1="", n2="", n3=""), run(n1="a", n2="b", n3="-")), BOTH).splitlines()
    assert [shlex.split(line)[0] for line in lines if not line.startswith("#")] == ["scontrol", "kubectl"] * 2
    assert lines[-1].startswith("# unseen: n3")
