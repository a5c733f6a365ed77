"""Which variables hold a secret, told by their names: the one rule for what is shown of an inventory and what the journal masks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from nodectl.wire.secret import MASK, Secret

# Anywhere in the name: these words are in the names of secrets and hardly in others. `api_key` and `secret_key` are secrets;
# `access_key` alone is the public half of a pair, an identifier as a user's name is, and is shown.
_ANYWHERE = re.compile(r"password|passwd|passphrase|secret|credential|api_?key|private_?key")
# As a word of its own: a tokenizer is no token, and a bypass no pass.
_WORD = re.compile(r"(?:^|_)(?:tokens?)(?:_|$)|(?:^|_)(?:pass|pwd)$")
# Where the secret lies, or when it is set: what stands there is no secret.
_ABOUT = re.compile(r"_(?:file|files|path|paths|dir)$|^update_password$")
# A file mount's `credentials: NAME` names the keys that it uses, which are secrets of their own elsewhere.
_NAMED = "credentials"
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|-")
_TRUTH = ("", "yes", "no", "true", "false", "on", "off")


def is_secret_name(name: str) -> bool:
    """Whether a variable, or a key inside one, of this name holds a secret: `db_password`, `hf_token`, `secretKey`; not `password_file`."""
    plain = _CAMEL.sub("_", name).lower()
    return bool(_ANYWHERE.search(plain) or _WORD.search(plain)) and not _ABOUT.search(plain)


def masked(variables: Mapping[str, Any]) -> dict[str, Any]:
    """``variables`` with every secret in them as the mask, at any depth. What lies below a secret name is secret as a whole; its keys are shown."""
    return {name: _masked(value, is_secret_name(name)) for name, value in variables.items()}


def _masked(value: Any, secret: bool) -> Any:
    if isinstance(value, Mapping):
        return {key: _masked(item, secret or _inside(key, item)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked(item, secret) for item in value]
    return MASK if isinstance(value, Secret) or (secret and not _switch(value)) else value


def secret_texts(variables: Mapping[str, Any]) -> Iterator[str]:
    """Every secret of ``variables`` in clear text, at any depth. Templates are none: what they give is not known here."""
    for name, value in variables.items():
        yield from _texts(value, is_secret_name(name))


def _texts(value: Any, secret: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, secret or _inside(key, item))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item, secret)
    elif isinstance(value, Secret):
        yield value.reveal()
    elif secret and isinstance(value, (str, int)) and not _switch(value) and "{{" not in str(value):
        # A password of digits without quotes is a number for YAML, and still the password.
        yield str(value)


def _inside(key: Any, value: Any) -> bool:
    return is_secret_name(str(key)) and not (key == _NAMED and isinstance(value, str))


def _switch(value: Any) -> bool:
    """`PasswordAuthentication: no` and the like: a switch is no secret, and neither is nothing."""
    return value is None or isinstance(value, bool) or (isinstance(value, str) and value.lower() in _TRUTH)
