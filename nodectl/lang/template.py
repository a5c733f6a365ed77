"""Jinja with Ansible's rules: native types, strict names, variables that hold templates themselves.

Rules worth knowing:
- a text that is one `{{ expression }}` keeps the expression's type; anything around it makes text, and text stays text;
- a variable is rendered when it is used, never before; one that needs itself is refused with the chain of names;
- what a template produced is never read as a template again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.parser import Parser

from nodectl.lang import environment
from nodectl.lang.conditions import guarded, not_boolean
from nodectl.lang.environment import FileEnvironment, TextEnvironment
from nodectl.lang.plain import data, ended, text_of
from nodectl.lang.scope import Lookup, Scope
from nodectl.lang.secrets import SecretText, reveal
from nodectl.lang.template_error import FAULTS, TemplateError, line_of, placed
from nodectl.lang.undefined import UndefinedUse
from nodectl.lang.unsafe import Unsafe, has_template

# Distinct texts of one run: playbooks and roles hold a few thousand; each compiled template takes about 10 kB.
CACHED_TEMPLATES = 4096
# A text without statements and no longer than this is known to compile once it is parsed: 100 operators in a row are what Python's own parser takes.
_SHORT = 150
# What can only be wrong when the code is made: a filter or test that does not exist.
_NAMING = re.compile(r"\||\bis\b")
# Statements that bring another file in.
_BRINGS = re.compile(r"\{%[-+]?\s*(?:include|import|from|extends)\b")
# What the first line of a template file may set.
_OVERRIDES = frozenset(
    ["block_start_string", "block_end_string", "variable_start_string", "variable_end_string", "comment_start_string", "comment_end_string",
     "line_statement_prefix", "line_comment_prefix", "trim_blocks", "lstrip_blocks", "newline_sequence", "keep_trailing_newline"]
)  # fmt: skip
_SWITCHES = ("trim_blocks", "lstrip_blocks", "keep_trailing_newline")
_NEWLINES = ("\n", "\r\n", "\r")


class Templar:
    """Renders values. Holds compiled templates and no variables, so one instance serves all hosts and threads."""

    def __init__(self, lookup: Lookup | None = None) -> None:
        self.lookup = lookup
        self._environment = environment.make(TextEnvironment)
        self._files = environment.make(FileEnvironment)
        self._compiled_file = lru_cache(maxsize=CACHED_TEMPLATES)(self._files.from_string)
        self.compiled = lru_cache(maxsize=CACHED_TEMPLATES)(self._environment.from_string)
        self.expression = lru_cache(maxsize=CACHED_TEMPLATES)(self._compile_expression)
        self._read = lru_cache(maxsize=CACHED_TEMPLATES)(self._reading)

    def with_lookup(self, lookup: Lookup) -> Templar:
        """The same templar (compiled templates shared) that reads files another way: each role has its own folders."""
        other = Templar.__new__(Templar)
        other.__dict__.update(self.__dict__, lookup=lookup)
        return other

    def is_template(self, value: Any) -> bool:
        """Whether ``value`` is a text that would be rendered (containers are not looked into)."""
        return isinstance(value, str) and not isinstance(value, Unsafe) and has_template(value)

    def render(self, value: Any, variables: Mapping[str, Any]) -> Any:
        """``value`` with all templates in it rendered. Raises TemplateError or UndefinedName.

        Entries of mappings and lists that come out as ``omit`` are left out; a bare ``{{ omit }}`` gives ``OMIT``.
        """
        scope = Scope(self, variables)
        try:
            return data(scope.deep(value))
        except UndefinedUse as use:
            raise scope.undefined(use) from None

    def holds(self, conditions: Sequence[Any], variables: Mapping[str, Any]) -> bool:
        """Whether all conditions (Jinja expressions without braces, or booleans) are true; stops at the first that is not.

        A condition must come out as a boolean: raises TemplateError for the text "false", a number, a list.
        """
        scope = Scope(self, variables)
        return all(self._holds(condition, scope) for condition in conditions)

    def evaluate(self, expression: str, variables: Mapping[str, Any]) -> Any:
        """The value of a Jinja expression written without braces. Raises TemplateError or UndefinedName."""
        scope = Scope(self, variables)
        try:
            return data(scope.expression(expression))
        except UndefinedUse as use:
            raise scope.undefined(use) from None

    def look_up(self, name: str, terms: Sequence[Any], variables: Mapping[str, Any]) -> list[Any]:
        """What the lookup ``name`` gives for rendered ``terms`` (with_ loops). Raises LookupError or ValueError, and TemplateError."""
        scope = Scope(self, variables)
        try:
            return list(data(scope.look_up(name, terms, {})))
        except UndefinedUse as use:
            raise scope.undefined(use) from None

    def render_file(self, text: str, variables: Mapping[str, Any], source: str) -> str:
        """The text of a template file rendered, byte for byte as Ansible's `template`. ``source`` is named in errors.

        Secrets are in it as plain text: the file is what they are for.
        """
        return str(self.rendered_file(text, Scope(self, variables), source))

    def rendered_file(self, text: str, scope: Scope, source: str) -> str:
        """``render_file`` inside another rendering, where a text that holds a secret stays marked."""
        body, overrides = _header(text)
        if not overrides and not has_template(body):
            return body
        template, before = None, 0 if body is text else 1
        try:
            template = self._own_environment(scope, overrides).from_string(body) if overrides or _BRINGS.search(body) else self._compiled_file(body)
            value = scope.run(template, source, before)
            plain = text_of(ended(reveal(data(value)), body))
            return SecretText(plain) if isinstance(value, SecretText) else plain
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(f"{placed(source, error.lineno, before)}: {error.message}") from None
        except UndefinedUse as use:
            raise scope.undefined(use, placed(source, (use.line or line_of(template, use)) if template else 0, before)) from None

    def _own_environment(self, scope: Scope, overrides: dict[str, Any]) -> FileEnvironment:
        """For one rendering: other options of Jinja, and other files (include, import, extends) found where the lookup looks."""

        def load(name: str) -> str | None:
            try:
                return str(scope.look_up("template", [name], {}, lambda text: text)[0])
            except LookupError:
                return None

        own = self._files.overlay(**overrides, loader=jinja2.FunctionLoader(load))
        assert isinstance(own, FileEnvironment)
        own.scope = scope
        return own

    def syntax_error(self, text: str, *, expression: bool = False) -> tuple[str, int] | None:
        """What is wrong with the syntax of a template (or bare expression) and in which line of it, or None. Renders nothing."""
        try:
            if len(text) > _SHORT or "{%" in text or not self._read(text, expression):
                (self.expression if expression else self.compiled)(text)
        except jinja2.TemplateSyntaxError as error:
            return error.message or "not valid Jinja", error.lineno
        except FAULTS as error:
            return f"not valid Jinja: {error}", 1
        return None

    def file_syntax_error(self, text: str) -> tuple[str, int] | None:
        """``syntax_error`` of a template file, whose first line may set Jinja's options."""
        try:
            body, overrides = _header(text)
            (self._files.overlay(**overrides) if overrides else self._files).from_string(body)
        except TemplateError as error:
            return str(error), 1
        except jinja2.TemplateSyntaxError as error:
            return error.message or "not valid Jinja", error.lineno + (body is not text)
        return None

    def nearest_name(self, message: str) -> str:
        """"did you mean …?" for Jinja's complaint about a filter or test that does not exist; else nothing."""
        match = re.search(r"No (filter|test) named '(\w+)'", message)
        if not match:
            return ""
        known = self._environment.filters if match[1] == "filter" else self._environment.tests
        near = get_close_matches(match[2], known, n=1)
        return f"did you mean '{near[0]}'?" if near else ""

    def _holds(self, condition: Any, scope: Scope) -> bool:
        if condition is None or condition == "":
            return True
        try:
            value = scope.condition(condition)
        except UndefinedUse as use:
            raise scope.undefined(use) from None
        if isinstance(value, bool):
            return value
        raise not_boolean(condition, value)

    def _reading(self, text: str, expression: bool) -> bool:
        """Whether a short text without statements is right. Making code of it would take four times as long, and a check never runs it."""
        tree = nodes.Output([self._parse_expression(text)]) if expression else self._environment.parse(text)
        if not _NAMING.search(text):
            return True
        known = {nodes.Filter: self._environment.filters, nodes.Test: self._environment.tests}
        return all(one.name in known[type(one)] for one in tree.find_all((nodes.Filter, nodes.Test)))

    def _parse_expression(self, source: str) -> nodes.Expr:
        parser = Parser(self._environment, source, state="variable")
        expression = parser.parse_expression()
        if not parser.stream.eos:
            raise jinja2.TemplateSyntaxError(f"unexpected {str(parser.stream.current)!r} after the expression", parser.stream.current.lineno)
        return expression

    def _compile_expression(self, source: str) -> jinja2.Template:
        expression = guarded(self._parse_expression(source))
        expression.set_environment(self._environment)
        # A one-node body whose output is the expression: the native generator then yields the value itself.
        return self._environment.from_string(nodes.Template([nodes.Output([expression], lineno=1)], lineno=1))


def _header(text: str) -> tuple[str, dict[str, Any]]:
    """A first line `#jinja2: trim_blocks:False, lstrip_blocks:True` sets Jinja's options for the file and is dropped."""
    if not text.startswith("#jinja2:"):
        return text, {}
    line, _, body = text.partition("\n")
    overrides: dict[str, Any] = {}
    for pair in line[len("#jinja2:") :].split(","):
        name, colon, value = pair.partition(":")
        if not colon or name.strip() not in _OVERRIDES:
            raise TemplateError(f"unknown option {name.strip()!r} in the #jinja2: line", f"known are {', '.join(sorted(_OVERRIDES))}")
        overrides[name.strip()] = _option(name.strip(), value.strip())
    starts = [overrides.get(f"{kind}_start_string", mark) for kind, mark in (("block", "{%"), ("variable", "{{"), ("comment", "{#"))]
    if len({*starts, ""}) < 4:
        raise TemplateError("the #jinja2: line makes two marks the same, or one empty", f"blocks, variables and comments start with {', '.join(starts)}")
    return body, overrides


def _option(name: str, written: str) -> Any:
    """The value of an option: true or false, or a text, which may stand in quotes as Python writes them."""
    try:
        value = ast.literal_eval(written)
    except (ValueError, SyntaxError):
        value = {"true": True, "false": False}.get(written.lower(), written)
    wants = bool if name in _SWITCHES else str
    if not isinstance(value, wants) or (name == "newline_sequence" and value not in _NEWLINES):
        expected = "True or False" if wants is bool else "one of '\\n', '\\r\\n', '\\r'" if name == "newline_sequence" else "a text"
        raise TemplateError(f"option {name} in the #jinja2: line is {written}", f"expected {expected}")
    return value
