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
from nodectl.agent.catalogue import MODULES
from nodectl.transport.bundle import BOOT, ENTRY, LENGTH, LOADER, Supply, bare, sources
from nodectl.transport.start import Order
from nodectl.wire.frame import MAX_PAYLOAD, Decoder, encode


def test_only_wire_and_agent_travel_and_they_are_complete() -> None:
    found = sources()
    assert {name.split(".")[1] for name in found if "." in name} == {"wire", "agent"}
    root = Path(importer_source.__file__).parents[1]
    files = [path for room in ("wire", "agent") for path in (root / room).rglob("*.py")]
    assert len(found) == len(files) + 1  # nodectl itself, which is empty
    assert found["nodectl.wire.frame"] == (root / "wire" / "frame.py").read_text()
    assert found["nodectl.agent"] == ""


@pytest.fixture(scope="module")
def supply() -> Supply:
    return Supply()


def test_the_layout_is_length_and_compressed_json(supply: Supply) -> None:
    packed = supply.core
    (length,) = struct.unpack(">Q", packed[:8])
    assert length == len(packed) - LENGTH.size
    modules = json.loads(zlib.decompress(packed[8:]))
    assert modules.pop(ENTRY) == Path(importer_source.__file__).read_text()
    assert modules == {name: bare(sources()[name]) for name in supply.closure(BOOT)}


def opened(piece: bytes) -> set[str]:
    return set(json.loads(zlib.decompress(piece)))


def test_the_core_is_what_boot_imports_and_has_no_module(supply: Supply) -> None:
    core = supply.closure(BOOT)
    assert {BOOT, "nodectl", "nodectl.agent", "nodectl.wire", "nodectl.wire.frame", "nodectl.agent.runner", "nodectl.agent.catalogue"} <= core
    assert not {name for name in core if name.startswith("nodectl.agent.modules")}


def test_packages_alone_are_empty() -> None:
    """By that the importer knows them."""
    root = Path(importer_source.__file__).parents[1]
    packages = {"nodectl", *("nodectl." + str(path.parent.relative_to(root)).replace("/", ".") for room in ("wire", "agent") for path in (root / room).rglob("__init__.py"))}
    assert {name for name, text in sources().items() if text == ""} == packages


SMALL = {
    "nodectl": "", "nodectl.agent": "", "nodectl.agent.boot": "from nodectl.agent import catalogue", "nodectl.agent.modules": "",
    "nodectl.agent.catalogue": "MODULES: dict = {'one': 'nodectl.agent.modules.one', 'two': 'nodectl.agent.modules.two', 'uno': 'nodectl.agent.modules.one'}",
    "nodectl.agent.modules.one": "import os, nodectl.agent.shared",
    "nodectl.agent.modules.two": "from nodectl.agent.shared import x\ndef f():\n    from nodectl.agent import late",
    "nodectl.agent.shared": "import nodectl.agent.boot", "nodectl.agent.late": "from nodectl.agent.shared import y", "nodectl.agent.unused": "",
}


def test_a_module_comes_with_what_it_imports_and_nothing_comes_twice() -> None:
    missing = Supply(SMALL).follow()
    assert opened(missing("one")) == {"nodectl.agent.modules", "nodectl.agent.modules.one", "nodectl.agent.shared"}
    assert opened(missing("two")) == {"nodectl.agent.modules.two", "nodectl.agent.late"}
    assert [missing(name) for name in ("one", "uno", "two", "no such module")] == [b"", b"", b"", b""]


def test_each_agent_is_followed_for_itself_and_pieces_are_packed_once() -> None:
    supply = Supply(SMALL)
    one, other = supply.follow(), supply.follow()
    assert one("one") is other("one")


def test_it_stays_small_enough_for_a_slow_line(supply: Supply, capsys: pytest.CaptureFixture[str]) -> None:
    # 150 kB are a second and a half on 1 Mb/s, and a blink anywhere else. Nobody's run uses every module; an agent and any of them is a tenth.
    sizes = {name: len(supply.follow()(name)) for name in MODULES}
    with capsys.disabled():
        print(f"\nagent {len(supply.core)} bytes; with each module's imports:", *(f"{name} {size}" for name, size in sorted(sizes.items())))
    assert len(supply.core) < 25_000
    assert max(sizes.values()) + len(supply.core) < 60_000
    assert min(sizes.values()) > 0


def test_a_node_that_gets_every_role_stays_under_the_bound(supply: Supply) -> None:
    texts = [path.read_text() for path in (Path(importer_source.__file__).parents[2] / "roles").rglob("*.yml")]
    used = [name for name in MODULES if any(f"  {name}:" in text for text in texts)]
    assert {"package", "copy", "sysctl", "mount", "systemd"} <= set(used)
    missing = supply.follow()
    assert len(supply.core) + sum(len(missing(name)) for name in ("setup", *used)) < 150_000
    assert all(len(supply.follow()(name)) < MAX_PAYLOAD for name in MODULES)


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
    process = subprocess.run(order.argv, input=Supply().core + encode({"t": "bye"}), capture_output=True, timeout=20, cwd=tmp_path, check=False)
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
