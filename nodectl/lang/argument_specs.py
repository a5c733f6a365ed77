"""What a role says about its arguments (meta/argument_specs.yml), checked against what it gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodectl.lang.document import bare
from nodectl.lang.role import Role
from nodectl.lang.unsafe import has_template
from nodectl.wire.params import Param, Problem, Wrong, convert

# Ansible's types of argument specs in the words of wire.params; what is not here is taken as it is.
_TYPES = {"str": "str", "int": "int", "float": "float", "bool": "bool", "list": "list", "dict": "dict", "path": "path", "raw": "raw"}


def options_of(role: Role, entry: str = "main") -> dict[str, Any]:
    """The options that the role declares for ``entry`` (its tasks_from); empty when it declares none."""
    spec = role.argument_specs.get(entry)
    options = spec.get("options") if isinstance(spec, dict) else None
    return options if isinstance(options, dict) else {}


def check(role: Role, variables: Mapping[str, Any], entry: str = "main") -> list[Problem]:
    """What is wrong with the variables a role is about to run with; empty when all is well.

    ``variables`` must give rendered values (``template.LazyVariables`` does). Its errors for a variable that is
    asked for and cannot be rendered pass through.
    """
    return _check_options(options_of(role, entry), variables, "")


def check_literal(role: Role, params: Mapping[str, Any], entry: str = "main") -> list[Problem]:
    """As ``check``, for the parameters written where the role is used: templates are left for the run, nothing is required yet.

    A name that is neither declared nor has a default is a problem here: it is most often a typo.
    """
    options = options_of(role, entry)
    problems = []
    for name, value in params.items():
        if options and name not in options and name not in role.defaults and name not in role.vars:
            problems.append(Problem(name, f"role '{role.name}' has no argument '{name}'"))
        elif name in options and not _has_template(value):
            problems += _check_one(name, options[name], value)
    return problems


def check_value(role: Role, name: str, value: Any, entry: str = "main") -> list[Problem]:
    """One variable that the role declares, as it was written; templates are left for the run."""
    return [] if _has_template(value) else _check_one(name, options_of(role, entry)[name], bare(value))


def _check_options(options: Mapping[str, Any], values: Mapping[str, Any], prefix: str) -> list[Problem]:
    problems = []
    for name, option in options.items():
        if name in values and values[name] is not None:
            problems += _check_one(prefix + name, option, values[name])
        elif isinstance(option, dict) and option.get("required") is True:
            problems.append(Problem(prefix + name, f"'{prefix}{name}' is required"))
    return problems


def _check_one(name: str, option: Any, value: Any) -> list[Problem]:
    option = option if isinstance(option, dict) else {}
    try:
        convert(_param(option), value)
    except Wrong as wrong:
        return [Problem(name, f"'{name}' {wrong}")]
    inner = option.get("options")
    if not isinstance(inner, dict):
        return []
    parts = value if isinstance(value, list) else [value]
    return [problem for place, part in enumerate(parts) for problem in _check_inner(inner, part, f"{name}[{place}]" if isinstance(value, list) else name)]


def _check_inner(options: Mapping[str, Any], value: Any, name: str) -> list[Problem]:
    if not isinstance(value, Mapping):
        return [Problem(name, f"'{name}' wants a mapping")]
    unknown = [Problem(f"{name}.{key}", f"'{name}' has no key '{key}'; expected {', '.join(options)}") for key in value if key not in options]
    return unknown + _check_options(options, value, f"{name}.")


def _param(option: Mapping[str, Any]) -> Param:
    choices = option.get("choices")
    elements = _TYPES.get(str(option.get("elements", "")), "")
    return Param(_TYPES.get(str(option.get("type", "str")), "raw"), choices=tuple(choices) if isinstance(choices, list) else (), elements=elements)


def _has_template(value: Any) -> bool:
    if isinstance(value, str):
        return has_template(value)
    if isinstance(value, dict):
        return any(map(_has_template, value.values()))
    return isinstance(value, list) and any(map(_has_template, value))
