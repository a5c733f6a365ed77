"""~/.ssh/config, as far as paramiko reads it, and the two things it does not: Include, and Fedora's `Match final all`."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from paramiko import SSHConfig
from paramiko.ssh_exception import ConfigParseError, CouldNotCanonicalize

from nodectl.transport.channel import Unreachable

USER_FILE = "~/.ssh/config"
SYSTEM_FILE = "/etc/ssh/ssh_config"

# OpenSSH's own bound on includes within includes.
MAX_DEPTH = 16

_INCLUDE = re.compile(r"^\s*include\s*[=\s]\s*(.+?)\s*$", re.IGNORECASE)
_FINAL_ALL = re.compile(r"^\s*match\s+final\s+all\s*$", re.IGNORECASE)
_MATCH_USER = re.compile(r"^\s*match\b.*\buser\b", re.IGNORECASE)
_PROXY = re.compile(r"^\s*proxycommand\b", re.IGNORECASE)
_BLOCK = re.compile(r"^\s*(host|match)\b", re.IGNORECASE)

# Stands for % in a ProxyCommand until the inventory's port and user are known: paramiko would put the file's own in at once.
_PERCENT = "\x00"


class UserConfig:
    """The files that OpenSSH would read, the user's before the system's. Raises Unreachable("config") with file and line."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._config = SSHConfig()
        self._lines: list[str] = []
        for file in files:
            if file.is_file():
                self._load(file)

    def lookup(self, alias: str, user: str = "") -> Mapping[str, Any]:
        """Options for ``alias``, keys in lower case; ``identityfile`` is a list, everything else text. A ``proxycommand`` has its % signs still.

        ``user``: who is to log in whatever the files say, for `Match user`.
        """
        try:
            found = dict(self._seen_by(user).lookup(alias))
        except (ConfigParseError, CouldNotCanonicalize, KeyError) as error:
            raise Unreachable("config", f"~/.ssh/config cannot be applied to {alias}: {type(error).__name__} {error}", _HINT) from None
        if "proxycommand" in found:
            found["proxycommand"] = str(found["proxycommand"]).replace(_PERCENT, "%")
        return found

    def _seen_by(self, user: str) -> SSHConfig:
        """The files with that user already settled: the first value of an option counts, and `Match user` looks at it."""
        if not user or not any(_MATCH_USER.match(line) for line in self._lines):
            return self._config
        config = SSHConfig()
        config.parse([f"User {user}", *self._lines])
        return config

    def _load(self, file: Path) -> None:
        lines = list(_lines(file, file.parent, 0))
        try:
            self._config.parse(text for _, text in lines)
        except ConfigParseError as error:
            place = next((where for where, text in lines if _breaks(text)), str(file))
            raise Unreachable("config", f"{place}: {error}", _HINT) from None
        # Each file begins outside of the block that the one before ended with.
        self._lines += ["Host *", *(text for _, text in lines)]


# What paramiko can judge. It takes a Match with any other word for one that fits every host.
_MATCH_WORDS = frozenset(("all", "canonical", "final", "exec", "host", "originalhost", "user", "localuser"))
_WITHOUT_VALUE = frozenset(("all", "canonical", "final"))

_HINT = "change that line, or give nodectl a file of its own: ansible_ssh_common_args: -F FILE (-F /dev/null for none)"


def _lines(file: Path, folder: Path, depth: int) -> Iterator[tuple[str, str]]:
    """(place, line), with included files in the place of their Include.

    One thing is looser than in ssh: a Host block in a file included from inside another Host block applies to all names it matches.
    """
    if depth > MAX_DEPTH:
        raise Unreachable("config", f"{file}: Include goes deeper than {MAX_DEPTH} files", _HINT)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Unreachable("config", f"{file} cannot be read: {error}", _HINT) from None
    block = "Host *"
    for number, line in enumerate(text.splitlines(), 1):
        include = _INCLUDE.match(line)
        if include:
            for pattern in include.group(1).split():
                for found in sorted(glob.glob(_absolute(folder, pattern))):
                    yield from _lines(Path(found), folder, depth + 1)
            # A Host line of an included file ends with that file.
            yield f"{file}:{number}", block
            continue
        if _FINAL_ALL.match(line):
            line = "Match final"  # the same condition in the words that paramiko knows
        if _BLOCK.match(line):
            block = line
            _refuse_unknown_match(line, f"{file}:{number}")
        yield f"{file}:{number}", line.replace("%", _PERCENT) if _PROXY.match(line) else line


def _refuse_unknown_match(line: str, place: str) -> None:
    keyword, *words = line.replace("=", " ").split()
    while words and keyword.lower() == "match":
        word = words.pop(0).lower().lstrip("!")
        if word not in _MATCH_WORDS:
            raise Unreachable("config", f"{place}: nodectl cannot judge 'Match {word}'", _HINT)
        if word == "exec":
            return  # its value may be quoted and have several words; paramiko cuts it itself
        if word not in _WITHOUT_VALUE and words:
            words.pop(0)


def _absolute(folder: Path, pattern: str) -> str:
    """Relative patterns mean ~/.ssh in the user's files and /etc/ssh in the system's: the folder of the outermost file is that in both."""
    pattern = pattern.strip('"')
    path = Path(pattern).expanduser()
    return str(path if path.is_absolute() else folder / path)


def _breaks(line: str) -> bool:
    try:
        SSHConfig.from_text(line)
    except ConfigParseError:
        return True
    return False
