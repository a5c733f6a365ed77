"""How a module declares its parameters.

One declaration serves three readers: the check at load time (with positions), the agent on the node, and `nodectl doc`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple


@dataclass(frozen=True)
class Param:
    """One parameter. ``type`` is one of str, int, float, bool, list, dict, path, mode, raw.

    ``mode`` takes octal text ("0644") or symbolic text ("u=rw,go=r"); a bare integer is refused, because `mode: 644`
    is the decimal number 644, that is 01204.
    """

    type: str = "str"
    help: str = ""
    required: bool = False
    default: Any = None
    choices: Tuple[Any, ...] = ()
    aliases: Tuple[str, ...] = ()
    elements: str = ""
    secret: bool = False


@dataclass(frozen=True)
class Spec:
    """The parameters of one module and the rules between them.

    ``free_form`` names the parameter that takes the text of `command: echo hi`.
    ``returns`` maps each documented return value to one sentence. ``example`` is a YAML task.
    ``open`` means that any further name is taken as it is (set_fact, whose parameters are the user's own names).
    """

    summary: str
    params: Mapping[str, Param]
    free_form: str = ""
    mutually_exclusive: Tuple[Tuple[str, ...], ...] = ()
    required_one_of: Tuple[Tuple[str, ...], ...] = ()
    required_together: Tuple[Tuple[str, ...], ...] = ()
    required_if: Tuple[Tuple[str, Any, Tuple[str, ...]], ...] = ()
    returns: Mapping[str, str] = field(default_factory=dict)
    example: str = ""
    open: bool = False

    def canonical(self, name: str) -> Optional[str]:
        """The parameter that ``name`` (or an alias) means, or None."""
        if name in self.params:
            return name
        for key, param in self.params.items():
            if name in param.aliases:
                return key
        return None


class Problem(NamedTuple):
    """One thing wrong with the arguments; ``param`` is the name as it was written, or "" when it is about several."""

    param: str
    message: str


class Wrong(ValueError):
    """A value does not have the declared type; the text says what was expected."""


_TRUE = frozenset(["yes", "on", "1", "true", "t", "y"])
_FALSE = frozenset(["no", "off", "0", "false", "f", "n"])
_MODE = re.compile(r"^(0?[0-7]{3,4}|([ugoa]*[-+=]([rwxXst]*|[ugo]))(,[ugoa]*[-+=]([rwxXst]*|[ugo]))*)\Z")
_MODE_BITS = 0o7777


def _text(value: Any) -> str:
    if isinstance(value, bool):
        raise Wrong(f"wants text, but this is the boolean {str(value).lower()}: quote it")
    if isinstance(value, (str, int, float)):
        return str(value)
    raise Wrong(f"wants text, not a {_kind(value)}")


def _int(value: Any) -> int:
    if isinstance(value, (bool, list, dict)) or value is None:
        raise Wrong(f"wants a whole number, not a {_kind(value)}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not number.is_integer():  # neither 1.5 nor nan nor inf is one
        raise Wrong(f"wants a whole number, not {value!r}")
    # A float holds 53 bits: digits are read as they stand; "1.0" and "1e3" are whole numbers too.
    digits = isinstance(value, int) or (isinstance(value, str) and value.strip().lstrip("+-").isdecimal())
    return int(value) if digits else int(number)


def _float(value: Any) -> float:
    if isinstance(value, (bool, list, dict)) or value is None:
        raise Wrong(f"wants a number, not a {_kind(value)}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):  # a timeout of nan never ends, and one of inf is not bounded
        raise Wrong(f"wants a number, not {value!r}")
    return number


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise Wrong(f"wants true or false, not {value!r}")


def _list(value: Any) -> List[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")] if value else []
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return [str(value)]  # the text of one word, as in Ansible
    if isinstance(value, dict) or value is None:
        raise Wrong(f"wants a list, not a {_kind(value)}")
    return [value]


def _dict(value: Any) -> Dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise Wrong(f"wants a mapping, not a {_kind(value)}")


def _mode(value: Any) -> str:
    if isinstance(value, OctalInt) and 0 <= value <= _MODE_BITS:
        return format(int(value), "04o")
    if isinstance(value, int) and not isinstance(value, (bool, OctalInt)):
        raise Wrong(f"is the decimal number {value}, which would be mode {value:04o}: write '0644' or \"u=rw,g=r,o=r\" in quotes")
    if isinstance(value, str) and (value == "preserve" or _MODE.match(value)):
        return value
    raise Wrong(f"wants an octal mode in quotes such as '0644', not {value!r}")


def _raw(value: Any) -> Any:
    return value


class OctalInt(int):
    """An integer that the YAML text wrote in octal (0644): its meaning as a mode is not in doubt."""


_CONVERT: Dict[str, Callable[[Any], Any]] = {
    "str": _text, "path": _text, "int": _int, "float": _float, "bool": _bool, "list": _list, "dict": _dict, "mode": _mode, "raw": _raw,
}


def _kind(value: Any) -> str:
    names = {dict: "mapping", list: "list", tuple: "list", type(None): "null (nothing)", bool: "boolean", int: "number", float: "number", str: "text"}
    return names.get(type(value), type(value).__name__)


def convert(param: Param, value: Any) -> Any:
    """``value`` as the declared type; raises Wrong with the reason."""
    result = _CONVERT[param.type](value)
    if param.type == "list" and param.elements:
        result = [_CONVERT[param.elements](item) for item in result]
    if param.choices:
        for item in result if param.type == "list" else [result]:
            if item not in param.choices:
                raise Wrong(f"is {item!r}; expected one of {', '.join(map(str, param.choices))}")
    return result


def _fresh(default: Any) -> Any:
    """A default of its own for each step: what a module does with its list must not reach the next one."""
    return list(default) if isinstance(default, list) else dict(default) if isinstance(default, dict) else default


def check_names(spec: Spec, given: Sequence[str]) -> List[Problem]:
    """Unknown, doubled and missing names; needs no values, so it runs at load time on templated arguments too."""
    problems = []
    seen: Dict[str, str] = {}
    for name in given:
        key = spec.canonical(name) or (name if spec.open else None)
        if key is None:
            problems.append(Problem(name, f"unknown parameter '{name}'"))
        elif key in seen:
            problems.append(Problem(name, f"'{name}' and '{seen[key]}' are the same parameter"))
        else:
            seen[key] = name
    for key, param in spec.params.items():
        if param.required and key not in seen:
            problems.append(Problem("", f"missing parameter '{key}'"))
    return problems + _check_groups(spec, seen)


def _check_groups(spec: Spec, seen: Mapping[str, str]) -> List[Problem]:
    def given(names: Tuple[str, ...]) -> int:
        return sum(name in seen for name in names)

    together = [f"{' and '.join(names)} cannot be given together" for names in spec.mutually_exclusive if given(names) > 1]
    none = [f"one of {', '.join(names)} is needed" for names in spec.required_one_of if not given(names)]
    half = [f"{' and '.join(names)} are needed together" for names in spec.required_together if 0 < given(names) < len(names)]
    return [Problem("", text) for text in together + none + half]


def validate(spec: Spec, args: Mapping[str, Any]) -> Tuple[Dict[str, Any], List[Problem]]:
    """(values under canonical names with defaults filled in, problems). Values of wrong type are left out.

    A value of None counts as not given: a required parameter is then missing. The user's own names of an open spec keep it.
    """
    given = {name: value for name, value in args.items() if value is not None or spec.canonical(name) is None}
    problems = check_names(spec, list(given))
    values = {key: _fresh(param.default) for key, param in spec.params.items()}
    for name, value in given.items():
        key = spec.canonical(name)
        if key is None:
            if spec.open:
                values[name] = value
            continue
        try:
            values[key] = convert(spec.params[key], value)
        except Wrong as wrong:
            problems.append(Problem(name, f"'{name}' {wrong}"))
    for key, wanted, needed in spec.required_if:
        if values.get(key) == wanted:
            problems += [Problem("", f"'{n}' is needed when {key} is {wanted}") for n in needed if values.get(n) is None]
    return values, problems
