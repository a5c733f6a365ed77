"""Jinja set up as Ansible's language: its lexer, its native values, its filters and tests, lookup() and query()."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.compiler import Frame
from jinja2.lexer import Lexer
from jinja2.nativetypes import NativeCodeGenerator
from jinja2.sandbox import SandboxedEnvironment

from nodectl.lang import filters, tests
from nodectl.lang.conditions import no_word
from nodectl.lang.filters_text import strftime_at
from nodectl.lang.plain import data, joined, text_of
from nodectl.lang.scope import Rendered, Scope, ScopeContext
from nodectl.lang.secrets import reveal
from nodectl.lang.template_error import TemplateError
from nodectl.lang.undefined import OMIT, Missing


class _Lexer(Lexer):
    """Keeps backslashes in the texts of `{{ … }}`: a regular expression may be written there as in Ansible."""

    def tokeniter(self, source: str, name: str | None, filename: str | None = None, state: str | None = None) -> Iterator[tuple[int, str, str]]:
        inside = False
        for line, token, value in super().tokeniter(source, name, filename, state):
            if token in ("variable_begin", "block_begin"):
                inside = token == "variable_begin"
            yield line, token, value.replace("\\", "\\\\") if token == "string" and inside else value


class _Generator(NativeCodeGenerator):
    """Never folds an expression into the text around it: `{{ 42 }}` must stay a number."""

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> Any:
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible
        return super()._output_child_to_const(node, frame, finalize)


class FileEnvironment(SandboxedEnvironment):
    """For template files, where backslashes mean what they mean in Jinja."""

    code_generator_class = _Generator
    context_class = ScopeContext
    scope: Scope | None = None
    concat = staticmethod(joined)

    def getattr(self, obj: Any, attribute: str) -> Any:
        return obj.raw(attribute) if isinstance(obj, Rendered) and attribute in obj else super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        return obj.raw(argument) if isinstance(obj, Rendered) and argument in obj else super().getitem(obj, argument)


    def call(self, context: Any, obj: Any, /, *args: Any, **options: Any) -> Any:
        """`mapping.keys()` and the like are lists: they can be indexed, and shown."""
        if isinstance(obj, Missing):
            return obj
        result = super().call(context, obj, *args, **options)
        return list(result) if isinstance(result, (KeysView, ValuesView, ItemsView)) else result


class TextEnvironment(FileEnvironment):
    """For texts of YAML files."""

    @cached_property
    def lexer(self) -> Lexer:  # this environment is never overlaid with other options, which would want another
        return _Lexer(self)


def make(kind: type[FileEnvironment]) -> FileEnvironment:
    environment = kind(undefined=Missing, trim_blocks=True)
    environment.globals.update(omit=OMIT, lookup=_lookup, query=_query, q=_query, now=_now, undef=_undef)
    environment.filters.update(_FILTERS, _no_word=no_word, strftime=_strftime, **{"ansible.builtin.strftime": _strftime})
    environment.tests.update(_TESTS)
    return environment


def _by_all_names(builtin: Mapping[str, Callable[..., Any]], collections: Mapping[str, Mapping[str, Callable[..., Any]]]) -> dict[str, Callable[..., Any]]:
    """Each name as it is, and with its collection; those of Ansible itself come first where names are the same."""
    every = {"ansible.builtin": builtin, **collections}
    short = {name: function for table in collections.values() for name, function in table.items()}
    return {**short, **builtin, **{f"{collection}.{name}": function for collection, table in every.items() for name, function in table.items()}}


_FILTERS = _by_all_names(filters.FILTERS, filters.COLLECTIONS)
_TESTS = _by_all_names(tests.TESTS, tests.COLLECTIONS)


@jinja2.pass_context
def _query(context: ScopeContext, name: str, *terms: Any, **options: Any) -> list[Any]:
    options.pop("wantlist", None)
    errors = options.pop("errors", "strict")
    if errors not in ("strict", "warn", "ignore"):
        raise TemplateError(f"lookup('{name}'): errors={errors!r} is not one of strict, warn, ignore")
    try:
        return context.source.look_up(name, reveal(data(list(terms))), options)
    except (LookupError, ValueError, OSError) as error:
        if errors in ("ignore", "warn"):
            return []
        raise TemplateError(f"lookup('{name}'): {error.args[0] if error.args else error}") from None


@jinja2.pass_context
def _lookup(context: ScopeContext, name: str, *terms: Any, **options: Any) -> Any:
    want_list = options.pop("wantlist", False)
    items = _query(context, name, *terms, **options)
    if want_list or (not items and "errors" not in options):
        return items if want_list else ""
    if not items:
        return None
    if len(items) == 1:
        return items[0]
    return ",".join(map(text_of, items)) if all(isinstance(item, str) for item in items) else items


@jinja2.pass_context
def _now(context: ScopeContext, utc: bool = False, fmt: str | None = None) -> Any:
    """The moment, which only the engine knows."""
    seconds = context.source.moment()
    if fmt is not None:
        return strftime_at(fmt, seconds, utc)
    moment = datetime.fromtimestamp(seconds, UTC)
    return (moment if utc else moment.astimezone()).replace(tzinfo=None)


@jinja2.pass_context
def _strftime(context: ScopeContext, format: str, second: Any = None, utc: bool = False) -> str:
    try:
        return strftime_at(str(format), context.source.moment() if second is None else float(second), utc)
    except (TypeError, ValueError, OverflowError) as error:
        raise TemplateError(f"strftime: {second!r} is no number of seconds: {error}") from None


def _undef(hint: str = "") -> Missing:
    return Missing(hint=hint or "a value marked as undefined was used")
