"""vars_prompt: asked before the first node is touched, all of it, or told what to give in its place."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from nodectl.diagnostics.model import Collector
from nodectl.lang.playbook import Playbook, Prompt
from nodectl.lang.unsafe import Unsafe
from nodectl.wire.secret import Secret


def check_answers(playbook: Playbook, extra_vars: Mapping[str, Any], found: Collector) -> None:
    """Where nobody can be asked, a question that has no default and no answer in -e is a mistake."""
    if sys.stdin.isatty():
        return
    for prompt in [prompt for play in playbook.plays for prompt in play.prompts]:
        if prompt.name not in extra_vars and prompt.default is None:
            advice = f"give the answer with -e {prompt.name}=…, or run this on a terminal"
            found.error("E410", f"'{prompt.name}' has to be asked for, and there is no terminal", prompt.origin, label="asked here", help=advice)


def answered(playbook: Playbook, extra_vars: Mapping[str, Any]) -> tuple[Playbook, list[Secret]]:
    """The playbook with the answers as variables of its plays, and those of them that are secret. Each name is asked for once."""
    answers: dict[str, Any] = {}
    for prompt in [prompt for play in playbook.plays for prompt in play.prompts]:
        if prompt.name not in extra_vars and prompt.name not in answers:
            answers[prompt.name] = _answer(prompt)
    plays = [replace(play, vars={**play.vars, **{one.name: answers[one.name] for one in play.prompts if one.name in answers}}) for play in playbook.plays]
    return replace(playbook, plays=tuple(plays)), [answer for answer in answers.values() if isinstance(answer, Secret)]


def _answer(prompt: Prompt) -> Any:
    """Never a template, whoever typed it."""
    if sys.stdin.isatty():
        shown = not prompt.private
        text = click.prompt(prompt.text, default=prompt.default, hide_input=not shown, confirmation_prompt=prompt.confirm, err=True, show_default=shown)
    else:
        text = prompt.default or ""
    return Secret(str(text)) if prompt.private else Unsafe(text)
