"""All filters of the language in one table: Jinja's own, and what Ansible adds or changes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jinja2 import Undefined
from jinja2.filters import FILTERS as JINJA

from nodectl.lang.filters_data import DATA_FILTERS
from nodectl.lang.filters_general import GENERAL_FILTERS, UTILS_FILTERS
from nodectl.lang.filters_net import NET_FILTERS
from nodectl.lang.filters_secret import SECRET_FILTERS
from nodectl.lang.filters_text import TEXT_FILTERS
from nodectl.lang.undefined import Broken, Missing

KINDS: Mapping[str, str] = {
    "str": "text", "int": "number", "float": "number", "bool": "boolean", "NoneType": "null", "list": "list", "dict": "mapping",
}  # fmt: skip
# What people write for true and false; as texts all but "" count as true.
WORDS = frozenset(["true", "false", "yes", "no", "on", "off"])
# Jinja's filters that give generators: as lists they can be counted, printed and used twice.
_GENERATORS = ("map", "select", "reject", "selectattr", "rejectattr", "batch", "slice", "reverse", "items")


def kind_of(value: Any) -> str:
    """What a value is, in the words of the messages."""
    return KINDS.get(type_debug(value), type(value).__name__)


def default(value: Any, default_value: Any = "", boolean: bool = False) -> Any:
    if isinstance(value, Broken):
        value._fail_with_undefined_error()
    return default_value if isinstance(value, Undefined) or (boolean and not value) else value


def mandatory(value: Any, msg: str | None = None) -> Any:
    if not isinstance(value, Undefined):
        return value
    raise ValueError(msg or f"mandatory variable '{value._undefined_name}' is not defined")


def type_debug(value: Any) -> str:
    """The type's name; marks that nodectl puts on texts and containers do not show."""
    return next((kind.__name__ for kind in (str, dict, list) if isinstance(value, kind)), type(value).__name__)


def _passing(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is undefined goes through the filter untouched, so that a `default` after it works; anything else fails on it."""

    @functools.wraps(function)
    def passing(*args: Any, **options: Any) -> Any:
        for value in (*args, *options.values()):
            if isinstance(value, Missing):
                return value
        return function(*args, **options)

    return passing


def _listed(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def listed(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        return list(result) if isinstance(result, Iterator) else result

    return listed


def _table() -> dict[str, Callable[..., Any]]:
    table = {**JINJA, **{name: _listed(JINJA[name]) for name in _GENERATORS}, **DATA_FILTERS, **TEXT_FILTERS, **SECRET_FILTERS, "type_debug": type_debug}
    table = {name: _passing(function) for name, function in table.items()}
    table.update(default=default, d=default, mandatory=mandatory)
    return table


FILTERS: Mapping[str, Callable[..., Any]] = _table()
# What collections add, by the collection's name; the last one's short name wins where two have the same.
COLLECTIONS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    name: {key: _passing(function) for key, function in table.items()}
    for name, table in (
        ("ansible.utils", {**NET_FILTERS, **UTILS_FILTERS}), ("ansible.netcommon", NET_FILTERS), ("community.general", GENERAL_FILTERS),
    )
}  # fmt: skip
