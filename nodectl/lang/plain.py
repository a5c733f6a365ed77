"""Between Jinja's values and plain data: parts joined, texts ended, results sealed against being read as templates again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jinja2 import Undefined

from nodectl.lang.secrets import SecretText, reveal
from nodectl.lang.template_error import TemplateError
from nodectl.lang.undefined import OMIT, Missing
from nodectl.lang.unsafe import Unsafe, has_template
from nodectl.wire.secret import Secret


def needed(undefined: Missing, variable: str) -> Missing:
    """The same undefined value, which now also says which variable needed it."""
    if undefined._undefined_hint:
        return undefined
    return Missing(hint=f"{undefined.said}, needed by '{variable}'", obj=undefined._undefined_obj, name=undefined._undefined_name)


def joined(values: Any) -> Any:
    """One value stays as it is; several become one text; nothing at all is None."""
    parts = [part for part in values if part is not None]
    if len(parts) < 2:
        return parts[0] if parts else None
    text = "".join(map(text_of, parts))
    return SecretText(text) if any(isinstance(part, SecretText) for part in parts) else text


def ended(value: Any, source: str) -> Any:
    """Text ends with as many newlines as its template: Jinja eats the last one, and one after a statement."""
    if not isinstance(value, str):
        return value
    missing_ends = _ends(source) - _ends(value)
    return type(value)(value + "\n" * missing_ends) if missing_ends > 0 else value


def _ends(text: str) -> int:
    return len(text) - len(text.rstrip("\n"))


def text_of(value: Any) -> str:
    if isinstance(value, Missing):
        value._fail_with_undefined_error()
    if value is OMIT:
        raise TemplateError("omit cannot be a part of a text", "omit leaves out a whole value: `{{ x | default(omit) }}` alone")
    if isinstance(value, (str, int, float, Undefined)):  # an inline `if` without `else` is no text
        return str(value)
    return "" if value is None else str(reveal(data(value)))


def sealed(value: Any) -> Any:
    """Texts that a template made are marked, so that they are not read as templates when a variable holds them."""
    return Unsafe(value) if isinstance(value, str) and not isinstance(value, Unsafe) and has_template(value) else value


def data(value: Any) -> Any:
    """A result as plain data: undefined parts raise, omitted ones go, views and generators become lists."""
    if isinstance(value, Missing):
        value._fail_with_undefined_error()
    if isinstance(value, Undefined):
        raise TemplateError("an inline `if` without `else` came out as nothing", "add `else` and a value, for example `else omit`")
    if isinstance(value, SecretText):
        return Secret(str(value))
    if isinstance(value, str):
        return sealed(str(value) if type(value) is not Unsafe else value)
    if value is None or isinstance(value, (bool, int, float, bytes)) or value is OMIT:
        return value
    if isinstance(value, Mapping):
        pairs = [(reveal(data(key)), data(item)) for key, item in value.items()]
        return {key: item for key, item in pairs if item is not OMIT}
    if isinstance(value, range):
        raise TemplateError("a range is not a list yet", "write `range(…) | list`")
    if isinstance(value, Iterable):
        return [item for item in map(data, value) if item is not OMIT]
    if callable(value):
        name = getattr(value, "__name__", "name")
        raise TemplateError(f"'{name}' is a function here, not data", f"call it with parentheses, or write ['{name}'] for a key of that name")
    return value
