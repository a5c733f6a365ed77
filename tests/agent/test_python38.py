"""The node may have Python 3.8: syntax, and the spellings that only fail when they run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import nodectl

ROOT = Path(nodectl.__file__ or "").parent if nodectl.__file__ else Path(next(iter(nodectl.__path__)))
FILES = sorted(path for room in ("wire", "agent") for path in (ROOT / room).rglob("*.py"))
# Attributes and functions that came after 3.8; mypy checks against the controller's Python and does not see them.
LATER_METHODS = {"removeprefix", "removesuffix", "is_relative_to", "hardlink_to", "readlink", "bit_count", "pidfd_open", "with_stem", "to_thread"}
LATER_KEYWORDS = {("zip", "strict"), ("dataclass", "slots"), ("dataclass", "kw_only"), ("Popen", "process_group"), ("Popen", "umask"), ("Popen", "user"), ("Popen", "group")}
LATER_NAMES = {("functools", "cache"), ("typing", "Annotated"), ("typing", "TypeAlias"), ("typing", "ParamSpec"), ("typing", "Self"), ("contextlib", "aclosing"), ("contextlib", "chdir"), ("datetime", "UTC"), ("graphlib", "TopologicalSorter")}
NEW_GENERICS = {"list", "dict", "tuple", "set", "frozenset", "type"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_reads_as_python_38(path: Path) -> None:
    ast.parse(path.read_text(), filename=str(path), feature_version=(3, 8))


class Finder(ast.NodeVisitor):
    """Runtime spellings only: with `from __future__ import annotations` an annotation is never evaluated."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def say(self, node: ast.expr | ast.stmt, text: str) -> None:
        self.found.append(f"line {node.lineno}: {text}")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for child in [*node.body, *node.decorator_list, *node.args.defaults, *(default for default in node.args.kw_defaults if default)]:
            self.visit(child)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.value, ast.Name) and node.value.id in NEW_GENERICS:
            self.say(node, f"{node.value.id}[...] at run time")
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in LATER_METHODS and not (isinstance(node.value, ast.Name) and node.value.id == "os" and node.attr == "readlink"):
            self.say(node, f".{node.attr}")
        if isinstance(node.value, ast.Name) and (node.value.id, node.attr) in LATER_NAMES:
            self.say(node, f"{node.value.id}.{node.attr}")
        self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if (node.module, alias.name) in LATER_NAMES:
                self.say(node, f"from {node.module} import {alias.name}")

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
        for keyword in node.keywords:
            if (name, keyword.arg) in LATER_KEYWORDS:
                self.say(node, f"{name}({keyword.arg}=)")
        self.generic_visit(node)


def later(source: str) -> list[str]:
    finder = Finder()
    finder.visit(ast.parse(source))
    return finder.found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_runs_as_python_38(path: Path) -> None:
    source = path.read_text()
    assert later(source) == []
    if source.strip():
        assert "from __future__ import annotations" in source


@pytest.mark.parametrize(
    "source",
    ["x = list[int]", "def f(a: int = dict[str, int]): pass", "'a'.removeprefix('b')", "zip(a, b, strict=True)", "from functools import cache", "import datetime\nx = datetime.UTC"],
)
def test_the_finder_finds(source: str) -> None:
    assert later(source)


@pytest.mark.parametrize("source", ["x: list[int] = []", "def f(a: dict[str, int]) -> tuple[int, ...]: ...", "os.readlink(path)", "zip(a, b)"])
def test_the_finder_lets_pass(source: str) -> None:
    assert later(source) == []
