"""Which module a task calls, and whether its arguments can be right; all that can be known before any value is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodectl.lang import freeform, keywords
from nodectl.lang.ansible_modules import ANSIBLE_MODULES, NOT_HERE
from nodectl.lang.document import Map, Seq, bare
from nodectl.lang.fields import Checker, Fields, is_template, kind_of, nearest
from nodectl.lang.unsafe import has_template
from nodectl.wire.origin import Origin
from nodectl.wire.params import Param, Spec, Wrong, check_names, convert

Known = Callable[[str], "Spec | None"]

# Tasks that the loader resolves itself; the engine never sees them.
IMPORTS = {
    "import_tasks": Spec("Put the tasks of a file here", {"file": Param("path", required=True)}, free_form="file"),
    "import_role": Spec(
        "Put the tasks of a role here",
        {
            "name": Param("str", required=True), "tasks_from": Param("str"), "vars_from": Param("str"), "defaults_from": Param("str"),
            "handlers_from": Param("str"), "allow_duplicates": Param("bool"), "public": Param("bool"), "rolespec_validate": Param("bool"),
        },
    ),
}  # fmt: skip
_WORDS = {
    "mode": "octal in quotes, such as '0644'", "bool": "true or false", "int": "a whole number", "dict": "a mapping", "list": "a list",
    "str": "text", "path": "text",
}  # fmt: skip
_KEYWORDS = frozenset(keywords.TASK)
# Parameters whose value is a condition or an expression without braces.
_CONDITIONS = {("assert", "that")}
_EXPRESSIONS = {("debug", "var")}


@dataclass
class Call:
    """A module and its unevaluated arguments. ``at`` is the place of the module's name."""

    module: str
    args: dict[str, Any]
    at: Origin
    spec: Spec
    local: bool = False
    key_at: dict[str, Origin] = field(default_factory=dict)
    value_at: dict[str, Origin] = field(default_factory=dict)
    raw: dict[str, Any] = field(default_factory=dict)


def short_name(name: str, known: Known) -> str | None:
    """The canonical name of a module, or None when nodectl has no such module."""
    for prefix in ("", *keywords.PREFIXES):
        short = name.removeprefix(prefix)
        if (not prefix or short != name) and "." not in short and (short in IMPORTS or known(short) is not None):
            return short
    return None


def spec_of(name: str, known: Known) -> Spec | None:
    return IMPORTS.get(name) or known(name)


def module_defaults(fields: Fields, known: Known) -> tuple[Map, ...]:
    """The keyword of this name: parameters by the short name of their module. One mapping, or a list of them, the last one winning."""
    return tuple(_defaults(item, at, known, fields.check) for item, at in fields.items("module_defaults") if item is not None)


def _defaults(value: Any, at: Origin, known: Known, checker: Checker) -> Map:
    found = Map(at)
    if not isinstance(value, Map):
        checker.error("E209", f"'module_defaults' wants a mapping, not {kind_of(value)}", at, "expected MODULE: {parameter: value}")
        return found
    for name, item in value.items():
        short, key_at = short_name(str(name), known), value.key_at[name]
        if str(name).startswith("group/"):
            advice = "groups of modules belong to collections: name each module"
            checker.error("E217", f"'{name}' in module_defaults is not supported by nodectl", key_at, "not supported", advice)
        elif short is None and not ansible_only(str(name)):
            checker.error("E203", f"unknown module '{name}'", key_at, "no module of this name", nearest(str(name), _modules(known)))
        elif not isinstance(item, Map):
            checker.error("E209", f"the defaults of '{name}' want a mapping, not {kind_of(item)}", value.value_at[name], "expected parameter: value pairs")
        elif short is not None:
            found[short], found.key_at[short], found.value_at[short] = item, key_at, value.value_at[name]
    return found


def find_call(fields: Fields, known: Known, defaults: Sequence[Map] = ()) -> Call | None:
    """The module call of a task; None (with diagnostics) when there is none or more than one. ``defaults``: module_defaults, outermost first."""
    candidates = [key for key in fields.map if isinstance(key, str) and key not in _KEYWORDS and not key.startswith("with_")]
    named = [key for key in candidates if short_name(key, known)]
    spelled = [key for key in ("action", "local_action") if key in fields]
    for key in [key for key in candidates if key not in named and (named or spelled or key in keywords.REFUSED)]:
        _not_keyword(key, fields)
    rest = [key for key in candidates if key not in named and key not in keywords.REFUSED]
    if not named and not spelled:
        if rest or not candidates:
            _no_module(rest, fields, known)
        return None
    if len(named) + len(spelled) > 1:
        first, second = [*named, *spelled][:2]
        fields.check.error("E205", f"two modules in one task: '{first}' and '{second}'", fields.key_at(second), "a second module", "make it a task of its own")
        return None
    if spelled:
        return _spelled(spelled[0], fields, known, defaults)
    return _call(named[0], fields.map[named[0]], fields.key_at(named[0]), fields.at(named[0]), fields, known, defaults)


def _not_keyword(key: str, fields: Fields) -> None:
    if key in keywords.REFUSED:
        fields.check.error("E217", f"'{key}' is not supported by nodectl", fields.key_at(key), "not supported", keywords.REFUSED[key])
    else:
        fields.check.error("E202", f"unknown keyword '{key}' in a task", fields.key_at(key), "not a keyword", nearest(key, keywords.TASK))


def ansible_only(name: str) -> bool:
    """Whether ``name``, which nodectl does not know, is a module of Ansible, with or without its collection's name."""
    bare_name = next((name.removeprefix(prefix) for prefix in keywords.PREFIXES if name.startswith(prefix)), name)
    return bare_name in ANSIBLE_MODULES


def _modules(known: Known) -> list[str]:
    return [name for name in keywords.COMMON_MODULES if short_name(name, known)]


def _unknown(name: str, at: Origin, words: list[str], fields: Fields) -> None:
    if ansible_only(name):
        label, advice = "not a module of nodectl", NOT_HERE
    else:
        label, advice = "no module of this name", nearest(name.rsplit(".", 1)[-1], words) or "`nodectl doc` lists all modules"
    fields.check.error("E203", f"unknown module '{name}'", at, label, advice)


def _no_module(rest: list[str], fields: Fields, known: Known) -> None:
    modules = _modules(known)
    if not rest:
        fields.check.error("E204", "a task without a module", fields.start, "nothing to do here", "add a module, for example `command:`")
        return
    guesses = [nearest(key, keywords.TASK) for key in rest]
    for key, guess in zip(rest, guesses, strict=True):
        if guess and len(rest) > 1 and not ansible_only(key) and not nearest(key.rsplit(".", 1)[-1], modules):
            _not_keyword(key, fields)
        else:
            _unknown(key, fields.key_at(key), [*modules, *keywords.TASK], fields)


def _spelled(key: str, fields: Fields, known: Known, defaults: Sequence[Map]) -> Call | None:
    """`action: copy src=a dest=b`, `local_action: {module: copy, …}`."""
    value, at = fields.map[key], fields.at(key)
    if isinstance(value, Map) and isinstance(value.get("module"), str):
        name: str = value["module"]
        rest = Map(value.origin)
        for part in (part for part in value if part != "module"):
            rest[part], rest.key_at[part], rest.value_at[part] = value[part], value.key_at[part], value.value_at[part]
        body: Any = rest
    elif isinstance(value, str) and value.strip():
        name, _, body = value.strip().partition(" ")
    else:
        fields.wrong(key, "a module and its arguments", f"write {key}: command echo hi")
        return None
    if short_name(name, known) is None:
        _unknown(name, at, _modules(known), fields)
        return None
    call = _call(name, body or None, at, at, fields, known, defaults)
    if call is not None:
        call.local = key == "local_action"
    return call


def _call(name: str, value: Any, at: Origin, value_at: Origin, fields: Fields, known: Known, defaults: Sequence[Map]) -> Call | None:
    short = short_name(name, known)
    spec = spec_of(short, known) if short else None
    if short is None or spec is None:
        return None
    call = Call(short, {}, at, spec)
    _take_args_keyword(call, fields)
    if isinstance(value, Map):
        _take(call, value)
    elif isinstance(value, str):
        if not _take_text(call, value, value_at, fields.check):
            return None
    elif isinstance(value, (int, float)) and spec.free_form:
        call.raw[spec.free_form], call.key_at[spec.free_form], call.value_at[spec.free_form] = str(value), value_at, value_at
    elif value is not None:
        fields.check.error("E209", f"'{name}' wants parameters, not {kind_of(value)}", value_at, "expected name: value pairs")
        return None
    for layer in reversed(defaults):
        _take_defaults(call, layer)
    _check(call, fields.check)
    call.args = {key: bare(item) for key, item in call.raw.items()}
    return call


def _take_args_keyword(call: Call, fields: Fields) -> None:
    value = fields.map.get("args")
    if isinstance(value, Map):
        _take(call, value)
    elif value is not None:
        fields.wrong("args", "a mapping")


def _take(call: Call, value: Map) -> None:
    for name, item in value.items():
        call.raw[str(name)], call.key_at[str(name)], call.value_at[str(name)] = item, value.key_at[name], value.value_at[name]


def _take_defaults(call: Call, layer: Map) -> None:
    """What the task does not say itself, under whatever name."""
    given = {call.spec.canonical(name) or name for name in call.raw}
    values = layer.get(call.module)
    if not isinstance(values, Map):
        return
    for name in values:
        if (call.spec.canonical(str(name)) or str(name)) not in given:
            call.raw[str(name)], call.key_at[str(name)], call.value_at[str(name)] = values[name], values.key_at[name], values.value_at[name]


def _take_text(call: Call, text: str, at: Origin, checker: Checker) -> bool:
    """Arguments written as one text; False when it cannot be read."""
    free = call.spec.free_form
    try:
        if free:
            names = [name for key, param in call.spec.params.items() for name in (key, *param.aliases) if name != free]
            rest, given = freeform.command_line(text, names)
            given = {**({free: rest} if rest else {}), **given}
        else:
            given = freeform.options(text)
    except freeform.BadText as wrong:
        advice = "" if free else f"write the parameters of {call.module} as name: value lines below it"
        checker.error("E218", f"the arguments of '{call.module}' cannot be read: {wrong}", at, "expected name=value", advice)
        return False
    for name, value in given.items():
        call.raw[name] = value
        call.key_at[name] = call.value_at[name] = at
    return True


def _check(call: Call, checker: Checker) -> None:
    """Names, literal values and template syntax of all arguments."""
    given = [name for name, value in call.raw.items() if value is not None]
    known = [name for key, param in call.spec.params.items() for name in (key, *param.aliases)]
    for problem in check_names(call.spec, given):
        at = call.key_at.get(problem.param, call.at)
        if problem.param and call.spec.canonical(problem.param) is None:
            advice = nearest(problem.param, known) or f"{call.module} takes {', '.join(sorted(call.spec.params))}"
            checker.error("E206", f"unknown parameter '{problem.param}' of module '{call.module}'", at, "not a parameter", advice)
        else:
            checker.error("E208", f"{call.module}: {problem.message}", at, "see `nodectl doc " + call.module + "`")
    for name in given:
        _check_value(call, name, checker)
    _check_needed(call, given, checker)


def _check_value(call: Call, name: str, checker: Checker) -> None:
    value, at = call.raw[name], call.value_at[name]
    if (call.module, name) in _CONDITIONS:
        for item, where in zip(value, value.item_at, strict=True) if isinstance(value, Seq) else [(value, at)]:
            checker.condition(item, where)
        return
    if (call.module, name) in _EXPRESSIONS:
        if isinstance(value, str) and not is_template(value):
            checker.condition(value, at)
        return
    checker.templates(value, at)
    key = call.spec.canonical(name)
    if key is None or key not in call.spec.params or _templated(value):
        return
    try:
        convert(call.spec.params[key], bare(value))
    except Wrong as wrong:
        checker.error("E207", f"{call.module}: '{name}' {wrong}", at, f"expected {_expected(call.spec.params[key])}")


def _expected(param: Param) -> str:
    if param.choices:
        return "one of " + ", ".join(map(str, param.choices))
    return _WORDS.get(param.type, param.type)


def _check_needed(call: Call, given: list[str], checker: Checker) -> None:
    """`required_if`, where the deciding value is written out."""
    present = {call.spec.canonical(name): name for name in given}
    for key, wanted, needed in call.spec.required_if:
        value = call.raw[present[key]] if key in present else call.spec.params[key].default
        if value == wanted and not _templated(value):
            for name in needed:
                if name not in present:
                    where = call.key_at.get(present.get(key, ""), call.at)
                    checker.error("E208", f"{call.module}: '{name}' is needed when {key} is {wanted}", where, f"add {name}:")


def _templated(value: Any) -> bool:
    if isinstance(value, str):
        return has_template(value)
    if isinstance(value, dict):
        return any(_templated(part) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(map(_templated, value))
