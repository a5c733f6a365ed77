"""What is outside the files of a playbook: programs on the controller, the network, the moment; for an inventory or for a template."""

from __future__ import annotations

import os
import random
import ssl
import string
import subprocess
import threading
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from nodectl.diagnostics.model import Mistakes
from nodectl.engine.options import Options
from nodectl.inventory.model import Inventory
from nodectl.inventory.patterns import select
from nodectl.lang.filters_secret import password_hash
from nodectl.lang.freeform import BadText, command_line
from nodectl.lang.lookups import Reader
from nodectl.lang.secrets import SecretText

# s; Ansible waits for ever. A cloud's inventory program may ask page after page; none that was seen needs a minute.
LIMIT = 120.0


def output(argv: Sequence[str], folder: Path | None = None) -> str:
    """What a program prints. Raises ValueError for one that cannot be run, fails, does not end or prints no text."""
    try:
        done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip()[-500:]
            raise ValueError(f"{argv[0]} ended with {done.returncode}: {said or 'it said nothing'}")
        return done.stdout.decode("utf-8")
    except subprocess.TimeoutExpired:
        raise ValueError(f"{argv[0]} did not end within {LIMIT:g} s") from None
    except UnicodeDecodeError:
        raise ValueError(f"{argv[0]} prints something that is not UTF-8 text") from None
    except OSError as error:
        raise ValueError(f"{argv[0]} cannot be run: {error.strerror}") from None


class Around(Protocol):
    """What the lookups of a run need of it."""

    playbook_dir: Path
    inventory: Inventory
    options: Options
    asking: threading.Lock


def readers(run: Around) -> Mapping[str, Reader]:
    """The lookups that files alone cannot answer."""
    return {
        "pipe": lambda terms, _options: [output(["/bin/sh", "-c", str(term)], run.playbook_dir).rstrip() for term in terms],
        "lines": lambda terms, _options: [line for term in terms for line in output(["/bin/sh", "-c", str(term)], run.playbook_dir).splitlines()],
        "url": _url,
        "password": lambda terms, options: _passwords(terms, options, run),
        "inventory_hostnames": lambda terms, _options: _hostnames(terms, run.inventory),
        "_now": lambda _terms, _options: [time.time()],
    }


def _hostnames(terms: Sequence[Any], inventory: Inventory) -> list[Any]:
    try:
        return list(select(inventory, ",".join(map(str, terms))))
    except Mistakes:
        return []


# s; Ansible's own limit for one answer.
URL_LIMIT = 10.0
MOST_BYTES = 64 * 1024 * 1024


def _url(terms: Sequence[Any], options: Mapping[str, Any]) -> list[Any]:
    found: list[str] = []
    for term in terms:
        text = _fetched(str(term), options)
        found += text.splitlines() if options.get("split_lines", True) else [text]
    return found


def _fetched(url: str, options: Mapping[str, Any]) -> str:
    headers = {str(name): str(value) for name, value in (options.get("headers") or {}).items()}
    if options.get("username"):
        pair = f"{options['username']}:{options.get('password') or ''}"
        headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    if not url.startswith(("http://", "https://", "ftp://", "file://")):
        raise ValueError(f"url: {url!r} is no address to fetch")
    context = ssl.create_default_context() if options.get("validate_certs", True) else ssl._create_unverified_context()  # noqa: S323 -- asked for by name
    try:
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 -- the kinds of addresses are checked above
        with urllib.request.urlopen(request, timeout=float(options.get("timeout", URL_LIMIT)), context=context) as answer:  # noqa: S310
            data: bytes = answer.read(MOST_BYTES + 1)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise ValueError(f"url: {url}: {error}") from None
    if len(data) > MOST_BYTES:
        raise ValueError(f"url: {url} answers with more than {MOST_BYTES // 2**20} MiB")
    return data.decode("utf-8", "replace")


_SETS = ("ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits", "hexdigits", "octdigits", "punctuation")
_CHARACTERS = {name: getattr(string, name) for name in _SETS}
_OPTIONS = ("length", "chars", "encrypt", "ident", "seed")
# Ansible's: 20 characters of these hold 120 bits.
_LENGTH, _CHARS = 20, ["ascii_letters", "digits", ".,:-_"]
# Salts are letters of crypt(3); bcrypt takes 22 of them, the others up to 16, of which Ansible uses 8.
_SALT, _SALT_BCRYPT = 8, 22


def _passwords(terms: Sequence[Any], options: Mapping[str, Any], run: Around) -> list[Any]:
    """One after the other: of several hosts that ask at the same time the first one's password is everybody's."""
    with run.asking:
        return [_Password(str(term), options, run).text() for term in terms]


class _Password:
    """One file of a password, made where there is none; `/dev/null` and check mode keep nothing."""

    def __init__(self, term: str, options: Mapping[str, Any], run: Around) -> None:
        try:
            name, given = command_line(term, _OPTIONS)
        except BadText as error:
            raise ValueError(f"password: {error}") from None
        self._options = {**options, **given}
        self._path = run.playbook_dir / os.path.expanduser(name)
        self._keeps = not run.options.check and name != os.devnull

    def text(self) -> SecretText:
        before = self._read()
        password, _, salt = before.partition(" salt=")
        password = password or self._made(int(self._options.get("length", _LENGTH)), self._characters())
        method = self._options.get("encrypt")
        if method and not salt:
            salt = self._made(_SALT_BCRYPT if method in ("bcrypt", "blowfish") else _SALT, string.ascii_letters + string.digits)
        content = f"{password} salt={salt}" if salt else password
        if self._keeps and content != before:
            self._keep(content)
        return SecretText(password_hash(password, str(method), salt.partition(" ident=")[0], ident=self._options.get("ident")) if method else password)

    def _read(self) -> str:
        try:
            return self._path.read_text("utf-8").rstrip("\n") if self._path.is_file() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"password: {self._path}: {error}") from None

    def _characters(self) -> str:
        wanted = self._options.get("chars", _CHARS)
        words = wanted.replace(",,", "\0").split(",") if isinstance(wanted, str) else list(wanted)
        return "".join(dict.fromkeys("".join(_CHARACTERS.get(word, word.replace("\0", ",")) for word in words)))

    def _made(self, length: int, characters: str) -> str:
        if not characters:
            raise ValueError("password: no characters to make one of")
        seed = self._options.get("seed")
        source = random.Random(str(seed)) if seed is not None else random.SystemRandom()
        return "".join(source.choice(characters) for _ in range(length))

    def _keep(self, content: str) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(content + "\n")
