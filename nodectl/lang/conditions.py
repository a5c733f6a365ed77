"""Conditions: what counts as true or false, and that a text never does so silently."""

from __future__ import annotations

from typing import Any

from jinja2 import nodes

from nodectl.lang import filters
from nodectl.lang.template_error import TemplateError
from nodectl.wire.secret import Secret


def guarded(node: nodes.Expr) -> nodes.Expr:
    """Under not, and, or: the text "false" is true for Python, so a variable that holds such a word is refused there."""
    if isinstance(node, nodes.Not):
        return nodes.Not(_word_guard(guarded(node.node)), lineno=node.lineno)
    if isinstance(node, (nodes.And, nodes.Or)):
        return type(node)(_word_guard(guarded(node.left)), _word_guard(guarded(node.right)), lineno=node.lineno)
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


def no_word(value: Any, name: str) -> Any:
    if isinstance(value, str) and value.lower() in filters.WORDS:
        raise not_boolean(name, value)
    return value


def not_boolean(condition: Any, value: Any) -> TemplateError:
    kind = "secret text" if isinstance(value, Secret) else filters.kind_of(value)
    if isinstance(value, str):
        read = f"write '{condition} | bool' to read the word, or '{condition} | length > 0' to ask for any text"
        return TemplateError(f"'{condition}' is the text {str(value)!r}, not true or false", read)
    if isinstance(value, (list, dict, Secret)):
        ask = f"'{condition} | length > 0'"
    else:
        ask = f"'{condition} is not none'" if value is None else f"'{condition} != 0'"
    return TemplateError(f"'{condition}' is a {kind}, not true or false", f"a condition must be a boolean: write {ask}, or '{condition} | bool'")
