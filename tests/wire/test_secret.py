"""A Secret gives its text to reveal() and to nobody else."""

from __future__ import annotations

import copy
import io
import json
import logging
import pickle
import pprint
import string
import subprocess
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodectl.report.journal import Journal, read_journal
from nodectl.wire.event import Event
from nodectl.wire.secret import MASK, Secret

TEXT = "correct horse battery"
SECRET = Secret(TEXT)


def logged(secret: Secret) -> str:
    stream = io.StringIO()
    logger = logging.getLogger("nodectl.tests.secret")
    logger.addHandler(logging.StreamHandler(stream))
    logger.warning("the password is %s, or %r", secret, secret)
    return stream.getvalue()


def in_traceback(secret: Secret) -> str:
    try:
        raise ValueError("cannot use", secret)
    except ValueError as error:
        return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())


def journalled(secret: Secret, folder: Path) -> str:
    journal = Journal(folder / "events.jsonl")
    journal(Event("task.end", 1.0, "n1", {"result": {"a": [secret]}}))
    journal.close()
    return repr(read_journal(folder / "events.jsonl"))


# every way that turns a value into text somewhere in a program
WAYS: list[tuple[str, Callable[[Secret], str]]] = [
    ("str", str),
    ("repr", repr),
    ("ascii", ascii),
    ("format", format),
    ("format with a width", lambda s: format(s, ">40")),
    ("f-string", lambda s: f"{s}"),
    ("f-string !r", lambda s: f"{s!r}"),
    ("f-string with a width", lambda s: f"{s:<40}|"),
    ("percent", lambda s: "%s %r" % (s, s)),  # noqa: UP031
    ("str.format", "{0} {0!r} {0:s}".format),
    ("format_map", lambda s: "{x}".format_map({"x": s})),
    ("Template", lambda s: string.Template("$x").substitute(x=s)),
    ("in a list", lambda s: str([s, {"a": s}, (s,)])),
    ("pprint", pprint.pformat),
    ("logging", logged),
    ("traceback with locals", in_traceback),
    ("json with default=str", lambda s: json.dumps({"a": s}, default=str)),
    ("exception", lambda s: str(ValueError(s))),
    ("attributes", lambda s: repr([getattr(s, name, None) for name in dir(s) if name.startswith("__") and name not in ("__hash__",)])),
]


@pytest.mark.parametrize(("name", "way"), WAYS, ids=[name for name, _ in WAYS])
def test_no_way_to_text_shows_it(name: str, way: Callable[[Secret], str]) -> None:
    assert TEXT not in way(SECRET)


@pytest.mark.parametrize("way", [str, format, lambda s: f"{s:>99}"])
def test_the_mask_has_one_length(way: Callable[[Secret], str]) -> None:
    """Also a short secret: its length is nobody's business."""
    assert way(Secret("x")) == way(SECRET) == MASK


def test_the_journal_masks_it(tmp_path: Path) -> None:
    shown = journalled(SECRET, tmp_path)
    assert MASK in shown
    assert TEXT not in shown
    assert TEXT.encode() not in (tmp_path / "events.jsonl").read_bytes()


REFUSED: list[tuple[str, Callable[[Any], Any]]] = [
    ("json", lambda s: json.dumps({"a": s})),
    ("pickle", pickle.dumps),
    ("pickle 0", lambda s: pickle.dumps(s, 0)),
    ("pickle inside", lambda s: pickle.dumps([s])),
    ("copy", copy.copy),
    ("deepcopy", copy.deepcopy),
    ("join", lambda s: "".join([s])),
    ("add", lambda s: "x" + s),
    ("iterate", list),
    ("len", len),
    ("index", lambda s: s[0]),
    ("bytes", bytes),
    ("vars", vars),
    ("write", lambda s: io.StringIO().write(s)),
    ("environment", lambda s: subprocess.run(["true"], env={"A": s})),
    ("argv", lambda s: subprocess.run(["true", s])),
    ("new attribute", lambda s: setattr(s, "shown", True)),
]


@pytest.mark.parametrize(("name", "use"), REFUSED, ids=[name for name, _ in REFUSED])
def test_what_would_need_the_text_is_refused(name: str, use: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, AttributeError)) as refusal:
        use(SECRET)
    assert TEXT not in str(refusal.value)


def test_it_reveals_compares_and_hashes() -> None:
    assert SECRET.reveal() == TEXT
    assert Secret(TEXT) == SECRET
    assert Secret("other") != SECRET
    assert TEXT != SECRET
    assert len({SECRET, Secret(TEXT), TEXT}) == 2
