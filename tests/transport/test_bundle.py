"""The agent as bytes, and the real one started from them under python3 -I -S."""

from __future__ import annotations

import ast
import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import nodectl.transport.importer as importer_source
from nodectl.transport.bundle import ENTRY, LENGTH, LOADER, bare, bundle, sources
from nodectl.transport.start import Order
from nodectl.wire.frame import Decoder, encode


def test_only_wire_and_agent_travel_and_they_are_complete() -> None:
    found = sources()
    assert {name.split(".")[1] for name in found if "." in name} == {"wire", "agent"}
    root = Path(importer_source.__file__).parents[1]
    files = [path for room in ("wire", "agent") for path in (root / room).rglob("*.py")]
    assert len(found) == len(files) + 1  # nodectl itself, which is empty
    assert found["nodectl.wire.frame"] == (root / "wire" / "frame.py").read_text()
    assert found["nodectl.agent"] == ""


def test_the_layout_is_length_and_compressed_json() -> None:
    packed = bundle()
    (length,) = struct.unpack(">Q", packed[:8])
    assert length == len(packed) - LENGTH.size
    modules = json.loads(zlib.decompress(packed[8:]))
    assert modules.pop(ENTRY) == Path(importer_source.__file__).read_text()
    assert modules == {name: bare(text) for name, text in sources().items()}


def test_it_stays_small_enough_for_a_slow_line() -> None:
    # 150 kB are a second and a half on 1 Mb/s, and a blink anywhere else.
    assert len(bundle()) < 150_000


def without_docstrings(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)):
            node.body = [one for one in node.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str))]
    return ast.dump(tree)


def test_what_travels_is_the_same_code_on_the_same_lines() -> None:
    for name, text in sources().items():
        sent = bare(text)
        assert without_docstrings(ast.parse(sent)) == without_docstrings(ast.parse(text)), name
        places = [[(type(node).__name__, node.lineno) for node in ast.walk(ast.parse(one)) if isinstance(node, (ast.Call, ast.Return))] for one in (sent, text)]
        assert places[0] == places[1], name


BARE = [
    ('"""Doc."""\nx = 1\n', '""\nx = 1\n'),
    ('def f():\n    """One.\n\n    Two.\n    """\n    return 1  # why\n', 'def f():\n    ""\n\n\n\n    return 1  \n'),
    ('x = """kept"""\ny = "# kept"\n', 'x = """kept"""\ny = "# kept"\n'),
    ("f('a'\n  'b')\n# gone\nx = (1,  # gone\n     2)\n", "f('a'\n  'b')\n\nx = (1,  \n     2)\n"),
    ('class A:\n    "Doc."\n', 'class A:\n    ""\n'),
    ('"""Doc."""; x = 1\n', '"""Doc."""; x = 1\n'),
    ("", ""),
]


@pytest.mark.parametrize(("source", "sent"), BARE)
def test_comments_and_docstrings_stay_here(source: str, sent: str) -> None:
    assert bare(source) == sent


def test_loader_and_importer_are_python_3_8() -> None:
    ast.parse(LOADER, feature_version=(3, 8))
    ast.parse(Path(importer_source.__file__).read_text(), feature_version=(3, 8))


def test_importing_the_importer_here_does_nothing() -> None:
    assert not any(type(finder).__name__ == "Importer" for finder in sys.meta_path)


def test_the_real_agent_starts_from_the_bundle_and_leaves_no_file(tmp_path: Path) -> None:
    order = Order(sys.executable)
    process = subprocess.run(order.argv, input=bundle() + encode({"t": "bye"}), capture_output=True, timeout=20, cwd=tmp_path, check=False)
    assert process.stderr == b""
    assert process.stdout.startswith(order.sign)
    frames = list(Decoder().feed(process.stdout[len(order.sign) :]))
    assert frames[0].type == "hello"
    assert frames[0].head["python"] == sys.version.split()[0]
    assert list(tmp_path.iterdir()) == []


def test_an_interpreter_that_is_too_old_says_so() -> None:
    old = LOADER.replace("(3,8)", "(9,9)")
    done = subprocess.run([sys.executable, "-I", "-S", "-c", old, "marker"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Python 3.8 or later is needed, this is 3." in done.stderr
