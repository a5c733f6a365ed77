"""Ansible's vault, formats 1.1 and 1.2: texts that only their password opens. The only door to a cipher.

    $ANSIBLE_VAULT;1.2;AES256;prod        format, cipher, and from 1.2 on the label of the password
    3132...                               hex of three lines of hex: salt, HMAC-SHA256 of the ciphertext, ciphertext

Keys come from PBKDF2-HMAC-SHA256, the cipher is AES-256 in counter mode; what was changed by a bit does not open.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from binascii import hexlify, unhexlify
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from nodectl.wire.secret import Secret

MAGIC = "$ANSIBLE_VAULT"
# The label of a password that was given without one, as in Ansible.
DEFAULT_LABEL = "default"
# Both are part of the format: other numbers give other keys.
_ROUNDS = 10_000
_KEY, _IV = 32, 16
_SALT = 32
_BLOCK_BITS = 128
# Characters of a line; the format's readers take any width, ansible-vault writes this one.
_WIDTH = 80
_LABEL = re.compile(r"[^;\s]+")


class VaultError(Exception):
    """Why a text stays closed: ``str()`` for a person, ``hint`` for what to do. Never holds a password or an opened text."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class _Sealed(NamedTuple):
    label: str
    salt: bytes
    mac: bytes
    ciphertext: bytes


@dataclass(frozen=True)
class Vault:
    """The passwords of a run by their label, in the order they were given. ``opened`` collects what was read, so that it can be masked."""

    passwords: Mapping[str, Sequence[Secret]] = field(default_factory=dict)
    opened: list[Secret] = field(default_factory=list)

    def open(self, text: str) -> bytes:
        """What an encrypted text holds. The passwords of its label are tried first, then all others. Raises VaultError."""
        sealed = _parse(text)
        own = list(self.passwords.get(sealed.label, ()))
        others = [password for label, given in self.passwords.items() if label != sealed.label for password in given]
        if not own and not others:
            raise VaultError("it is encrypted and no vault password was given", "give --vault-password-file FILE, --vault-id LABEL@FILE or --ask-vault-pass")
        for password in (*own, *others):
            opened = _opened(sealed, password)
            if opened is not None:
                return opened
        named = f"; it was encrypted for '{sealed.label}'" if sealed.label not in (DEFAULT_LABEL, *self.passwords) else ""
        count = len(own) + len(others)
        tried = "the vault password does not open it" if count == 1 else f"none of the {count} vault passwords opens it"
        raise VaultError(tried + named, "check the password file and its label")

    def secret(self, text: str) -> Secret:
        """``open`` for a value of a file: its text as a Secret. Raises VaultError."""
        found = Secret(self.text(text))
        self.opened.append(found)
        return found

    def text(self, text: str) -> str:
        """``open`` for UTF-8. Raises VaultError."""
        try:
            return self.open(text).decode("utf-8")
        except UnicodeDecodeError:
            raise VaultError("what it holds is not UTF-8 text", "keep binary files beside the playbook and copy them") from None


# For readers that were given no password: what is encrypted is then a mistake with its place.
NO_PASSWORDS = Vault()


def is_encrypted(text: str) -> bool:
    return text.startswith(MAGIC + ";")


def label_of(text: str) -> str:
    """The label of an encrypted text. Raises VaultError."""
    return _parse(text).label


def encrypt(data: bytes, password: Secret, label: str = DEFAULT_LABEL) -> str:
    """``data`` sealed. A label makes it format 1.2, as ansible-vault does. Raises VaultError for a label that the header cannot hold."""
    if not _LABEL.fullmatch(label):
        raise VaultError(f"{label!r} is no label", "a label has no blanks and no semicolons")
    salt = os.urandom(_SALT)
    key, mac_key, start = _keys(password, salt)
    padder = PKCS7(_BLOCK_BITS).padder()
    encryptor = Cipher(algorithms.AES(key), modes.CTR(start)).encryptor()
    ciphertext = encryptor.update(padder.update(data) + padder.finalize()) + encryptor.finalize()
    mac = hmac.new(mac_key, ciphertext, hashlib.sha256).hexdigest().encode()
    body = hexlify(b"\n".join([hexlify(salt), mac, hexlify(ciphertext)])).decode()
    header = f"{MAGIC};1.1;AES256" if label == DEFAULT_LABEL else f"{MAGIC};1.2;AES256;{label}"
    return "\n".join([header, *(body[at : at + _WIDTH] for at in range(0, len(body), _WIDTH)), ""])


def _keys(password: Secret, salt: bytes) -> tuple[bytes, bytes, bytes]:
    made = hashlib.pbkdf2_hmac("sha256", password.reveal().encode(), salt, _ROUNDS, 2 * _KEY + _IV)
    return made[:_KEY], made[_KEY : 2 * _KEY], made[2 * _KEY :]


def _parse(text: str) -> _Sealed:
    header, _, body = text.strip().partition("\n")
    parts = [part.strip() for part in header.split(";")]
    if parts[0] != MAGIC or len(parts) < 3:
        raise VaultError(f"it does not begin with {MAGIC};VERSION;CIPHER", "copy the whole text that ansible-vault or nodectl vault wrote")
    if parts[1] not in ("1.1", "1.2") or parts[2] != "AES256":
        raise VaultError(f"vault format {parts[1]} with {parts[2]} is not known", "encrypt it anew: formats 1.1 and 1.2 with AES256 are read")
    try:
        salt, mac, ciphertext = (unhexlify(part) for part in unhexlify("".join(body.split())).split(b"\n", 2))
    except ValueError:
        raise VaultError("its body is damaged: it is not the hex text that ansible-vault writes", "was a line lost in a copy or a merge?") from None
    return _Sealed(parts[3] if parts[1] == "1.2" and len(parts) > 3 else DEFAULT_LABEL, salt, mac, ciphertext)


def _opened(sealed: _Sealed, password: Secret) -> bytes | None:
    """None when it is not this password, or the text was changed."""
    key, mac_key, start = _keys(password, sealed.salt)
    if not hmac.compare_digest(hmac.digest(mac_key, sealed.ciphertext, "sha256"), sealed.mac):
        return None
    decryptor = Cipher(algorithms.AES(key), modes.CTR(start)).decryptor()
    unpadder = PKCS7(_BLOCK_BITS).unpadder()
    try:
        return unpadder.update(decryptor.update(sealed.ciphertext) + decryptor.finalize()) + unpadder.finalize()
    except ValueError:
        return None
