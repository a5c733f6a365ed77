"""known_hosts files as OpenSSH reads them: who may call itself by which name. Nothing here talks to a network."""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import hmac
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

Policy = Literal["strict", "accept-new"]


class HostKey(NamedTuple):
    """A public key: its type as in known_hosts (ssh-ed25519, ssh-rsa, …) and its wire form."""

    type: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` shows it."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")

    def __str__(self) -> str:
        return f"{self.type} {self.fingerprint}"


class Entry(NamedTuple):
    """One line. ``names`` is the raw first field: names, patterns, or a hash."""

    file: Path
    line: int
    names: str
    key: HostKey
    revoked: bool

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


class Refused(Exception):
    """The key is not accepted. ``hint`` holds the exact command that would accept it."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def lookup_name(address: str, port: int) -> str:
    """How the file calls a server: the port is part of the name unless it is 22."""
    return address.lower() if port == 22 else f"[{address.lower()}]:{port}"


@dataclass(frozen=True)
class KnownHosts:
    """The files to look in, in this order; the first is the one a new key would be written to.

    ``told`` is the user's own word for StrictHostKeyChecking, for the message only. Files are read at each question: a key
    accepted while a run goes on counts for the next connection.
    """

    files: Sequence[Path]
    policy: Policy = "strict"
    told: str = ""

    def known(self, address: str, port: int) -> list[Entry]:
        """Lines for this server. Where none names the port, lines for the bare address count, as in OpenSSH."""
        entries = [entry for file in self.files for entry in read(file)]
        found = [entry for entry in entries if matches(entry.names, lookup_name(address, port))]
        return found or [entry for entry in entries if matches(entry.names, address.lower())]

    def types(self, address: str, port: int) -> list[str]:
        """Key types known for this server: ask it for one of these first, it may have several."""
        return list(dict.fromkeys(entry.key.type for entry in self.known(address, port) if not entry.revoked))

    def verify(self, address: str, port: int, key: HostKey) -> str:
        """Returns "" or a sentence about a key that was accepted and written just now. Raises Refused."""
        known = self.known(address, port)
        for entry in known:
            if entry.revoked and entry.key == key:
                raise Refused(f"its host key {key} is revoked ({entry.place})", "do not connect: the key is known to be stolen")
        good = [entry for entry in known if not entry.revoked]
        if any(entry.key == key for entry in good):
            return ""
        if good:
            raise self._changed(address, port, key, good)
        if self.policy == "accept-new":
            return self._accept(address, port, key)
        raise self._unknown(address, port, key)

    def _unknown(self, address: str, port: int, key: HostKey) -> Refused:
        wanted = f"; StrictHostKeyChecking={self.told} is not honoured, accept-new is" if self.told in ("no", "off") else ""
        return Refused(
            f"its host key is not known: {key} (looked in {', '.join(map(str, self.files))}{wanted})",
            f"compare with `ssh-keygen -lf /etc/ssh/ssh_host_{_short(key)}_key.pub` on the node itself; if it is the same, accept exactly this key with:\n"
            f"  {self._append(address, port, key)}",
        )

    def _changed(self, address: str, port: int, key: HostKey, known: Sequence[Entry]) -> Refused:
        same = [entry for entry in known if entry.key.type == key.type] or list(known)
        files = list(dict.fromkeys(entry.file for entry in known))
        remove = " && ".join(f"ssh-keygen -R {shlex.quote(_written(known, address, port))} -f {shlex.quote(str(file))}" for file in files)
        return Refused(
            f"its host key has CHANGED: known is {same[0].key} ({same[0].place}), it showed {key}",
            "somebody may stand between you and the node. If it was set up anew, compare the new fingerprint on the node itself, "
            "then accept it for this node with:\n"
            f"  {remove} && {self._append(address, port, key)}",
        )

    def _append(self, address: str, port: int, key: HostKey) -> str:
        return f"echo '{_line(address, port, key)}' >> {shlex.quote(str(self.files[0]))}"

    def _accept(self, address: str, port: int, key: HostKey) -> str:
        file = self.files[0]
        if file.exists() and not file.is_file():
            raise Refused(f"its host key {key} is new, and accept-new has no file to remember it in: {file} is not a file", "set UserKnownHostsFile to a file")
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "ab+") as stream:
                # One write of one line: parallel connections append whole lines. A last line without its end is ended first.
                end = b"" if _ends_clean(file) else b"\n"
                stream.write(end + _line(address, port, key).encode() + b"\n")
        except OSError as error:
            reason = f"its host key {key} is new and cannot be remembered: {file}: {error.strerror}"
            raise Refused(reason, "make the file writable, or set UserKnownHostsFile") from None
        return f"host key {key} accepted on first contact and written to {file}"


def read(file: Path) -> Iterator[Entry]:
    """Every line that holds a key. A file that is not there holds none; lines of other kinds are left to their owners."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise Refused(f"the known hosts cannot be read: {file}: {error.strerror}", "nodectl does not connect without them") from None
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        marker = fields.pop(0) if fields[0].startswith("@") else ""
        # @cert-authority: paramiko cannot check host certificates, so such a line accepts nothing.
        if marker in ("", "@revoked") and len(fields) >= 3:
            blob = _decode(fields[2])
            if blob:
                yield Entry(file, number, fields[0], HostKey(fields[1], blob), marker == "@revoked")


def matches(names: str, name: str) -> bool:
    """Does the first field of a line mean ``name``? Hashed names, wildcards and negation as in sshd(8)."""
    if names.startswith("|1|"):
        return _hash_matches(names, name)
    found = False
    for pattern in names.lower().split(","):
        bare = pattern.lstrip("!")
        # fnmatch takes [ as a character class, known_hosts takes it literally: [host]:port.
        if fnmatch.fnmatchcase(name, bare.replace("[", "[[]")):
            if pattern.startswith("!"):
                return False
            found = True
    return found


def _hash_matches(field: str, name: str) -> bool:
    parts = field.split("|")
    if len(parts) != 4:
        return False
    salt, wanted = _decode(parts[2]), _decode(parts[3])
    # SHA-1 is what the file format prescribes; it hides names, it protects nothing.
    return bool(salt) and hmac.compare_digest(hmac.new(salt, name.encode(), "sha1").digest(), wanted)


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _line(address: str, port: int, key: HostKey) -> str:
    return f"{lookup_name(address, port)} {key.type} {base64.b64encode(key.blob).decode()}"


def _short(key: HostKey) -> str:
    return next((name for name in ("ed25519", "ecdsa", "rsa") if name in key.type), "*")


def _written(known: Sequence[Entry], address: str, port: int) -> str:
    """The name under which the lines stand: with the port, or bare."""
    name = lookup_name(address, port)
    return name if any(matches(entry.names, name) for entry in known) else address


def _ends_clean(file: Path) -> bool:
    data = file.read_bytes()
    return not data or data.endswith(b"\n")
