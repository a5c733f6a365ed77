"""ansible_ssh_common_args and friends: the part of ssh's command line that an inventory may carry."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

# Short options with a value, as the long option they stand for.
_LETTERS = {"J": "proxyjump", "p": "port", "l": "user", "i": "identityfile", "F": "configfile", "o": ""}

# Short options that change nothing for nodectl: verbosity, terminal, multiplexing, compression.
_SILENT = frozenset("qvTtnNCxXYaMK46")

# What the transport follows.
FOLLOWED = frozenset(
    (
        "user", "port", "hostname", "identityfile", "identitiesonly", "userknownhostsfile", "globalknownhostsfile", "stricthostkeychecking",
        "hostkeyalias", "proxyjump", "proxycommand", "serveraliveinterval", "configfile",
    )
)  # fmt: skip

# Several files may be quoted one by one (`paths` takes them apart); a command is for the shell, quotes and all.
_QUOTES_STAY = frozenset(("userknownhostsfile", "globalknownhostsfile", "proxycommand"))

# What a run does not need: nodectl keeps one connection per host anyway, has its own time limits, and asks nobody at a terminal.
HARMLESS = frozenset(
    (
        "controlmaster", "controlpath", "controlpersist", "compression", "loglevel", "batchmode", "serveralivecountmax", "tcpkeepalive", "requesttty",
        "visualhostkey", "numberofpasswordprompts", "preferredauthentications", "pubkeyauthentication", "passwordauthentication", "connecttimeout",
        "kbdinteractiveauthentication", "checkhostip", "updatehostkeys", "hashknownhosts", "addkeystoagent", "forwardx11", "forwardx11trusted",
        "forwardagent", "gssapiauthentication", "ipqos", "escapechar", "sendenv", "connectionattempts", "exitonforwardfailure",
        "clearallforwardings", "permitlocalcommand",
    )
)  # fmt: skip


class BadOption(ValueError):
    """An option nodectl does not follow; the text names it. Refused rather than ignored: it may be the one that protects the line."""


def parse_common_args(text: str) -> dict[str, str]:
    """``-o Key=Value -J hop -i file`` as {key in lower case: value}. The first of several wins, as in ssh; identity files add up (one per line).

    Raises BadOption for what nodectl would have to ignore silently.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BadOption(f"ssh arguments are not well quoted ({error}): {text}") from None
    found: dict[str, str] = {}
    while words:
        key, value = _take(words)
        if key == "identityfile" and key in found:
            value = f"{found.pop(key)}\n{value}"
        if key:
            found.setdefault(key, value)
    return found


def check(options: Mapping[str, str]) -> None:
    """Raises BadOption for keys that nodectl neither follows nor may leave aside."""
    for key in options:
        if key not in FOLLOWED and key not in HARMLESS:
            raise BadOption(f"ssh option '{key}' is not supported; nodectl follows: {', '.join(sorted(FOLLOWED - {'configfile'}))}")


def _take(words: list[str]) -> tuple[str, str]:
    """The next option off ``words``; ("", "") for one that says nothing to us."""
    word = words.pop(0)
    if not word.startswith("-") or len(word) < 2:
        raise BadOption(f"'{word}' is not an option: ssh arguments may hold options only")
    letter = word[1]
    if letter in _LETTERS:
        value = word[2:] or (words.pop(0) if words else "")
        if not value:
            raise BadOption(f"option -{letter} needs a value")
        return (_LETTERS[letter], value) if letter != "o" else _key_value(value)
    if all(c in _SILENT for c in word[1:]):
        return "", ""
    raise BadOption(f"ssh option '{word}' is not supported: nodectl follows -o, {', '.join('-' + c for c in sorted(_LETTERS) if c != 'o')}")


def _key_value(text: str) -> tuple[str, str]:
    """`Key=Value` or `Key Value`."""
    text = text.strip()
    cut = next((i for i, c in enumerate(text) if c in "= \t"), len(text))
    key, value = text[:cut].lower(), text[cut:].lstrip("= \t").strip()
    if not key or not value:
        raise BadOption(f"'-o {text}' is not of the form Key=Value")
    check({key: value})
    whole = key in _QUOTES_STAY or value.count('"') != 2 or not (value.startswith('"') and value.endswith('"'))
    return key, value if whole else value[1:-1]


def paths(value: str) -> Sequence[str]:
    """Several files in one value (UserKnownHostsFile), each perhaps quoted."""
    return shlex.split(value)
