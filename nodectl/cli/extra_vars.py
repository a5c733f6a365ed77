"""-e, as Ansible reads it: key=value words, a JSON object, or @file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nodectl.diagnostics.model import Collector
from nodectl.lang.load import load_vars_file
from nodectl.lang.vault import NO_PASSWORDS, Vault


def extra_vars(texts: Sequence[str], found: Collector, vault: Vault = NO_PASSWORDS) -> dict[str, Any]:
    """All of -e in order, the last one wins. Values of key=value are texts, as in Ansible; use JSON or a file for other types."""
    merged: dict[str, Any] = {}
    for text in texts:
        merged.update(_one(text, found, vault))
    return merged


def _one(text: str, found: Collector, vault: Vault) -> dict[str, Any]:
    if text.startswith("@"):
        return load_vars_file(Path(text[1:]), found, vault)
    if text.lstrip().startswith("{"):
        return _json(text, found)
    return _words(text, found)


def _json(text: str, found: Collector) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        hint = """write it as -e '{"name": "value"}', or put YAML into a file: -e @file.yml"""
        found.error("E404", f"-e looks like JSON but is not: {error}", None, help=hint)
        return {}
    return dict(value)


def _words(text: str, found: Collector) -> dict[str, Any]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        found.error("E404", f"-e {text.partition('=')[0]}: {error}", None, help="close the quotes")
        return {}
    values = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            # The word may be the tail of a password with a blank in it: it is not repeated.
            hint = "quote a value with blanks: -e \"name='two words'\"; a file of variables is -e @file.yml"
            found.error("E404", "-e wants NAME=VALUE", None, help=hint)
            continue
        values[name] = value
    return values
