"""nodectl collective: nccl-tests' options read as nccl-tests reads them, and what they make of a sweep."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from nodectl.cli.commands import collective
from nodectl.cli.commands.collective import DTYPE, OP, REDOP, Size, suite_for
from nodectl.cli.hide import hidden_argv
from nodectl.cli.main import run
from nodectl.verify.group.collectives_checks import program_of
from nodectl.verify.group.operations import DTYPES, OPS, REDOPS

SIZES = [("8", 8), ("64K", 65536), ("64k", 65536), ("128M", 128 * 2**20), ("1G", 2**30), ("16GiB", 16 * 2**30), ("2T", 2 * 2**40), (" 4 MB ", 4 * 2**20), (9, 9)]


@pytest.mark.parametrize(("text", "size"), SIZES)
def test_sizes_are_powers_of_two_as_in_nccl_tests(text: object, size: int) -> None:
    assert Size().convert(text, None, None) == size


@pytest.mark.parametrize("text", ["", "0", "-8", "1.5M", "8X", "M", "eight", "1e6", "8 8"])
def test_what_is_no_size_is_told(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a size"):
        Size().convert(text, None, None)


WORDS: list[tuple[Any, Any, tuple[str, ...]]] = [
    (OP, "all", OPS), (OP, "all_reduce", ("all_reduce",)), (OP, "all_reduce_perf", ("all_reduce",)), (OP, "sendrecv,alltoall_perf", ("sendrecv", "alltoall")),
    (OP, "reduce, reduce", ("reduce",)), (DTYPE, "all", tuple(DTYPES)), (DTYPE, "float,half", ("float32", "float16")), (DTYPE, "bfloat16", ("bfloat16",)),
    (DTYPE, "float32,float", ("float32",)), (REDOP, "all", REDOPS), (REDOP, "sum,avg", ("sum", "avg")), (REDOP, ("max",), ("max",)),
]


@pytest.mark.parametrize(("kind", "text", "words"), WORDS)
def test_words(kind: Any, text: str, words: tuple[str, ...]) -> None:
    assert kind.convert(text, None, None) == words


@pytest.mark.parametrize(("kind", "text", "expected"), [(OP, "allreduce", "all_reduce"), (DTYPE, "float8", "half"), (REDOP, "mean", "avg"), (OP, "", "sendrecv")])
def test_unknown_words_are_told_with_those_that_are_known(kind: Any, text: str, expected: str) -> None:
    with pytest.raises(click.BadParameter, match=expected):
        kind.convert(text, None, None)


def given(*argv: str) -> dict[str, Any]:
    return collective.command.make_context("collective", ["all_reduce", "hosts.yaml", *argv], resilient_parsing=False).params


# argv; what a part of the program then is
PROGRAMS: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    ((), {"sizes": tuple(8 * 2**power for power in range(24)), "iterations": 20, "warmup": 1, "dtype": "float32", "redop": "sum", "root": 0}),
    (("-b", "8", "-e", "128", "-f", "4"), {"sizes": (8, 32, 128)}),
    (("-b", "1K", "-e", "4K", "-i", "1K"), {"sizes": (1024, 2048, 3072, 4096)}),
    (("-n", "7", "-w", "0", "-r", "2"), {"iterations": 7, "warmup": 0, "root": 2}),
    (("-d", "half", "-o", "max"), {"dtype": "float16", "redop": "max"}),
]


@pytest.mark.parametrize(("argv", "expected"), PROGRAMS, ids=[" ".join(argv) for argv, _ in PROGRAMS])
def test_letters_mean_what_they_mean_to_nccl_tests(argv: tuple[str, ...], expected: dict[str, Any]) -> None:
    options = given(*argv)
    suite = suite_for(options["op"], options)
    assert [step.kind for step in suite.steps] == ["fabric", "route", "torch", "collectives"]
    (case,) = program_of(suite.steps[-1], "gloo").cases
    assert {name: getattr(case, name) for name in expected} == expected


def test_all_of_everything() -> None:
    options = given("-d", "all", "-o", "all", "-e", "8")
    cases = program_of(suite_for(OP.convert("all", None, None), options).steps[-1], "nccl").cases
    assert {case.op for case in cases} == set(OPS)
    assert {(case.dtype, case.redop) for case in cases if case.op == "reduce"} == {(dtype, redop) for dtype in DTYPES for redop in REDOPS}


def test_options_of_the_connection_keep_their_long_names() -> None:
    options = given("--become", "--forks", "3", "--extra-vars", "a=1", "-l", "gpu", "-u", "ops")
    assert (options["become"], options["forks"], options["extra"], options["limit"], options["remote_user"]) == (True, 3, ("a=1",), "gpu", "ops")


def test_a_value_that_may_be_a_secret_has_no_short_option_and_stays_out_of_the_journal() -> None:
    extra = next(option for option in collective.command.params if option.name == "extra")
    assert extra.opts == ["--extra-vars"]
    argv = ["collective", "all_reduce", "h", "-e", "128M", "--extra-vars", "p=hunter2", "--extra-vars=q=hunter2"]
    assert hidden_argv(argv, short=False) == ["collective", "all_reduce", "h", "-e", "128M", "--extra-vars", "p=********", "--extra-vars=q=********"]


WRONG = [
    (["allreduce", "hosts.yaml"], "all_reduce"), (["all_reduce"], "HOSTS"), (["all_reduce", "hosts.yaml", "-b", "16", "-e", "8"], "there is none"),
    (["all_reduce", "hosts.yaml", "-f", "1"], "2"), (["all_reduce", "hosts.yaml", "-e", "x=1"], "is not a size"), (["all_reduce", "missing.yaml"], "missing.yaml"),
    (["all_reduce", "hosts.yaml", "-n", "0"], "--iters"), (["all_reduce", "hosts.yaml", "--deadline", "inf"], "--deadline"), (["all_reduce", "hosts.yaml", "-l", "nope"], "nope"),
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "hosts.yaml").write_text(f"all: {{hosts: {{here: {{ansible_connection: local, ansible_python_interpreter: {sys.executable}, torch_python: {sys.executable}}}}}}}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("argv", "words"), WRONG, ids=[" ".join(argv) for argv, _ in WRONG])
def test_wrong_input_is_told_before_a_run_begins(argv: list[str], words: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["collective", *argv]) == 1
    assert words in capsys.readouterr().err
    assert not (place / ".nodectl").exists()


def test_one_rank_alone_is_no_pass(place: Path) -> None:
    """Really run, on this machine: there is nobody to exchange anything with."""
    assert run(["collective", "all_reduce", "hosts.yaml", "--run-dir", "r"]) == 3
    here = json.loads((place / "r" / "report.json").read_text())["hosts"]["here"]
    assert here["verdict"] == "unknown"
    assert any("fewer than two ranks" in check["reason"] for check in here["checks"])
