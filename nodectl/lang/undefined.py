"""What stands for a value that is not there: undefined names, broken variables, and `omit`."""

from __future__ import annotations

from typing import Any, NoReturn

from jinja2 import StrictUndefined, UndefinedError
from jinja2.utils import missing


class UndefinedUse(UndefinedError):
    """Something undefined was used; carries it, so that the nearest name can be told. ``line`` of its template, 0 where only the traceback knows."""

    def __init__(self, undefined: Missing, line: int = 0) -> None:
        super().__init__(undefined.said)
        self.undefined = undefined
        self.line = line


class Missing(StrictUndefined):
    """An undefined value: any use fails, `is defined` and `default` work, also through missing levels (`a.b.c | default(1)`)."""

    __slots__ = ()

    @property
    def said(self) -> str:
        if self._undefined_hint:
            return str(self._undefined_hint)
        if self._undefined_obj is missing:
            return f"'{self._undefined_name}' is undefined"
        return f"{_describe(self._undefined_obj)} has no {_member(self._undefined_name)}"

    def _fail_with_undefined_error(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise UndefinedUse(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, _key: Any) -> Any:
        return self

    def __call__(self, *_args: Any, **_options: Any) -> Any:
        return self

    # Its repr too: else a list that holds it would become a text without a word.
    __iter__ = __str__ = __repr__ = __len__ = __eq__ = __ne__ = __bool__ = __hash__ = __contains__ = _fail_with_undefined_error
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __lt__ = __le__ = __gt__ = __ge__ = _fail_with_undefined_error


class Broken(Missing):
    """A variable whose own template fails: unlike an undefined one it fails in `default` and `is defined` too."""

    __slots__ = ()


class Omit:
    """The value of `omit`: the parameter that gets it counts as not given."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "omit"


OMIT = Omit()


def _describe(obj: Any) -> str:
    names = {dict: "the mapping", list: "the list", str: "the text", int: "the number", float: "the number", bool: "the boolean"}
    if obj is None:
        return "null"
    try:
        shown = repr(obj)
    except UndefinedError:  # something in it is missing too
        return names.get(type(obj), "the value").replace("the ", "this ")
    # One terminal line of the value is enough to recognise it.
    return f"{names.get(type(obj), 'the value')} {shown if len(shown) <= 60 else shown[:57] + '...'}"


def _member(name: Any) -> str:
    return f"item {name}" if isinstance(name, int) else f"attribute '{name}'"
