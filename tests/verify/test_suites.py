"""Suites: the shipped ones load, and a wrong one says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodectl.transport.channel import Limits
from nodectl.verify.bounds import longest
from nodectl.verify.suite_load import SuiteError, load_suite, suite_of

LOGIN = '[[step]]\nkind = "login"\ndeadline = 20\n'
FIRST = '[[step]]\nkind = "route"\ndeadline = 20\n[[step]]\nkind = "torch"\ndeadline = 20\n'
GROUP = FIRST + '[[step]]\nkind = "all_reduce"\ndeadline = 60\nsizes = ["8 MiB", "1 MiB"]\ngpu_sizes = ["1 GiB"]\niterations = 5\nwarmup = 0\ntimeout = "20 s"\n'


@pytest.mark.parametrize("name", ["burnin", "preflight", "quick"])
def test_shipped(name: str) -> None:
    suite = load_suite(name)
    assert suite.name == name
    assert suite.summary
    assert [step.kind for step in suite.steps][:2] == ["login", "pci"]


def test_storage_comes_after_the_network() -> None:
    kinds = [step.kind for step in load_suite("preflight").steps]
    assert kinds.index("pairs") < kinds.index("all_reduce") < kinds.index("scratch") < kinds.index("phases")


def test_texts_become_base_units() -> None:
    step = suite_of(GROUP, "x").steps[-1]
    assert step.sizes == (2**20, 2**23)
    assert step.gpu_sizes == (2**30,)
    assert (step.deadline, step.option("timeout"), step.option("warmup")) == (60.0, 20.0, 0.0)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(LOGIN)
    assert load_suite(str(path)).name == "mine"


REFUSED = [
    ("x = 1\n", "unknown key x"), ("summary = 'x'\n", "prove nothing"), ("[[step", "not TOML"), (LOGIN + LOGIN, "stands there twice"),
    (LOGIN.replace("login", "logon"), "unknown kind 'logon'"), (LOGIN.replace("deadline", "deadlin"), "unknown key deadlin"), ('[[step]]\nkind = "login"\n', "missing deadline"),
    (LOGIN.replace("20", "0"), "more than zero"), (LOGIN.replace("20", '"long"'), "not a quantity"), (LOGIN.replace("20", '"20 MB"'), "measures B"),
    (GROUP.removeprefix(FIRST), "all_reduce needs what route and torch finds out"),
    (LOGIN.replace("20", "nan"), "finite number"), (LOGIN.replace("20", "inf"), "finite number"), (LOGIN.replace("20", "-5"), "finite number"),
    (LOGIN.replace("20", "true"), "not a quantity"), (LOGIN.replace("20", "[20]"), "not a quantity"), (LOGIN.replace('"login"', "7"), "unknown kind 7"),
    (GROUP.replace('sizes = ["8 MiB", "1 MiB"]', 'sizes = ["8 MiB", 0]', 1), "more than zero"), (GROUP.replace("warmup = 0", "warmup = -1"), "finite number"),
    ("step = 3\n", "two brackets"), ("[step]\nkind = 'login'\n", "two brackets"), ("step = [1]\n", "two brackets"),
    (GROUP.replace('sizes = ["8 MiB", "1 MiB"]', "sizes = 8", 1), "expected a list of sizes"), (GROUP.replace('sizes = ["8 MiB", "1 MiB"]', "sizes = []", 1), "expected a list of sizes"),
    (GROUP.replace("iterations = 5", "iterations = 0.5"), "expected a whole number"), (LOGIN.replace("20", '"2000 min"'), "at most a day"),
    ('[[step]]\nkind = "phases"\ndeadline = 9\nmodel_size = 1\ncheckpoint_size = 1\nbatches = 1\nbatch_size = 1\n', "phases needs what mounts finds out"),
    (GROUP.replace("iterations = 5\n", ""), "missing iterations"), (GROUP.replace("8 MiB", "8 MB/s"), "measures B/s"), (GROUP + "rounds = 3\n", "unknown key rounds"),
    (LOGIN + "repeat = 0\n", "expected more than zero"), (LOGIN + "repeat = 1.5\n", "expected a whole number"), (LOGIN + 'repeat = "10 s"\n', "measures s"),
    (LOGIN + "repeat = 100000\n", "at most 1000"), (LOGIN + "repeat = true\n", "not a quantity"), (LOGIN.replace("login", "loggin"), "did you mean 'login'"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_refused(text: str, words: str) -> None:
    with pytest.raises(SuiteError, match=words):
        suite_of(text, "case")


def test_all_mistakes_at_once_each_at_its_place() -> None:
    text = "# mine\n" + LOGIN.replace("20", "0") + "\n" + LOGIN.replace("login", "clok") + FIRST + GROUP.removeprefix(FIRST).replace("iterations = 5", "itrations = 5").replace("20 s", "20 m")
    with pytest.raises(SuiteError) as refusal:
        suite_of(text, "mine", "mine.toml")
    lines = text.splitlines()
    found = [(one.message, one.origin) for one in refusal.value.diagnostics]
    assert len(found) == 5
    marked = [lines[at.line - 1][at.column - 1:][: at.width] for _, at in found if at]
    assert marked == ["0", '"clok"', "itrations", "[[step]]", '"20 m"']
    assert all(at is not None and at.file == "mine.toml" for _, at in found)


def test_order_is_told_at_the_step_that_comes_too_early() -> None:
    with pytest.raises(SuiteError) as refusal:
        suite_of(GROUP.removeprefix(FIRST) + FIRST, "x", "x.toml")
    (one,) = refusal.value.diagnostics
    assert one.origin == ("x.toml", 2, 8, 12)


def test_repeat_multiplies_the_bound() -> None:
    once, thrice = suite_of(LOGIN, "x"), suite_of(LOGIN + "repeat = 3\n", "x")
    assert (once.steps[0].repeat, thrice.steps[0].repeat) == (1, 3)
    assert longest(thrice, 0) - longest(once, 0) == 2 * 30


def test_burn_in_repeats_what_wears() -> None:
    repeated = {step.kind for step in load_suite("burnin").steps if step.repeat > 1}
    assert {"all_reduce", "node_all_reduce", "scratch", "phases"} <= repeated
    assert {step.kind for step in load_suite("preflight").steps} <= {step.kind for step in load_suite("burnin").steps}
    assert longest(load_suite("burnin"), 2, nodes=16) < 24 * 3600


def test_an_unknown_name_lists_what_is_there() -> None:
    with pytest.raises(SuiteError, match="burnin, preflight, quick"):
        load_suite("prefight")


def test_the_bound_counts_every_round_retry_and_cleanup() -> None:
    limits = Limits(connect=5, start=5)
    pairs = GROUP.replace("all_reduce", "pairs") + "rounds = 3\n"
    assert longest(suite_of(LOGIN, "x"), 0, limits) == 20 + 30 + 30
    # connections 20, what a scheduler must know 30; route and torch twice 20 + 10, for full packets and two interpreters; a group: port 10 + 10, deadline 60 + 10, once more 40 for a taken port; three rounds, two for suspects, two for contested ones and two looks at slow ranks; three attempts, once more, and the looks
    assert longest(suite_of(pairs, "x"), 0, limits) == 20 + 30 + 120 + 10 * 130
    assert longest(suite_of(GROUP, "x"), 0, limits) == 20 + 30 + 120 + 6 * 130
    assert longest(load_suite("preflight"), 3) > longest(load_suite("preflight"), 2)
    # Beside all that is measured, ten minutes in which caches may still be uploading.
    assert longest(load_suite("preflight"), 2) < 7500 + 700
