"""The agent as bytes: the sources of `nodectl.wire` and `nodectl.agent`, read as data, and the line of Python that receives them."""

from __future__ import annotations

import io
import json
import struct
import tokenize
import zlib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable

# What the node needs; nothing else of nodectl travels.
ROOMS = ("wire", "agent")

# Key of the bundle under which the in-memory importer travels: not a module of the node's nodectl.
ENTRY = "__main__"

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
    # Level 9: 0.1 s once per run against seconds on a slow link times the number of nodes.
    body = zlib.compress(json.dumps({**modules, ENTRY: importer}).encode("ascii"), 9)
    return LENGTH.pack(len(body)) + body


def bundle() -> bytes:
    """The packed agent. The caller keeps it for as long as it connects; nothing is cached here."""
    return pack({name: bare(text) for name, text in sources().items()})


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
