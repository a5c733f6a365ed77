"""One rendering: variables that are rendered when they are used, and the chain of names being rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import GeneratorType
from typing import Any, Protocol

import jinja2
from jinja2.runtime import Context
from jinja2.utils import missing

from nodectl.lang.plain import data, ended, joined, needed, sealed
from nodectl.lang.secrets import SecretText, hidden
from nodectl.lang.template_error import FAULTS, TemplateError, UndefinedName, explained, line_of, placed, short
from nodectl.lang.undefined import Broken, Missing, UndefinedUse
from nodectl.lang.unsafe import Settled, SettledList
from nodectl.wire.secret import Secret


class Lookup(Protocol):
    """Reads what is outside the variables (files, environment) for `lookup(…)` and with_ loops. Raises LookupError or ValueError."""

    def __call__(self, name: str, terms: Sequence[Any], options: Mapping[str, Any], variables: Mapping[str, Any], render: Callable[[str], str]) -> list[Any]:
        """The items that lookup ``name`` finds for ``terms``; ``render`` renders the text of a template file."""


class Renderer(Protocol):
    """What a scope needs of the templar that made it."""

    @property
    def lookup(self) -> Lookup | None:
        """What `lookup(…)` reads with."""

    def is_template(self, value: Any) -> bool:
        """Whether ``value`` is a text that would be rendered."""

    def compiled(self, text: str) -> jinja2.Template:
        """A text with templates in it."""

    def expression(self, source: str) -> jinja2.Template:
        """An expression without braces."""

    def rendered_file(self, text: str, scope: Scope, source: str) -> str:
        """The text of a template file rendered."""


class Scope:
    """One rendering: the variables, what was rendered of them so far, and the chain of names being rendered."""

    def __init__(self, templar: Renderer, variables: Mapping[str, Any]) -> None:
        self.templar = templar
        self.variables = variables
        self.done: dict[str, Any] = {}
        self.chain: list[str] = []
        self.secrets: set[str] = set()

    def variable(self, name: str) -> Any:
        """The rendered value of a variable, ``missing`` where there is none."""
        if name in self.done:
            return self.done[name]
        if name not in self.variables:
            return Rendered(self) if name == "vars" else missing
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
        return self._opened(value) if isinstance(value, Secret) else value

    def _opened(self, secret: Secret) -> SecretText:
        """An expression works on the text itself; whatever it makes of it is a secret again."""
        text = SecretText(secret.reveal())
        if text:
            self.secrets.add(text)
        return text

    def _part(self, text: str, inside: str) -> Any:
        if not inside:
            return self.text(text)
        try:
            value = self.text(text)
        except UndefinedUse as use:
            return needed(use.undefined, inside)
        except UndefinedName as error:
            return Missing(hint=error.message)
        except TemplateError as error:
            if "needs itself" in error.message:
                raise
            return Broken(hint=error.message, name=inside)
        return needed(value, inside) if isinstance(value, Missing) else value

    def text(self, text: str) -> Any:
        try:
            return ended(self.run(self.templar.compiled(text), text), text)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(f"{error.message} in {short(text)!r}") from None

    def expression(self, source: str) -> Any:
        try:
            return self.run(self.templar.expression(source), source)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(f"{error.message} in {short(source)!r}") from None

    def condition(self, condition: Any) -> Any:
        if not isinstance(condition, str):
            return condition
        return data(self.text(condition) if self.templar.is_template(condition) else self.expression(condition))

    def run(self, template: jinja2.Template, source: str, lines: int | None = None) -> Any:
        """The native value of one compiled template. ``source`` is its text, or with ``lines`` the name of its file, which has so many lines before it."""

        def where(error: Exception) -> str:
            return source if lines is None else placed(source, line_of(template, error), lines)

        context = template.new_context()
        assert isinstance(context, ScopeContext)
        context.scope = self
        try:
            pieces = template.root_render_func(context)
            value = sealed(joined(pieces if lines is None else _traced(pieces, template)))
            return hidden(value, self.secrets) if self.secrets else value
        except (TemplateError, UndefinedUse):
            raise
        except jinja2.UndefinedError as error:
            raise UndefinedName(error.message or "something undefined was used") from None
        except jinja2.TemplateNotFound as error:
            raise TemplateError(f"template file '{error.name}' not found, wanted by {short(where(error))}") from None
        except jinja2.TemplateError as error:
            raise TemplateError(f"{error.message} in {short(where(error))!r}") from None
        except FAULTS as error:
            raise explained(error, where(error)) from None

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
        lookup = self.templar.lookup
        short = name.removeprefix("ansible.builtin.")
        if short == "vars":
            return [self._named(str(term), options) for term in terms]
        if lookup is None:
            raise TemplateError(f"lookup('{name}') cannot be used here")
        return lookup(short, terms, options, self.variables, render or self._render_text)

    def moment(self) -> float:
        """Seconds since 1970. Raises TemplateError where templates may not depend on the moment (while files are checked)."""
        found = self.look_up("_now", [], {})
        return float(found[0])

    def _named(self, name: str, options: Mapping[str, Any]) -> Any:
        value = self.variable(name)
        if value is not missing:
            return value
        return options["default"] if "default" in options else Missing(name=name)

    def _render_text(self, text: str) -> str:
        return self.templar.rendered_file(text, self, "template")


def _traced(pieces: Iterator[Any], template: jinja2.Template) -> Iterator[Any]:
    """The same; something undefined among them fails while it is still known which line gave it."""
    for piece in pieces:
        if isinstance(piece, Missing):
            frame = pieces.gi_frame if isinstance(pieces, GeneratorType) else None
            raise UndefinedUse(piece, template.get_corresponding_lineno(frame.f_lineno) if frame else 0)
        yield piece


class Rendered(Mapping[str, Any]):
    """Variables seen through a scope: each is rendered when it is asked for (`vars`).

    Python gets data or an UndefinedName; a template gets an undefined part as such, so that `default` works on it.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __getitem__(self, name: str) -> Any:
        value = self.raw(name)
        try:
            return data(value)
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


class LazyVariables(Rendered):
    """A host's variables as `hostvars[host]` shows them: rendered one by one when they are used. Make one per use, not per run."""

    def __init__(self, templar: Renderer, variables: Mapping[str, Any]) -> None:
        super().__init__(Scope(templar, variables))


class ScopeContext(Context):
    """Finds names in the scope instead of a prepared dict, so that a variable nobody uses is never rendered."""

    scope: Scope | None = None

    @property
    def source(self) -> Scope:
        """The scope; that of the environment in the context of a file that another one includes."""
        scope = self.scope or getattr(self.environment, "scope", None)
        assert isinstance(scope, Scope)
        return scope

    def resolve_or_missing(self, key: str) -> Any:
        if key in self.vars:
            return self.vars[key]
        value = self.source.variable(key)
        return self.parent.get(key, missing) if value is missing else value
