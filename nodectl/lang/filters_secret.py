"""Filters that make hashes of passwords and open or close vaults. The only door to passlib (the maintained libpass)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from passlib import hash as hashes

from nodectl.lang.secrets import SecretText
from nodectl.lang.vault import DEFAULT_LABEL, Vault, VaultError, encrypt, is_encrypted
from nodectl.wire.secret import Secret

# Ansible's names of the methods of crypt(3), and passlib's.
_METHODS = {"md5": "md5_crypt", "blowfish": "bcrypt", "sha256": "sha256_crypt", "sha512": "sha512_crypt"}


def password_hash(
    password: Any, hashtype: str = "sha512", salt: str | None = None, salt_size: int | None = None, rounds: int | None = None, ident: str | None = None
) -> str:
    """The password as /etc/shadow holds it. Without ``salt`` another one each time, so each run changes the account: give one that stays."""
    method = _METHODS.get(hashtype, hashtype)
    if method not in _METHODS.values():
        raise ValueError(f"no hash named {hashtype!r}; known are {', '.join(_METHODS)}")
    given = {"salt": salt or None, "salt_size": salt_size, "rounds": rounds, "ident": ident if method == "bcrypt" else None}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if method == "bcrypt":
        # The last of bcrypt's 22 letters of salt has bits to spare, which it sets to 0 itself.
        settings = {"ident": "2b", "relaxed": True, **settings}
    return str(getattr(hashes, method).using(**settings).hash(str(password)))


def vault(data: Any, secret: Any, salt: str | None = None, vault_id: str = DEFAULT_LABEL, wrap_object: bool = False, vaultid: str | None = None) -> str:
    """``data`` sealed as ansible-vault seals it. A ``salt`` of the user's would make equal texts recognisable, so it is refused."""
    if salt is not None:
        raise ValueError("vault takes no salt here: with a fixed one equal secrets could be told by their sealed texts")
    if wrap_object:
        raise ValueError("wrap_object is not known: the result is the sealed text")
    return encrypt(str(data).encode(), Secret(str(secret)), vaultid or vault_id)


def unvault(sealed: Any, secret: Any, vault_id: str = DEFAULT_LABEL, vaultid: str | None = None) -> Any:
    if not is_encrypted(str(sealed)):
        return sealed
    try:
        return SecretText(Vault({vaultid or vault_id: [Secret(str(secret))]}).text(str(sealed)))
    except VaultError as error:
        raise ValueError(str(error)) from None


SECRET_FILTERS: Mapping[str, Callable[..., Any]] = {"password_hash": password_hash, "vault": vault, "unvault": unvault}
