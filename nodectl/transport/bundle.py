"""The agent as bytes: the sources of `nodectl.wire` and `nodectl.agent`, read as data, and the line of Python that receives them.

An agent starts with its core, a tenth of the whole. The sources of a module follow on the open line, before the first step that names it:
so a node gets what its tasks use and no more, and a module that an include brings in the middle of a run needs nothing of its own.
"""

from __future__ import annotations

import ast
import functools
import io
import json
import struct
import threading
import tokenize
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable

# What the node needs; nothing else of nodectl travels.
ROOMS = ("wire", "agent")

# Key of the bundle under which the in-memory importer travels: not a module of the node's nodectl.
ENTRY = "__main__"

# Where the agent's life begins, and the table that says which Python module stands behind a module's name.
BOOT = "nodectl.agent.boot"
CATALOGUE = "nodectl.agent.catalogue"

# Everything that the remote command line carries. It passes through whatever login shell the account has, inside single
# quotes: so it is one line without quote, backslash or exclamation mark, which sh, bash, zsh, fish and tcsh all hand on
# unchanged. It prints the marker backwards: a shell that echoes its commands (set -x) cannot be taken for it.
LOADER = (
    "import sys,zlib,json;"
    'sys.version_info>=(3,8) or sys.exit("nodectl: Python 3.8 or later is needed, this is "+sys.version.split()[0]);'
    "sys.stdout.write(sys.argv[1][::-1]);sys.stdout.flush();r=sys.stdin.buffer.read;"
    'm=json.loads(zlib.decompress(r(int.from_bytes(r(8),"big"))).decode());'
    f'exec(compile(m.pop("{ENTRY}"),"nodectl:importer","exec"),dict(SOURCES=m))'
)

LENGTH = struct.Struct(">Q")


def sources() -> dict[str, str]:
    """Module name to source text of everything that runs on the node; packages stand under their own name."""
    root = files("nodectl")
    found = {"nodectl": ""}
    for room in ROOMS:
        found.update(_modules(root / room, f"nodectl.{room}"))
    return found


def pack(modules: Mapping[str, str]) -> bytes:
    """What the loader reads from stdin: 8 bytes of length, big endian, then zlib-compressed JSON of ``modules`` and the importer."""
    importer = (files("nodectl") / "transport" / "importer.py").read_text(encoding="utf-8")
    body = _compressed({**modules, ENTRY: importer})
    return LENGTH.pack(len(body)) + body


def _compressed(modules: Mapping[str, str]) -> bytes:
    # Level 9: hundredths of a second once per run against seconds on a slow link times the number of nodes.
    return zlib.compress(json.dumps(modules).encode("ascii"), 9)


class Supply:
    """The sources that agents are given, piece by piece. One for all connections of a run; thread-safe.

    Reading and packing are done once for each piece, however many nodes ask for it.
    """

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._texts = sources() if texts is None else texts
        self._modules = _table(self._texts[CATALOGUE])
        self._lock = threading.Lock()
        self._closures: dict[str, frozenset[str]] = {}
        self._packed: dict[frozenset[str], bytes] = {}

    @functools.cached_property
    def core(self) -> bytes:
        """What the loader reads from stdin: an agent that can take frames and run no module yet."""
        return pack(self._bare(self.closure(BOOT)))

    def follow(self) -> Callable[[str], bytes]:
        """For one agent: maps the name of a module to the sources, packed, that this agent has not been sent yet; b"" for none.

        What is returned counts as sent. A name that the catalogue does not have needs nothing: the agent itself says so.
        """
        held = set(self.closure(BOOT))

        def missing(module: str) -> bytes:
            wanted = self.closure(self._modules[module]) - held if module in self._modules else frozenset()
            held.update(wanted)
            return self._piece(wanted) if wanted else b""

        return missing

    def closure(self, name: str) -> frozenset[str]:
        """``name`` and every source of the agent that it imports, directly or not."""
        with self._lock:
            if name not in self._closures:
                self._closures[name] = frozenset(self._reached(name))
            return self._closures[name]

    def _reached(self, name: str) -> set[str]:
        seen: set[str] = set()
        left = {name}
        while left:
            one = left.pop()
            seen.add(one)
            left |= {other for other in (one.rpartition(".")[0], *_imports(self._texts[one])) if other in self._texts} - seen
        return seen

    def _piece(self, names: frozenset[str]) -> bytes:
        with self._lock:
            if names not in self._packed:
                self._packed[names] = _compressed(self._bare(names))
            return self._packed[names]

    def _bare(self, names: Iterable[str]) -> dict[str, str]:
        return {name: bare(self._texts[name]) for name in sorted(names)}


def _table(catalogue: str) -> Mapping[str, str]:
    """Name of a module to the Python module behind it. Read from the agent's source as data, as all of it is here."""
    for statement in ast.parse(catalogue).body:
        if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == "MODULES" and statement.value is not None:
            table: dict[str, str] = ast.literal_eval(statement.value)
            return table
    raise ValueError("the agent's catalogue has no table MODULES")


def _imports(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def bare(source: str) -> str:
    """The same code without comments and docstrings: a third of the bytes. Lines keep their numbers, for what a traceback says."""
    lines = source.splitlines(keepends=True)
    start = tokenize.TokenInfo(tokenize.NL, "", (0, 0), (0, 0), "")
    tokens = [start, *tokenize.generate_tokens(io.StringIO(source).readline)]
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        alone = token.type == tokenize.STRING and before.type in _BEGINS and after.type == tokenize.NEWLINE
        if token.type == tokenize.COMMENT or alone:
            _blank(lines, token, '""' if alone else "")
    return "".join(lines)


# What may stand before a text that is a statement of its own.
_BEGINS = (tokenize.INDENT, tokenize.NEWLINE, tokenize.NL, tokenize.DEDENT)


def _blank(lines: list[str], token: tokenize.TokenInfo, instead: str) -> None:
    (first, start), (last, end) = token.start, token.end
    rest = lines[last - 1][end:]
    for number in range(first, last):
        lines[number - 1] = "\n" if number > first else lines[number - 1][:start] + instead + "\n"
    lines[last - 1] = lines[last - 1][:start] + instead + rest if first == last else rest


def _modules(folder: Traversable, name: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.is_dir() and not entry.name.startswith(("_", ".")):
            yield from _modules(entry, f"{name}.{entry.name}")
        elif entry.name == "__init__.py":
            yield name, entry.read_text(encoding="utf-8")
        elif entry.name.endswith(".py"):
            yield f"{name}.{entry.name[:-3]}", entry.read_text(encoding="utf-8")
