"""Jinja with Ansible's rules: native types, strict names, variables that hold templates themselves.

Rules worth knowing:
- a text that is one `{{ expression }}` keeps the expression's type; anything around it makes text, and text stays text;
- a variable is rendered when it is used, never before; one that needs itself is refused with the chain of names;
- what a template produced is never read as a template again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Protocol

import jinja2
from jinja2 import nodes
from jinja2.compiler import Frame
from jinja2.lexer import Lexer
from jinja2.nativetypes import NativeCodeGenerator
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import missing

from nodectl.lang import filters, tests
from nodectl.lang.undefined import OMIT, Broken, Missing, UndefinedUse
from nodectl.lang.unsafe import Settled, SettledList, has_template
from nodectl.lang.unsafe import Unsafe as Unsafe

# Distinct texts of one run: playbooks and roles hold a few thousand; each compiled template takes about 10 kB.
CACHED_TEMPLATES = 4096
# Statements that bring another file in.
_BRINGS = re.compile(r"\{%[-+]?\s*(?:include|import|from|extends)\b")
# What an expression over user data can raise besides Jinja's own errors.
_FAULTS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, re.error, OSError)


class TemplateError(Exception):
    """A template could not be rendered: ``message`` says what is wrong, ``hint`` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message + (f" ({hint})" if hint else ""))
        self.message = message
        self.hint = hint


class UndefinedName(TemplateError):
    """A name or attribute that does not exist was used."""


class Lookup(Protocol):
    """Reads what is outside the variables (files, environment) for `lookup(…)` and with_ loops. Raises LookupError or ValueError."""

    def __call__(self, name: str, terms: Sequence[Any], options: Mapping[str, Any], variables: Mapping[str, Any], render: Callable[[str], str]) -> list[Any]:
        """The items that lookup ``name`` finds for ``terms``; ``render`` renders the text of a template file."""


class Templar:
    """Renders values. Holds compiled templates and no variables, so one instance serves all hosts and threads."""

    def __init__(self, lookup: Lookup | None = None) -> None:
        self._lookup = lookup
        self._environment = _environment(_Environment)
        self._files = _environment(_FileEnvironment)
        self._compiled_file = lru_cache(maxsize=CACHED_TEMPLATES)(self._files.from_string)
        self._compiled = lru_cache(maxsize=CACHED_TEMPLATES)(self._environment.from_string)
        self._expression = lru_cache(maxsize=CACHED_TEMPLATES)(self._compile_expression)

    def with_lookup(self, lookup: Lookup) -> Templar:
        """The same templar (compiled templates shared) that reads files another way: each role has its own folders."""
        other = Templar.__new__(Templar)
        other.__dict__.update(self.__dict__, _lookup=lookup)
        return other

    def is_template(self, value: Any) -> bool:
        """Whether ``value`` is a text that would be rendered (containers are not looked into)."""
        return isinstance(value, str) and not isinstance(value, Unsafe) and has_template(value)

    def render(self, value: Any, variables: Mapping[str, Any]) -> Any:
        """``value`` with all templates in it rendered. Raises TemplateError or UndefinedName.

        Entries of mappings and lists that come out as ``omit`` are left out; a bare ``{{ omit }}`` gives ``OMIT``.
        """
        scope = _Scope(self, variables)
        try:
            return _data(scope.deep(value))
        except UndefinedUse as use:
            raise scope.undefined(use) from None

    def holds(self, conditions: Sequence[Any], variables: Mapping[str, Any]) -> bool:
        """Whether all conditions (Jinja expressions without braces, or booleans) are true; stops at the first that is not.

        A condition must come out as a boolean: raises TemplateError for the text "false", a number, a list.
        """
        scope = _Scope(self, variables)
        return all(self._holds(condition, scope) for condition in conditions)

    def evaluate(self, expression: str, variables: Mapping[str, Any]) -> Any:
        """The value of a Jinja expression written without braces. Raises TemplateError or UndefinedName."""
        scope = _Scope(self, variables)
        try:
            return _data(scope.expression(expression))
        except UndefinedUse as use:
            raise scope.undefined(use) from None

    def look_up(self, name: str, terms: Sequence[Any], variables: Mapping[str, Any]) -> list[Any]:
        """What the lookup ``name`` gives for rendered ``terms`` (with_ loops). Raises LookupError or ValueError, and TemplateError."""
        scope = _Scope(self, variables)
        try:
            return list(_data(scope.look_up(name, terms, {})))
        except UndefinedUse as use:
            raise scope.undefined(use) from None

    def render_file(self, text: str, variables: Mapping[str, Any], source: str) -> str:
        """The text of a template file rendered, byte for byte as Ansible's `template`. ``source`` is named in errors."""
        scope = _Scope(self, variables)
        body, overrides = _header(text)
        if not overrides and not has_template(body):
            return body
        try:
            template = self._own_environment(scope, overrides).from_string(body) if overrides or _BRINGS.search(body) else self._compiled_file(body)
            return _text(_ended(_data(scope.run(template, source)), body))
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(f"{source}:{error.lineno}: {error.message}") from None
        except UndefinedUse as use:
            raise scope.undefined(use, source) from None

    def _own_environment(self, scope: _Scope, overrides: dict[str, Any]) -> _FileEnvironment:
        """For one rendering: other options of Jinja, and other files (include, import, extends) found where the lookup looks."""

        def load(name: str) -> str | None:
            try:
                return str(scope.look_up("template", [name], {}, lambda text: text)[0])
            except LookupError:
                return None

        environment = self._files.overlay(**overrides, loader=jinja2.FunctionLoader(load))
        assert isinstance(environment, _FileEnvironment)
        environment.scope = scope
        return environment

    def syntax_error(self, text: str, *, expression: bool = False) -> tuple[str, int] | None:
        """What is wrong with the syntax of a template (or bare expression) and in which line of it, or None. Renders nothing."""
        try:
            (self._expression if expression else self._compiled)(text)
        except jinja2.TemplateSyntaxError as error:
            return error.message or "not valid Jinja", error.lineno
        except _FAULTS as error:
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

    def _holds(self, condition: Any, scope: _Scope) -> bool:
        if condition is None or condition == "":
            return True
        try:
            value = scope.condition(condition)
        except UndefinedUse as use:
            raise scope.undefined(use) from None
        if isinstance(value, bool):
            return value
        raise _not_boolean(condition, value)

    def _compile_expression(self, source: str) -> jinja2.Template:
        parser = Parser(self._environment, source, state="variable")
        expression = parser.parse_expression()
        if not parser.stream.eos:
            raise jinja2.TemplateSyntaxError(f"unexpected {str(parser.stream.current)!r} after the expression", parser.stream.current.lineno)
        expression = _guarded(expression)
        expression.set_environment(self._environment)
        # A one-node body whose output is the expression: the native generator then yields the value itself.
        return self._environment.from_string(nodes.Template([nodes.Output([expression], lineno=1)], lineno=1))


def _guarded(node: nodes.Expr) -> nodes.Expr:
    """Under not, and, or: the text "false" is true for Python, so a variable that holds such a word is refused there."""
    if isinstance(node, nodes.Not):
        return nodes.Not(_word_guard(_guarded(node.node)), lineno=node.lineno)
    if isinstance(node, (nodes.And, nodes.Or)):
        return type(node)(_word_guard(_guarded(node.left)), _word_guard(_guarded(node.right)), lineno=node.lineno)
    return node


def _word_guard(node: nodes.Expr) -> nodes.Expr:
    name = _spelled(node)
    return nodes.Filter(node, "_no_word", [nodes.Const(name)], [], None, None, lineno=node.lineno) if name else node


def _spelled(node: nodes.Node) -> str:
    """`a.b['c']` as it was written; "" for anything that is no plain reference."""
    if isinstance(node, nodes.Name):
        return node.name
    if isinstance(node, nodes.Getattr):
        return f"{_spelled(node.node)}.{node.attr}" if _spelled(node.node) else ""
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        return f"{_spelled(node.node)}[{node.arg.value!r}]" if _spelled(node.node) else ""
    return ""


def _no_word(value: Any, name: str) -> Any:
    if isinstance(value, str) and value.lower() in filters.WORDS:
        raise _not_boolean(name, value)
    return value


def _not_boolean(condition: Any, value: Any) -> TemplateError:
    kind = filters.kind_of(value)
    if isinstance(value, str):
        read = f"write '{condition} | bool' to read the word, or '{condition} | length > 0' to ask for any text"
        return TemplateError(f"'{condition}' is the text {str(value)!r}, not true or false", read)
    if isinstance(value, (list, dict)):
        ask = f"'{condition} | length > 0'"
    else:
        ask = f"'{condition} is not none'" if value is None else f"'{condition} != 0'"
    return TemplateError(f"'{condition}' is a {kind}, not true or false", f"a condition must be a boolean: write {ask}, or '{condition} | bool'")


class _Scope:
    """One rendering: the variables, what was rendered of them so far, and the chain of names being rendered."""

    def __init__(self, templar: Templar, variables: Mapping[str, Any]) -> None:
        self.templar = templar
        self.variables = variables
        self.done: dict[str, Any] = {}
        self.chain: list[str] = []

    def variable(self, name: str) -> Any:
        """The rendered value of a variable, ``missing`` where there is none."""
        if name in self.done:
            return self.done[name]
        if name not in self.variables:
            return _Rendered(self) if name == "vars" else missing
        if name in self.chain:
            raise TemplateError(f"variable '{name}' needs itself: {' → '.join([*self.chain[self.chain.index(name) :], name])}")
        self.chain.append(name)
        try:
            value = self.deep(self.variables[name], inside=name)
        finally:
            self.chain.pop()
        self.done[name] = value
        return value

    def deep(self, value: Any, inside: str = "") -> Any:
        """Renders texts in containers. Inside a variable a part that fails becomes a value that fails when it is used."""
        if isinstance(value, str):
            return self._part(value, inside) if self.templar.is_template(value) else value
        if isinstance(value, (Settled, SettledList)):
            return value
        if isinstance(value, dict):
            # As in Ansible, keys are no templates.
            return {key: self.deep(item, inside) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.deep(item, inside) for item in value]
        return value

    def _part(self, text: str, inside: str) -> Any:
        if not inside:
            return self.text(text)
        try:
            value = self.text(text)
        except UndefinedUse as use:
            return _needed(use.undefined, inside)
        except UndefinedName as error:
            return Missing(hint=error.message)
        except TemplateError as error:
            if "needs itself" in error.message:
                raise
            return Broken(hint=error.message, name=inside)
        return _needed(value, inside) if isinstance(value, Missing) else value

    def text(self, text: str) -> Any:
        try:
            return _ended(self.run(self.templar._compiled(text), text), text)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(f"{error.message} in {_short(text)!r}") from None

    def expression(self, source: str) -> Any:
        try:
            return self.run(self.templar._expression(source), source)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(f"{error.message} in {_short(source)!r}") from None

    def condition(self, condition: Any) -> Any:
        if not isinstance(condition, str):
            return condition
        return _data(self.text(condition) if self.templar.is_template(condition) else self.expression(condition))

    def run(self, template: jinja2.Template, source: str) -> Any:
        """The native value of one compiled template."""
        context = template.new_context()
        assert isinstance(context, _Context)
        context.scope = self
        try:
            return _sealed(_joined(template.root_render_func(context)))
        except (TemplateError, UndefinedUse):
            raise
        except jinja2.UndefinedError as error:
            raise UndefinedName(error.message or "something undefined was used") from None
        except jinja2.TemplateNotFound as error:
            raise TemplateError(f"template file '{error.name}' not found, wanted by {_short(source)}") from None
        except jinja2.TemplateError as error:
            raise TemplateError(f"{error.message} in {_short(source)!r}") from None
        except _FAULTS as error:
            raise _explained(error, source) from None

    def undefined(self, use: UndefinedUse, source: str = "") -> UndefinedName:
        """The error for a person: what is undefined, and the nearest name that is not."""
        undefined = use.undefined
        known: Sequence[str] = []
        if undefined._undefined_obj is missing:
            known = [str(name) for name in self.variables]
        elif isinstance(undefined._undefined_obj, Mapping):
            known = [str(name) for name in undefined._undefined_obj]
        near = get_close_matches(str(undefined._undefined_name), known, n=1) if undefined._undefined_name is not None else []
        return UndefinedName((f"{source}: " if source else "") + undefined.said, f"did you mean '{near[0]}'?" if near else "")

    def look_up(self, name: str, terms: Sequence[Any], options: Mapping[str, Any], render: Callable[[str], str] | None = None) -> list[Any]:
        lookup = self.templar._lookup
        short = name.removeprefix("ansible.builtin.")
        if short == "vars":
            return [self._named(str(term), options) for term in terms]
        if lookup is None:
            raise TemplateError(f"lookup('{name}') cannot be used here")
        return lookup(short, terms, options, self.variables, render or self._render_text)

    def _named(self, name: str, options: Mapping[str, Any]) -> Any:
        value = self.variable(name)
        if value is not missing:
            return value
        return options["default"] if "default" in options else Missing(name=name)

    def _render_text(self, text: str) -> str:
        return self.templar.render_file(text, self.variables, "template")


class _Rendered(Mapping[str, Any]):
    """Variables seen through a scope: each is rendered when it is asked for (`vars`).

    Python gets data or an UndefinedName; a template gets an undefined part as such, so that `default` works on it.
    """

    def __init__(self, scope: _Scope) -> None:
        self._scope = scope

    def __getitem__(self, name: str) -> Any:
        value = self.raw(name)
        try:
            return _data(value)
        except UndefinedUse as use:
            raise self._scope.undefined(use) from None

    def raw(self, name: str) -> Any:
        value = self._scope.variable(name)
        if value is missing:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._scope.variables)

    def __contains__(self, name: object) -> bool:
        return name in self._scope.variables

    def __len__(self) -> int:
        return len(self._scope.variables)


class LazyVariables(_Rendered):
    """A host's variables as `hostvars[host]` shows them: rendered one by one when they are used. Make one per use, not per run."""

    def __init__(self, templar: Templar, variables: Mapping[str, Any]) -> None:
        super().__init__(_Scope(templar, variables))


class _Context(Context):
    """Finds names in the scope instead of a prepared dict, so that a variable nobody uses is never rendered."""

    scope: _Scope | None = None

    @property
    def source(self) -> _Scope:
        """The scope; that of the environment in the context of a file that another one includes."""
        scope = self.scope or getattr(self.environment, "scope", None)
        assert isinstance(scope, _Scope)
        return scope

    def resolve_or_missing(self, key: str) -> Any:
        if key in self.vars:
            return self.vars[key]
        value = self.source.variable(key)
        return self.parent.get(key, missing) if value is missing else value


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


class _FileEnvironment(SandboxedEnvironment):
    """For template files, where backslashes mean what they mean in Jinja."""

    code_generator_class = _Generator
    context_class = _Context
    scope: _Scope | None = None
    concat = staticmethod(lambda values: _joined(values))  # noqa: PLW0108  # defined below

    def getattr(self, obj: Any, attribute: str) -> Any:
        return obj.raw(attribute) if isinstance(obj, _Rendered) and attribute in obj else super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        return obj.raw(argument) if isinstance(obj, _Rendered) and argument in obj else super().getitem(obj, argument)


class _Environment(_FileEnvironment):
    """For texts of YAML files."""

    @property
    def lexer(self) -> Lexer:
        return _Lexer(self)


def _environment(kind: type[_FileEnvironment]) -> _FileEnvironment:
    environment = kind(undefined=Missing, trim_blocks=True)
    environment.globals.update(omit=OMIT, lookup=_lookup, query=_query, q=_query, now=_no_clock, undef=_undef)
    environment.filters.update(filters.FILTERS, _no_word=_no_word)
    environment.tests.update(tests.TESTS)
    for table in (environment.filters, environment.tests):
        table.update({f"ansible.builtin.{name}": function for name, function in list(table.items()) if "." not in name})
    return environment


@jinja2.pass_context
def _query(context: _Context, name: str, *terms: Any, **options: Any) -> list[Any]:
    options.pop("wantlist", None)
    errors = options.pop("errors", "strict")
    if errors not in ("strict", "warn", "ignore"):
        raise TemplateError(f"lookup('{name}'): errors={errors!r} is not one of strict, warn, ignore")
    try:
        return context.source.look_up(name, _data(list(terms)), options)
    except (LookupError, ValueError, OSError) as error:
        if errors in ("ignore", "warn"):
            return []
        raise TemplateError(f"lookup('{name}'): {error.args[0] if error.args else error}") from None


@jinja2.pass_context
def _lookup(context: _Context, name: str, *terms: Any, **options: Any) -> Any:
    want_list = options.pop("wantlist", False)
    items = _query(context, name, *terms, **options)
    if want_list or (not items and "errors" not in options):
        return items if want_list else ""
    if not items:
        return None
    if len(items) == 1:
        return items[0]
    return ",".join(map(_text, items)) if all(isinstance(item, str) for item in items) else items


def _no_clock(*_args: Any, **_options: Any) -> Any:
    raise TemplateError("now() is not available: a run's values must not depend on the moment", "use ansible_date_time from the node's facts")


def _undef(hint: str = "") -> Missing:
    return Missing(hint=hint or "a value marked as undefined was used")


def _needed(undefined: Missing, variable: str) -> Missing:
    """The same undefined value, which now also says which variable needed it."""
    if undefined._undefined_hint:
        return undefined
    return Missing(hint=f"{undefined.said}, needed by '{variable}'", obj=undefined._undefined_obj, name=undefined._undefined_name)


def _joined(values: Any) -> Any:
    """One value stays as it is; several become one text; nothing at all is None."""
    parts = [part for part in values if part is not None]
    if len(parts) < 2:
        return parts[0] if parts else None
    return "".join(map(_text, parts))


def _ended(value: Any, source: str) -> Any:
    """Text ends with as many newlines as its template: Jinja eats the last one, and one after a statement."""
    if not isinstance(value, str):
        return value
    missing_ends = _ends(source) - _ends(value)
    return type(value)(value + "\n" * missing_ends) if missing_ends > 0 else value


def _ends(text: str) -> int:
    return len(text) - len(text.rstrip("\n"))


def _text(value: Any) -> str:
    if isinstance(value, Missing):
        value._fail_with_undefined_error()
    if value is OMIT:
        raise TemplateError("omit cannot be a part of a text", "omit leaves out a whole value: `{{ x | default(omit) }}` alone")
    return "" if value is None else str(value)


def _sealed(value: Any) -> Any:
    """Texts that a template made are marked, so that they are not read as templates when a variable holds them."""
    return Unsafe(value) if isinstance(value, str) and has_template(value) else value


def _data(value: Any) -> Any:
    """A result as plain data: undefined parts raise, omitted ones go, views and generators become lists."""
    if isinstance(value, Missing):
        value._fail_with_undefined_error()
    if isinstance(value, jinja2.Undefined):
        raise TemplateError("an inline `if` without `else` came out as nothing", "add `else` and a value, for example `else omit`")
    if isinstance(value, str):
        return _sealed(str(value) if type(value) is not Unsafe else value)
    if value is None or isinstance(value, (bool, int, float, bytes)) or value is OMIT:
        return value
    if isinstance(value, Mapping):
        pairs = [(_data(key), _data(item)) for key, item in value.items()]
        return {key: item for key, item in pairs if item is not OMIT}
    if isinstance(value, range):
        raise TemplateError("a range is not a list yet", "write `range(…) | list`")
    if isinstance(value, Iterable):
        return [item for item in map(_data, value) if item is not OMIT]
    if callable(value):
        name = getattr(value, "__name__", "name")
        raise TemplateError(f"'{name}' is a function here, not data", f"call it with parentheses, or write ['{name}'] for a key of that name")
    return value


def _explained(error: BaseException, source: str) -> TemplateError:
    said = str(error) or type(error).__name__
    unlike = re.search(r"'[<>]=?' not supported between instances of '(\w+)' and '(\w+)'", said)
    where = f" in {_short(source)!r}"
    if unlike:
        kinds = [filters.KINDS.get(name, name) for name in unlike.groups()]
        return TemplateError(f"cannot compare {kinds[0]} with {kinds[1]}{where}", "convert one side: `| int`, `| float`, or the test `is version(…)`")
    joined = re.search(r'can only concatenate str|unsupported operand type\(s\) for \+: .*str', said)
    if joined:
        return TemplateError(f"cannot add text and something else{where}", "join texts with ~, or convert with `| int` or `| string`")
    return TemplateError(f"{said}{where}")


def _short(text: str) -> str:
    # One terminal line: the position says the rest.
    line = text.strip()
    return line if len(line) <= 120 else line[:117] + "..."


def _header(text: str) -> tuple[str, dict[str, Any]]:
    """A first line `#jinja2: trim_blocks:False, lstrip_blocks:True` sets Jinja's options for the file and is dropped."""
    if not text.startswith("#jinja2:"):
        return text, {}
    line, _, body = text.partition("\n")
    overrides: dict[str, Any] = {}
    for pair in line[len("#jinja2:") :].split(","):
        name, colon, value = pair.partition(":")
        word = value.strip().strip("'\"")
        if not colon or name.strip() not in _OVERRIDES:
            raise TemplateError(f"unknown option {name.strip()!r} in the #jinja2: line", f"known are {', '.join(sorted(_OVERRIDES))}")
        overrides[name.strip()] = {"true": True, "false": False}.get(word.lower(), word)
    return body, overrides


_OVERRIDES = frozenset(
    ["block_start_string", "block_end_string", "variable_start_string", "variable_end_string", "comment_start_string", "comment_end_string",
     "line_statement_prefix", "line_comment_prefix", "trim_blocks", "lstrip_blocks", "newline_sequence", "keep_trailing_newline"]
)  # fmt: skip
