"""read, diff, write, read again: with small modules of the test's own in the catalogue's place."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from typing import Any

import pytest

from nodectl.agent import catalogue
from nodectl.agent.contract import Failed
from nodectl.wire.outcome import Change, Outcome
from nodectl.wire.params import Param, Spec
from tests.agent.conftest import RunModule

Install = Callable[..., list[str]]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """install(read=…, diff=…, …) puts a module "toy" in the catalogue; returns the list in which its calls are noted."""

    def put(**parts: Any) -> list[str]:
        calls: list[str] = []
        toy = types.ModuleType("toy")
        toy.SPEC = Spec("a toy", {"wish": Param("int", default=1), "word": Param()})  # type: ignore[attr-defined]
        for name, part in parts.items():
            def noted(*args: Any, _name: str = name, _part: Any = part, **more: Any) -> Any:
                calls.append(_name)
                return _part(*args, **more)
            setattr(toy, name, noted)
        monkeypatch.setattr(catalogue, "module", lambda name: toy)
        return calls

    return put


class Node:
    """Something with one number that can be set, or that refuses to change."""

    def __init__(self, number: int = 0, stubborn: bool = False) -> None:
        self.number, self.stubborn = number, stubborn

    def parts(self) -> dict[str, Any]:
        return {
            "read": lambda system, args: {"number": self.number},
            "diff": lambda args, state: Change([f"set {args['wish']}"], str(state["number"]), str(args["wish"])) if args["wish"] != state["number"] else Change(),
            "write": self.write,
            "values": lambda args, state, change: {"number": state["number"]},
        }

    def write(self, system: Any, args: Any, state: Any, change: Any) -> None:
        if not self.stubborn:
            self.number = args["wish"]


def test_change(install: Install, run: RunModule) -> None:
    calls = install(**Node().parts())
    outcome = run("toy", {"wish": 5})
    assert (outcome.changed, outcome.failed, outcome.values) == (True, False, {"number": 5})
    assert calls == ["read", "diff", "write", "read", "diff", "values"]
    assert outcome.diff == [{"before": "0", "after": "5", "before_header": "", "after_header": ""}]


def test_nothing_to_do_writes_nothing(install: Install, run: RunModule) -> None:
    calls = install(**Node(5).parts())
    outcome = run("toy", {"wish": 5})
    assert (outcome.changed, outcome.diff, outcome.msg) == (False, [], "")
    assert "write" not in calls


def test_check_mode_stops_after_diff(install: Install, run: RunModule) -> None:
    node = Node()
    calls = install(**node.parts())
    outcome = run("toy", {"wish": 5}, check=True)
    assert (outcome.changed, outcome.values) == (True, {"number": 0})
    assert calls == ["read", "diff", "values"]
    assert node.number == 0


def test_what_does_not_take_is_a_failure(install: Install, run: RunModule) -> None:
    install(**Node(stubborn=True).parts())
    outcome = run("toy", {"wish": 5})
    assert (outcome.changed, outcome.failed) == (True, True)
    assert outcome.msg.startswith("did not take: set 5")


def test_diff_only_when_asked(install: Install, run: RunModule) -> None:
    install(**Node().parts())
    assert run("toy", {"wish": 5}, diff=False).diff == []


def test_a_change_without_texts_shows_its_sentences(install: Install, run: RunModule) -> None:
    node = Node()
    install(**{**node.parts(), "diff": lambda args, state: Change(["turn it on"]) if not node.number else Change()})
    assert run("toy", {"wish": 1}).diff[0]["after"] == "turn it on\n"


def test_arguments_are_checked_before_anything(install: Install, run: RunModule) -> None:
    calls = install(**Node().parts())
    outcome = run("toy", {"wish": "many", "colour": "red"})
    assert outcome.failed
    assert "unknown parameter 'colour'" in outcome.msg
    assert "'wish' wants a whole number" in outcome.msg
    assert calls == []


def bad(error: BaseException) -> Callable[..., Any]:
    def act(*args: Any) -> Any:
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "words", "values"),
    [
        (Failed("the disk says no", rc=5), "^the disk says no$", {"rc": 5}),
        (PermissionError(13, "Permission denied", "/etc/x"), "^toy: Permission denied: /etc/x$", None),
        (ZeroDivisionError("division"), "bug of ours and not of the node: module toy: ZeroDivisionError: division", None),
        (KeyError("x"), "bug of ours", None),
    ],
)
def test_failures(install: Install, run: RunModule, error: BaseException, words: str, values: dict[str, Any] | None) -> None:
    install(act=bad(error))
    outcome = run("toy", {})
    assert outcome.failed
    assert re.search(words, outcome.msg)
    if values is None:
        assert "Traceback" in outcome.values["exception"]
    else:
        assert outcome.values == values


def test_act_is_told_about_check_mode(install: Install, run: RunModule) -> None:
    install(act=lambda system, args, check: Outcome(values={"check": check}))
    assert run("toy", {}, check=True).values == {"check": True}


def test_an_unknown_module(run: RunModule) -> None:
    outcome = run("no_such_module", {})
    assert outcome.failed
    assert "no module 'no_such_module'" in outcome.msg


def test_the_steps_own_time_limit(install: Install, run: RunModule) -> None:
    install(act=lambda system, args, check: system.sleep(50))
    outcome = run("toy", {}, timeout=0.2)
    assert outcome.failed
    assert outcome.msg == "toy did not end within the 0.2 s that the task allows"


@pytest.mark.parametrize("name", sorted(catalogue.MODULES))
def test_every_module_keeps_the_contract(name: str) -> None:
    module, spec = catalogue.module(name), catalogue.spec(name)
    state = all(hasattr(module, part) for part in ("read", "diff", "write"))
    assert state != hasattr(module, "act"), "either read, diff, write or act"
    assert spec.summary
    assert spec.example
    assert spec.free_form == "" or spec.free_form in spec.params
    named = {key for group in (*spec.mutually_exclusive, *spec.required_one_of, *spec.required_together) for key in group}
    named |= {key for rule in spec.required_if for key in (rule[0], *rule[2])}
    assert named <= set(spec.params)
    for key, param in spec.params.items():
        assert param.help, f"{key} has no help"
