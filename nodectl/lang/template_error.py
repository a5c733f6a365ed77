"""What went wrong with a template, as a person reads it."""

from __future__ import annotations

import re

import jinja2

from nodectl.lang import filters

# What an expression over user data can raise besides Jinja's own errors.
FAULTS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, re.error, OSError)


class TemplateError(Exception):
    """A template could not be rendered: ``message`` says what is wrong, ``hint`` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message + (f" ({hint})" if hint else ""))
        self.message = message
        self.hint = hint


class UndefinedName(TemplateError):
    """A name or attribute that does not exist was used."""


def line_of(template: jinja2.Template, error: BaseException) -> int:
    """The line of the template in which ``error`` was raised; 0 where that was somewhere else. (Jinja knows which of its lines made which code.)"""
    line, step = 0, error.__traceback__
    while step is not None:
        if step.tb_frame.f_globals is template.root_render_func.__globals__:
            line = template.get_corresponding_lineno(step.tb_lineno)
        step = step.tb_next
    return line


def placed(source: str, line: int, before: int = 0) -> str:
    """`file:line`; the name alone where the line is not known."""
    return f"{source}:{line + before}" if line else source


def explained(error: BaseException, source: str) -> TemplateError:
    said = str(error) or type(error).__name__
    unlike = re.search(r"'[<>]=?' not supported between instances of '(\w+)' and '(\w+)'", said)
    where = f" in {short(source)!r}"
    if unlike:
        kinds = [filters.KINDS.get(name, name) for name in unlike.groups()]
        return TemplateError(f"cannot compare {kinds[0]} with {kinds[1]}{where}", "convert one side: `| int`, `| float`, or the test `is version(…)`")
    joined = re.search(r'can only concatenate str|unsupported operand type\(s\) for \+: .*str', said)
    if joined:
        return TemplateError(f"cannot add text and something else{where}", "join texts with ~, or convert with `| int` or `| string`")
    return TemplateError(f"{said}{where}")


def short(text: str) -> str:
    # One terminal line: the position says the rest.
    line = text.strip()
    return line if len(line) <= 120 else line[:117] + "..."
