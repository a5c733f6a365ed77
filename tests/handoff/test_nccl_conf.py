"""NCCL's settings files, read by NCCL's own rules, and what the handoff makes of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodectl.handoff.nccl_conf import MOST, nccl_files, parse
from nodectl.handoff.pool import pool_of
from nodectl.wire.event import Event
from tests.handoff.pool_events import machine, node, start, verdict

# text; what NCCL sets, in order; words of what is wrong
TEXTS: list[tuple[str, list[tuple[str, str]], list[str]]] = [
    ("", [], []),
    ("A=1\n", [("A", "1")], []),
    ("A=1", [("A", "1")], []),
    ("# A=1\n#\n\nB=2\n", [("B", "2")], []),
    ("NCCL_SOCKET_IFNAME==eth0\n", [("NCCL_SOCKET_IFNAME", "=eth0")], []),
    ("NCCL_IB_HCA==mlx5_0:1,mlx5_1:1\n", [("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1")], []),
    ("A=\n", [("A", "")], []),
    ("A=x=y\n", [("A", "x=y")], []),
    ("A=a b\n", [("A", "a b")], []),
    ("A=ü\n", [("A", "ü")], []),
    ("   \nA=1\n\t\n", [("A", "1")], []),
    ("A=1\nA=1\n", [("A", "1"), ("A", "1")], []),
    (" # no comment\n", [], ["line 1: no ="]),
    (" A=1\n", [(" A", "1")], ["line 1: ' A' is not the name"]),
    ("A =1\n", [("A ", "1")], ["line 1: 'A ' is not the name"]),
    ("export A=1\n", [("export A", "1")], ["is not the name"]),
    ("A= 1\n", [("A", " 1")], ["begins or ends with a blank"]),
    ("A=1 \n", [("A", "1 ")], ["begins or ends with a blank"]),
    ("A=1\r\nB=2\r\n", [("A", "1\r"), ("B", "2\r")], ["line 1: the value of A", "line 2: the value of B"]),
    ("A=1 # one\n", [("A", "1 # one")], ["knows no comment behind a value"]),
    ("A=1\nB\nC=3\n", [("A", "1"), ("C", "3")], ["line 2: no ="]),
    ("A=1\nB=2\nA=3\n", [("A", "1"), ("B", "2"), ("A", "3")], ["line 3: A has another value in line 1, and the first one counts"]),
    ("=1\n", [("", "1")], ["'' is not the name"]),
    ("A=" + "x" * MOST + "\n", [("A", "x" * MOST)], []),
    ("A=" + "x" * (MOST + 1) + "\n", [("A", "x" * (MOST + 1))], ["longer than the 1023 bytes"]),
    ("A=" + "ü" * 512 + "\n", [("A", "ü" * 512)], ["longer than"]),
    ("A" * 1024 + "=1\n", [("A" * 1024, "1")], ["longer than"]),
    ("A=a\x00b\n", [("A", "a\x00b")], ["a control character"]),
    ("A=\udcff\n", [("A", "\udcff")], ["a control character"]),
    ("\ufeffA=1\n", [("\ufeffA", "1")], ["is not the name"]),
]


@pytest.mark.parametrize(("text", "settings", "words"), TEXTS, ids=[repr(text)[:40] for text, _, _ in TEXTS])
def test_the_rules(text: str, settings: list[tuple[str, str]], words: list[str]) -> None:
    found, wrong = parse(text)
    assert [(one.key, one.value) for one in found] == settings
    assert len(wrong) == len(words)
    assert [word for word, fault in zip(words, wrong, strict=True) if word not in fault] == []


@given(st.text())
def test_any_text_has_an_answer(text: str) -> None:
    found, wrong = parse(text)
    assert all(text.split("\n")[one.line - 1].startswith(f"{one.key}=") for one in found)
    assert len(wrong) <= text.count("\n") + 1


def made(env: dict[str, str], *files: tuple[str, str], **changes: Any) -> Any:
    described = node("n1", env=env, machine=machine("n1", nccl_conf=[{"path": path, "text": text} for path, text in files]), **changes)
    return nccl_files(pool_of([*start("n1"), described, verdict("n1")]))


def settings_of(text: str) -> dict[str, str]:
    found, wrong = parse(text)
    assert wrong == []
    assert len({one.key for one in found}) == len(found)
    return {one.key: one.value for one in found}


# environment of the ranks; files in NCCL's order; what holds
WINNERS: list[tuple[dict[str, str], list[tuple[str, str]], dict[str, str]]] = [
    ({}, [("/etc/nccl.conf", "A=1\n")], {"A": "1"}),
    ({"NCCL_X": "0"}, [("/etc/nccl.conf", "NCCL_X=1\nB=2\n")], {"NCCL_X": "0", "B": "2"}),
    ({}, [("/root/.nccl.conf", "A=1\n"), ("/etc/nccl.conf", "A=2\nB=2\n")], {"A": "1", "B": "2"}),
    ({"GLOO_SOCKET_IFNAME": "eth0", "PATH": "/x", "NCCL_IB_HCA": "=m", "OFI_NCCL_X": "1", "FI_PROVIDER": "efa", "UCX_TLS": "rc"}, [],
     {"NCCL_IB_HCA": "=m", "OFI_NCCL_X": "1", "FI_PROVIDER": "efa", "UCX_TLS": "rc"}),
]


@pytest.mark.parametrize(("env", "files", "wanted"), WINNERS)
def test_what_was_given_first_counts_as_it_did_when_the_node_was_measured(env: dict[str, str], files: list[tuple[str, str]], wanted: dict[str, str]) -> None:
    artefact = made(env, *files)
    assert settings_of(artefact.files["nccl/n1.conf"]) == wanted


def test_every_line_says_where_it_comes_from() -> None:
    text = made({"NCCL_DEBUG": "WARN"}, ("/home/o\nps/.nccl.conf", "# c\nA=1\n")).files["nccl/n1.conf"]
    assert text.splitlines()[1:] == ["# environment of the ranks", "NCCL_DEBUG=WARN", "# /home/o ps/.nccl.conf, line 2", "A=1"]


def test_a_node_without_settings_needs_no_file() -> None:
    assert (made({}).files, made({"GLOO_SOCKET_IFNAME": "eth0"}, ("/etc/nccl.conf", "# nothing\n")).files) == ({}, {})


def test_a_file_that_says_something_else_than_it_seems_is_refused_by_place() -> None:
    artefact = made({}, ("/root/.nccl.conf", "A=1\n"), ("/etc/nccl.conf", "NCCL_IB_HCA=mlx5_0 # first\nNCCL_NET = IB\n"))
    assert artefact.files == {}
    assert artefact.refused["n1"].startswith("/etc/nccl.conf, line 1: the value of NCCL_IB_HCA holds ' #'")
    assert "/etc/nccl.conf, line 2: 'NCCL_NET '" in artefact.refused["n1"]


def test_an_excluded_node_has_no_file() -> None:
    events: list[Event] = [*start("n1", "n2"), node("n1"), verdict("n1", "fail", "x"), node("n2"), verdict("n2")]
    assert list(nccl_files(pool_of(events)).files) == ["nccl/n2.conf"]
