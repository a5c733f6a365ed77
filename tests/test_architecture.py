"""The house holds its shape: imports, doors, edges and sizes, read from the sources with `ast`."""

from __future__ import annotations

import ast
import statistics
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
TABLE: dict[str, Any] = tomllib.loads((Path(__file__).parent / "architecture_table.toml").read_text())
AGENT_STDLIB_ONLY = ("nodectl.agent", "nodectl.wire")
# Old names of things, kept so that the agent runs on 3.8 to 3.13: not in today's sys.stdlib_module_names.
GONE_FROM_STDLIB = {"crypt", "spwd", "distutils", "imp"}


@cache
def sources() -> dict[str, tuple[Path, ast.Module]]:
    found = {}
    for path in sorted((ROOT / "nodectl").rglob("*.py")):
        if "_shipped" in path.parts:
            continue
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found[name] = (path, ast.parse(path.read_text(encoding="utf-8"), str(path)))
    return found


@cache
def imports(tree: ast.AST) -> tuple[tuple[str, int], ...]:
    return tuple(imported(tree))


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every imported name with its line, wherever the statement stands: `from a import b` gives a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"relative import in line {node.lineno}: write the full name"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "import_module" and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value), node.lineno


def covers(names: list[str], module: str) -> bool:
    def under(name: str) -> bool:
        return module == name or module.startswith(name + ".")

    return any(under(name) for name in names if not name.startswith("!")) and not any(under(name[1:]) for name in names if name.startswith("!"))


def forbidden(module: str, tree: ast.AST, rule: dict[str, Any]) -> list[str]:
    if not covers(rule["who"], module):
        return []
    return [f"{module}:{line} imports {name}: {rule['why']}" for name, line in imports(tree) if covers(rule["what"], name)]


@pytest.mark.parametrize("rule", TABLE["never"], ids=lambda rule: f"{'+'.join(rule['who'])} never {'+'.join(rule['what'])}"[:100])
def test_import_table(rule: dict[str, Any]) -> None:
    assert [problem for module, (_, tree) in sources().items() for problem in forbidden(module, tree, rule)] == []


def test_third_party_only_at_its_door() -> None:
    wrong = []
    for module, (_, tree) in sources().items():
        for name, line in imports(tree):
            top = name.partition(".")[0]
            if top == "nodectl" or top in sys.stdlib_module_names or top in GONE_FROM_STDLIB:
                continue
            if not covers(TABLE["doors"].get(top, []), module):
                wrong.append(f"{module}:{line} imports {top}; its door is {TABLE['doors'].get(top, 'nowhere')}")
    assert wrong == []


def test_the_agent_needs_the_standard_library_only() -> None:
    wrong = [
        f"{module}:{line} imports {name}"
        for module, (_, tree) in sources().items()
        if covers(list(AGENT_STDLIB_ONLY), module)
        for name, line in imports(tree)
        if name.partition(".")[0] not in sys.stdlib_module_names | GONE_FROM_STDLIB | {"nodectl"}
    ]
    assert wrong == []


def test_agent_modules_do_not_know_each_other() -> None:
    wrong = [
        f"{module}:{line} imports {name}"
        for module, (_, tree) in sources().items()
        if covers(["nodectl.agent.modules"], module)
        for name, line in imports(tree)
        if covers(["nodectl.agent.modules", "nodectl.agent.runner", "nodectl.agent.boot", "nodectl.agent.catalogue"], name)
    ]
    assert wrong == []


def test_workloads_are_one_file_each() -> None:
    folder = ROOT / "nodectl" / "verify" / "workloads"
    assert [str(path) for path in folder.rglob("*.py") if path.parent != folder] == []


def test_package_roots_are_empty() -> None:
    assert [module for module, (path, tree) in sources().items() if path.name == "__init__.py" and tree.body] == []


def test_nobody_imports_a_package_root() -> None:
    """`from nodectl.lang import load` is fine when load is a module; a name is imported from the module that defines it."""
    packages = {module for module, (path, _) in sources().items() if path.name == "__init__.py"}
    wrong = [
        f"{module}:{line} imports {name}"
        for module, (_, tree) in sources().items()
        for name, line in imports(tree)
        if name in packages or (name.rpartition(".")[0] in packages and name not in sources())
    ]
    assert wrong == []


def test_no_import_cycles() -> None:
    graph = {module: {known(name) for name, _ in imports(without_type_checking(tree))} - {"", module} for module, (_, tree) in sources().items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


def without_type_checking(tree: ast.Module) -> ast.Module:
    """Names for the type checker are no imports when the program runs."""
    return ast.Module([node for node in tree.body if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")], [])


def known(name: str) -> str:
    """The module of ours that ``name`` is or lies in, or ""."""
    return next((candidate for candidate in (name, name.rpartition(".")[0]) if candidate in sources()), "")


def test_no_drawers() -> None:
    assert [module for module in sources() if set(module.split(".")) & set(TABLE["drawers"]["names"])] == []


def is_broad(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    if isinstance(last, ast.Raise) and last.exc is None:
        return False
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException") for kind in types)


def test_broad_excepts_stand_at_the_edges_only() -> None:
    found = {module for module, (_, tree) in sources().items() for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and is_broad(node)}
    assert found - set(TABLE["broad_excepts"]) == set()


def test_no_work_at_import() -> None:
    """A module defines names. Calls at its top level that do something (open, run, read the environment) are work."""
    doing = {"open", "print", "read_text", "run", "getenv", "system", "mkdir", "exit", "connect", "Popen", "basicConfig", "now", "monotonic", "load", "loads"}
    wrong = []
    for module, (_, tree) in sources().items():
        for statement in tree.body:
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.If, ast.Import, ast.ImportFrom)):
                continue
            for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
                name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
                if name in doing:
                    wrong.append(f"{module}:{call.lineno} calls {name} at import")
    assert wrong == []


def test_no_module_level_mutable_state() -> None:
    """No `global`, and no module-level name that code changes in place."""
    wrong = []
    for module, (_, tree) in sources().items():
        wrong += [f"{module}:{node.lineno} uses global" for node in ast.walk(tree) if isinstance(node, ast.Global)]
        names = {target.id for statement in tree.body for target in targets(statement) if isinstance(target, ast.Name)}
        wrong += [f"{module}:{line} changes {name}" for name, line in changed_in_place(tree) if name in names]
    assert wrong == []


def targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if isinstance(statement, ast.AnnAssign) else []


def changed_in_place(tree: ast.Module) -> Iterator[tuple[str, int]]:
    changing = {"append", "add", "update", "extend", "clear", "pop", "setdefault", "insert", "remove", "discard"}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        local = {arg.arg for arg in function.args.args + function.args.kwonlyargs} | {
            target.id for node in ast.walk(function) if isinstance(node, ast.stmt) for target in targets(node) if isinstance(target, ast.Name)
        }
        for node in ast.walk(function):
            value = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in changing else None
            if isinstance(value, ast.Name) and value.id not in local:
                yield value.id, value.lineno


def functions() -> Iterator[tuple[str, ast.FunctionDef, int]]:
    for module, (_, tree) in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno is not None
                yield f"{module}:{node.lineno} {node.name}", node, node.end_lineno - node.lineno + 1


def test_functions_stay_small() -> None:
    sizes = TABLE["sizes"]
    lengths = sorted(length for _, _, length in functions())
    assert [f"{where} has {length} lines" for where, _, length in functions() if length > sizes["function_most"]] == []
    assert statistics.median(lengths) <= sizes["function_median"]
    assert lengths[int(len(lengths) * 0.9)] <= sizes["function_p90"]
    assert 100 * sum(length > 50 for length in lengths) / len(lengths) <= sizes["function_over_50_percent"]


def test_every_function_is_annotated() -> None:
    wrong = []
    for where, node, _ in functions():
        arguments = [arg for arg in node.args.posonlyargs + node.args.args + node.args.kwonlyargs if arg.arg not in ("self", "cls")]
        if node.returns is None or any(arg.annotation is None for arg in arguments):
            wrong.append(where)
    assert wrong == []


def code_lines(path: Path, tree: ast.Module) -> int:
    doc: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            assert first.end_lineno is not None
            doc.update(range(first.lineno, first.end_lineno + 1))
    lines = path.read_text(encoding="utf-8").splitlines()
    return sum(1 for number, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#") and number not in doc)


def test_files_stay_small() -> None:
    assert [module for module, (path, tree) in sources().items() if code_lines(path, tree) > TABLE["sizes"]["file_most"]] == []


# The test must be able to fail: what each check says about code that breaks its rule.

BAD = [
    ("nodectl.agent.modules.x", "def f():\n    from nodectl.lang import load\n", "imports nodectl.lang.load"),
    ("nodectl.lang.x", "import time\n", "imports time"),
    ("nodectl.lang.x", "import datetime\n", ""),
    ("nodectl.report.x", "from nodectl.transport.channel import Lost\n", "imports nodectl.transport.channel.Lost"),
    ("nodectl.engine.x", "import importlib\nimportlib.import_module('nodectl.cli.main')\n", "imports nodectl.cli.main"),
    ("nodectl.verify.judging.judge", "import torch.distributed\n", "imports torch.distributed"),
    ("nodectl.verify.stage", "import subprocess\n", ""),
    ("nodectl.verify.workloads.x", "import nodectl.wire.event\n", "imports nodectl.wire.event"),
    ("nodectl.agent.runner", "from nodectl.wire.step import Step\n", ""),
    ("nodectl.wire.x", "from nodectl.agent.contract import Failed\n", "imports nodectl.agent.contract.Failed"),
]


@pytest.mark.parametrize(("module", "source", "problem"), BAD)
def test_the_table_can_fail(module: str, source: str, problem: str) -> None:
    found = [text for rule in TABLE["never"] for text in forbidden(module, ast.parse(source), rule)]
    assert (problem in found[0]) if problem else not found


@pytest.mark.parametrize(("clause", "broad"), [("", True), (" Exception", True), (" (OSError, BaseException)", True), (" (OSError, ValueError)", False), (" OSError", False)])
def test_broad_is_recognised(clause: str, broad: bool) -> None:
    tree = ast.parse(f"try:\n    pass\nexcept{clause}:\n    pass\n")
    assert [is_broad(node) for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)] == [broad]


def test_changing_a_module_level_name_is_seen() -> None:
    tree = ast.parse("CACHE = {}\ndef f(x):\n    CACHE.update(x)\ndef g(CACHE):\n    CACHE.update(1)\n")
    assert list(changed_in_place(tree)) == [("CACHE", 3)]
