"""sshd's configuration as text and as effective values. Pure: no file is read here."""

from __future__ import annotations

import fnmatch
import re
from typing import Dict, List, Mapping, Sequence

INCLUDE = re.compile(r"^(\s*Include\s+)(.*)$", re.IGNORECASE | re.MULTILINE)
_KEYWORD = re.compile(r"^[A-Za-z0-9]+$")
# Blocks and files, not settings: what follows them would mean something else.
_NO_SETTINGS = {"match": "a Match block", "include": "an Include line"}
# Older names that sshd takes and `sshd -T` prints under the newer one.
_ALIASES = {
    "challengeresponseauthentication": "kbdinteractiveauthentication", "pubkeyacceptedkeytypes": "pubkeyacceptedalgorithms",
    "hostbasedacceptedkeytypes": "hostbasedacceptedalgorithms",
}
# Their lists are joined by commas; all others by blanks.
_COMMAS = frozenset([
    "ciphers", "macs", "kexalgorithms", "hostkeyalgorithms", "pubkeyacceptedalgorithms", "pubkeyacceptedkeytypes", "hostbasedacceptedalgorithms",
    "hostbasedacceptedkeytypes", "casignaturealgorithms",
])
# Every file adds to these: more than what is written here may be in force, and that is no contradiction.
_ADDING = frozenset(["acceptenv", "setenv"])


def wishes(settings: Mapping[str, object]) -> Dict[str, str]:
    """{keyword: its words}. Keywords are the same in any case, and the later one counts; one without a value is not set here."""
    kept: Dict[str, str] = {}
    for key, value in settings.items():
        for same in [name for name in kept if name.lower() == key.lower()]:
            del kept[same]
        if value is not None:
            kept[key] = _words(key, value)
    return kept


def _words(key: str, value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ("," if key.lower() in _COMMAS else " ").join(str(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).strip()


def refusals(settings: Mapping[str, object]) -> List[str]:
    """One sentence for each entry that cannot be a line of its own in a drop-in."""
    wrong = []
    for key, words in wishes(settings).items():
        if key.lower() in _NO_SETTINGS:
            wrong.append(f"{key} begins {_NO_SETTINGS[key.lower()]}, which is no setting: write it in a drop-in of your own that sorts later")
        elif not _KEYWORD.match(key):
            wrong.append(f"'{key}' is no sshd keyword")
        elif "\n" in words or not words:
            wrong.append(f"{key} needs a value of one line, not {words!r}; leave a keyword as the node has it with null")
    return wrong


def render(settings: Mapping[str, object]) -> str:
    """The drop-in's text: one keyword a line, sorted so that the same wish is the same bytes."""
    lines = [f"{key} {words}\n" for key, words in sorted(wishes(settings).items(), key=lambda item: item[0].lower())]
    return "# Written by nodectl (role hardening). sshd takes the first value it reads: this file sorts first.\n" + "".join(lines)


def effective(text: str) -> Dict[str, str]:
    """``sshd -T`` output as {keyword in lower case: value}; repeated keywords are joined by a space."""
    values: Dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.strip().partition(" ")
        if key:
            values[key] = f"{values[key]} {value}" if key in values else value
    return values


def value_of(keyword: str, found: Mapping[str, str]) -> str:
    """The effective value of a keyword under any of its names, "" where sshd shows none."""
    return found.get(_ALIASES.get(keyword.lower(), keyword.lower()), "")


def mismatches(settings: Mapping[str, object], alone: Mapping[str, str], found: Mapping[str, str]) -> List[str]:
    """One sentence for each keyword whose effective value ``found`` is not the wished one.

    ``alone`` is what sshd makes of the wished lines alone: so "2m" is "120", and "-name" is a list without that name.
    """
    wrong = []
    for key, words in sorted(wishes(settings).items()):
        wished, is_now = value_of(key, alone), value_of(key, found)
        if key.lower() in _ADDING:
            same = set(wished.split()) <= set(is_now.split())
        else:
            same = bool(wished) and wished.lower() == is_now.lower()
        if not same:
            wrong.append(f"{key} is effectively '{is_now or 'not set'}', wished '{words}'")
    return wrong


def lockout(found: Mapping[str, str], user: str, groups: Sequence[str], uid: int, locked: bool = False) -> str:
    """Why ``user`` could no longer log in under the effective values ``found``; "" when nothing speaks against it.

    ``locked``: the account's password is locked (as that of a key-only account mostly is).
    """
    if uid == 0 and found.get("permitrootlogin") == "no":
        return f"PermitRootLogin no, and this run logs in as {user} (log in as somebody else, or set PermitRootLogin: prohibit-password)"
    if found.get("pubkeyauthentication") == "no" and found.get("passwordauthentication") == "no":
        return "neither keys nor passwords would be accepted"
    if locked and found.get("usepam") == "no":
        return f"UsePAM no, and the password of {user} is locked: without PAM sshd refuses such accounts, with any key"
    for keyword, names in (("denyusers", [user]), ("denygroups", list(groups))):
        if _listed(found.get(keyword, ""), names):
            return f"{keyword} names {user} or one of the groups {' '.join(groups)}"
    for keyword, names in (("allowusers", [user]), ("allowgroups", list(groups))):
        if found.get(keyword) and not _listed(found[keyword], names):
            return f"{keyword} {found[keyword]} leaves out {user} (groups {' '.join(groups)})"
    return ""


def _listed(patterns: str, names: Sequence[str]) -> bool:
    """A pattern's part behind @ is a host, which only the fresh login can tell; one that begins with ! takes the name out."""
    words = [pattern.split("@")[0] for pattern in patterns.split()]
    refused = any(fnmatch.fnmatchcase(name, word[1:]) for word in words if word.startswith("!") for name in names)
    return not refused and any(fnmatch.fnmatchcase(name, word) for word in words for name in names)


def restage(main: str, live_dir: str, staged_dir: str) -> str:
    """The main file with its Include lines pointing at a staged copy of ``live_dir``."""

    def moved(match: "re.Match[str]") -> str:
        paths = [p.replace(live_dir, staged_dir) if p.startswith("/") else p.replace("sshd_config.d", staged_dir) for p in match.group(2).split()]
        return match.group(1) + " ".join(paths)

    return INCLUDE.sub(moved, main)


def includes(main: str, directory: str) -> bool:
    """True when the main file reads the drop-ins of ``directory``."""
    return any(directory in match.group(2) or match.group(2).startswith("sshd_config.d") for match in INCLUDE.finditer(main))
