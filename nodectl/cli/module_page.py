"""A module's page from its declaration: the same Spec that is checked at load time and on the node, so the page cannot be wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator

from nodectl.wire.params import Param, Spec


def module_page(name: str, spec: Spec) -> str:
    """The page as Markdown, with a newline at its end."""
    return "\n".join([*_head(name, spec), *_params(spec), *_rules(spec), *_returns(spec), *_example(spec)]).rstrip() + "\n"


def _head(name: str, spec: Spec) -> Iterator[str]:
    yield f"# {name}"
    yield ""
    yield spec.summary
    yield ""


def _params(spec: Spec) -> Iterator[str]:
    if not spec.params:
        return
    yield "| parameter | type | default | meaning |"
    yield "|---|---|---|---|"
    for name, param in spec.params.items():
        yield f"| {_name(name, param)} | {_type(param)} | {_default(param)} | {_cell(_meaning(name, param, spec))} |"
    yield ""


def _name(name: str, param: Param) -> str:
    aliases = f" ({', '.join(param.aliases)})" if param.aliases else ""
    return f"`{name}`{aliases}"


def _type(param: Param) -> str:
    return f"list of {param.elements}" if param.type == "list" and param.elements else param.type


def _default(param: Param) -> str:
    if param.required:
        return "**required**"
    return "" if param.default is None else f"`{_cell(json.dumps(param.default))}`"


def _meaning(name: str, param: Param, spec: Spec) -> str:
    parts = [param.help.rstrip(".")] if param.help else []
    if param.choices:
        parts.append("one of " + ", ".join(f"`{_choice(choice)}`" for choice in param.choices))
    if param.secret:
        parts.append("secret: never shown")
    if spec.free_form == name:
        parts.append("may stand behind the module's name")
    return "; ".join(parts)


def _choice(value: object) -> str:
    """A line break as its escape: it would end the row."""
    text = str(value)
    return text if text.isprintable() else json.dumps(text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _rules(spec: Spec) -> Iterator[str]:
    rules = [f"not together: {', '.join(names)}" for names in spec.mutually_exclusive]
    rules += [f"at least one of: {', '.join(names)}" for names in spec.required_one_of]
    rules += [f"only together: {', '.join(names)}" for names in spec.required_together]
    rules += [f"`{key}: {value}` needs: {', '.join(names)}" for key, value, names in spec.required_if]
    if rules:
        yield from (f"- {rule}" for rule in rules)
        yield ""


def _returns(spec: Spec) -> Iterator[str]:
    if spec.returns:
        yield "Returns, beside `changed` and `msg`:"
        yield ""
        yield from (f"- `{name}`: {text}" for name, text in spec.returns.items())
        yield ""


def _example(spec: Spec) -> Iterator[str]:
    if spec.example:
        yield "```yaml"
        yield spec.example.strip("\n")
        yield "```"
