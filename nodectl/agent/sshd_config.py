"""sshd's configuration as text and as effective values. Pure: no file is read here."""

from __future__ import annotations

import fnmatch
import re
from typing import Dict, List, Mapping, Sequence

INCLUDE = re.compile(r"^(\s*Include\s+)(.*)$", re.IGNORECASE | re.MULTILINE)
# sshd -T prints durations in seconds whatever was written.
DURATIONS = frozenset(["logingracetime", "clientaliveinterval"])
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
# sshd -T prints the older name of this value.
_OLD_NAMES = {"prohibit-password": "without-password"}


def render(settings: Mapping[str, object]) -> str:
    """The drop-in's text: one keyword a line, sorted so that the same wish is the same bytes."""
    lines = [f"{key} {_words(value)}" for key, value in sorted(settings.items(), key=lambda item: item[0].lower())]
    return "# Written by nodectl (role hardening). sshd takes the first value it reads: this file sorts first.\n" + "\n".join(lines) + "\n"


def _words(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(str(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def effective(text: str) -> Dict[str, str]:
    """``sshd -T`` output as {keyword in lower case: value}; repeated keywords are joined by a space."""
    values: Dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.strip().partition(" ")
        if key:
            values[key] = f"{values[key]} {value}" if key in values else value
    return values


def normal(keyword: str, value: str) -> str:
    """``value`` the way ``sshd -T`` would print it, for comparing."""
    if keyword.lower() in DURATIONS:
        return str(_seconds(value))
    return _OLD_NAMES.get(value.lower(), value.lower())


def _seconds(value: str) -> int:
    parts = re.findall(r"(\d+)([smhdw]?)", value.lower())
    return sum(int(number) * _UNITS[unit] for number, unit in parts)


def mismatches(settings: Mapping[str, object], found: Mapping[str, str]) -> List[str]:
    """One sentence for each keyword whose effective value is not the wished one."""
    wrong = []
    for key, value in sorted(settings.items()):
        is_now = found.get(key.lower(), "")
        if normal(key, is_now) != normal(key, _words(value)):
            wrong.append(f"{key} is effectively '{is_now or 'not set'}', wished '{_words(value)}'")
    return wrong


def lockout(found: Mapping[str, str], user: str, groups: Sequence[str], uid: int) -> str:
    """Why ``user`` could no longer log in by key under the effective values ``found``; "" when nothing speaks against it."""
    if uid == 0 and found.get("permitrootlogin") == "no":
        return f"PermitRootLogin no, and this run logs in as {user}"
    if found.get("pubkeyauthentication") == "no" and found.get("passwordauthentication") == "no":
        return "neither keys nor passwords would be accepted"
    for keyword, names in (("denyusers", [user]), ("denygroups", list(groups))):
        if _listed(found.get(keyword, ""), names):
            return f"{keyword} names {user} or one of the groups {' '.join(groups)}"
    for keyword, names in (("allowusers", [user]), ("allowgroups", list(groups))):
        if found.get(keyword) and not _listed(found[keyword], names):
            return f"{keyword} {found[keyword]} leaves out {user} (groups {' '.join(groups)})"
    return ""


def _listed(patterns: str, names: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern.split("@")[0]) for pattern in patterns.split() for name in names)


def restage(main: str, live_dir: str, staged_dir: str) -> str:
    """The main file with its Include lines pointing at a staged copy of ``live_dir``."""

    def moved(match: "re.Match[str]") -> str:
        paths = [p.replace(live_dir, staged_dir) if p.startswith("/") else p.replace("sshd_config.d", staged_dir) for p in match.group(2).split()]
        return match.group(1) + " ".join(paths)

    return INCLUDE.sub(moved, main)


def includes(main: str, directory: str) -> bool:
    """True when the main file reads the drop-ins of ``directory``."""
    return any(directory in match.group(2) or match.group(2).startswith("sshd_config.d") for match in INCLUDE.finditer(main))
