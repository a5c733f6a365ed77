"""debconf: answers to the questions that Debian packages ask when they are configured."""

from __future__ import annotations

from typing import Any, Dict, List

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.agent.text_file import one_line
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Set the answer to a package's question before the package is configured; without a question, read the answers.",
    params={
        "name": Param("str", "package name", required=True, aliases=("pkg",)),
        "question": Param("str", "the question", aliases=("selection", "setting")),
        "vtype": Param(
            "str", "type of the answer",
            choices=("boolean", "error", "multiselect", "note", "password", "seen", "select", "string", "text", "title"),
        ),
        "value": Param("raw", "the answer; a list for multiselect", aliases=("answer",)),
        "unseen": Param("bool", "do not mark the question as asked", default=False),
    },
    required_together=(("question", "vtype", "value"),),
    returns={"previous": "question → answer as it was", "current": "question → answer as it is; all questions where none was given"},
    example="- debconf:\n    name: locales\n    question: locales/default_environment_locale\n    vtype: select\n    value: en_US.UTF-8\n",
)


def read(system: System, args: Args) -> State:
    if not args["name"] or args["name"].startswith("-") or len(args["name"].split()) != 1:
        raise Failed(f"{args['name']!r} is no package name")
    done = system.run(["debconf-show", args["name"]])
    if done.rc != 0:
        raise Failed(f"debconf-show {args['name']}: {done.stderr.strip()}", rc=done.rc, stderr=done.stderr)
    pairs = [line.partition(":") for line in done.stdout.splitlines() if ":" in line]
    answers = {key.strip("* ").strip(): value.strip() for key, _, value in pairs}
    if args["vtype"] == "password" and args["question"] in answers:
        answers[args["question"]] = _password(system, args["question"])
    return {"answers": answers}


def _password(system: System, question: str) -> str:
    """debconf-show hides it; debconf-communicate speaks the protocol itself."""
    done = system.run(["debconf-communicate"], stdin=f"GET {question}\n".encode())
    return done.stdout.strip()[2:] if done.stdout.startswith("0 ") else ""


def wished(args: Args) -> str:
    """The answer as debconf keeps it. Raises Failed for one that is no line."""
    value = args["value"]
    if isinstance(value, list):
        value = ", ".join(sorted(str(part) for part in value))
    text = str(value).lower() if args["vtype"] == "boolean" else str(value)
    return one_line("value", text)


def _parts(args: Args, text: str) -> List[str]:
    return sorted(part.strip() for part in text.split(",")) if isinstance(args["value"], list) else [text]


def diff(args: Args, state: State) -> Change:
    if args["question"] is None:
        return Change(data={"previous": state["answers"]})
    question, wish = one_line("question", args["question"]), wished(args)
    there = state["answers"].get(question)
    same = there is not None and _parts(args, wish) == _parts(args, there)
    steps = [] if same else [f"answer {question} of {args['name']}"]
    shown = args["vtype"] != "password"  # the answer may be a secret: only that it changes is told
    before, after = (f"{question} = {text}\n" if shown else "" for text in (there or "", wish))
    return Change(steps, before, after, args["name"], args["name"], {"previous": {question: there or ""}})


def write(system: System, args: Args, state: State, change: Change) -> None:
    line = f"{args['name']} {args['question']} {args['vtype']} {wished(args)}\n"
    done = system.run(["debconf-set-selections", *(["-u"] if args["unseen"] else [])], stdin=line.encode())
    if done.rc != 0:
        raise Failed(f"debconf-set-selections: {done.stderr.strip()}", rc=done.rc)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    if args["vtype"] == "password":
        return {}
    if not change:
        return {"current": state["answers"]}
    return {"current": {args["question"]: wished(args)}, "previous": change.data["previous"]}
