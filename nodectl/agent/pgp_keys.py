"""OpenPGP keys in files: their ids and fingerprints, as gpg tells them. Nothing is imported anywhere."""

from __future__ import annotations

from typing import List, NamedTuple

from nodectl.agent.contract import Failed
from nodectl.agent.own_folder import own_folder
from nodectl.agent.system import System


class PublicKey(NamedTuple):
    """``id`` is 16 hexadecimal digits, ``fingerprint`` 40."""

    id: str
    fingerprint: str


def show(system: System, data: bytes, what: str) -> List[PublicKey]:
    """The primary keys in ``data``, armoured or not. Raises Failed for bytes that hold none; ``what`` names them."""
    argv = ["gpg", "--no-tty", "--batch", "--with-colons", "--import-options", "show-only", "--dry-run", "--import"]
    with own_folder() as home:  # gpg wants one, and its keyring is nobody's
        done = system.run(argv, stdin=data, env={"GNUPGHOME": home})
    keys: List[PublicKey] = []
    ids: List[str] = []
    for line in done.stdout.splitlines():
        fields = line.split(":")
        if fields[0] == "pub":
            ids.append(fields[4])
        elif fields[0] == "fpr" and len(keys) < len(ids):
            keys.append(PublicKey(ids[-1], fields[9]))
    if not keys:
        raise Failed(f"{what} holds no public key: {' '.join(done.stderr.split()) or 'gpg found none'}", rc=done.rc)
    return keys


def normal(text: str) -> str:
    """A key id or fingerprint as people write it: blanks and 0x go, letters are capitals. Raises Failed for what is none."""
    key = "".join(text.split()).upper()
    key = key[2:] if key.startswith("0X") else key
    if not key or any(char not in "0123456789ABCDEF" for char in key) or (len(key) < 16 and len(key) != 8):
        raise Failed(f"{text!r} is no key id: 8, 16 or more hexadecimal digits")
    return key
