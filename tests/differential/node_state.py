"""Runs on a lab host, as root, and prints as JSON what a playbook can have left there: files, accounts, packages, units."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess

# Units that come and go by themselves.
PASSING = ("user", "session-", "ssh@", "sshd@", "systemd-tmpfiles", "apt-", "dpkg-")
TREES = ("/etc", "/home", "/srv")
# Backup copies of accounts, caches, and what Ansible itself needs while it works.
LEFT_OUT = ("/etc/.pwd.lock", "/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/subuid-", "/etc/subgid-", "/etc/ld.so.cache", "/home/ops/.ansible")


def files() -> dict[str, list[object]]:
    """path -> [kind, mode, uid, gid, content]: the digest of a file, the target of a link."""
    found = {}
    for tree in TREES:
        for folder, folders, names in os.walk(tree):
            folders[:] = [name for name in folders if os.path.join(folder, name) not in LEFT_OUT]
            for path in (os.path.join(folder, name) for name in (*folders, *names)):
                if path not in LEFT_OUT:
                    found[path] = look(path)
    return found


def look(path: str) -> list[object]:
    info = os.lstat(path)
    content = ""
    if stat.S_ISLNK(info.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(info.st_mode):
        with open(path, "rb") as file:
            content = hashlib.sha256(file.read()).hexdigest()
    links = info.st_nlink if stat.S_ISREG(info.st_mode) else 1
    return [stat.filemode(info.st_mode), info.st_uid, info.st_gid, links, content]


def lines(*argv: str) -> list[str]:
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.splitlines()


def shadow() -> list[str]:
    """Without the day of the last change."""
    return [":".join([*line.split(":")[:2], *line.split(":")[3:]]) for line in lines("getent", "shadow")]


def units() -> list[str]:
    """State of every unit file, and whether each service, socket and timer runs."""
    enabled = [" ".join(line.split()[:2]) for line in lines("systemctl", "list-unit-files", "--no-legend", "--plain")]
    active = [line.split() for line in lines("systemctl", "list-units", "--all", "--no-legend", "--plain", "--type=service,socket,timer")]
    own = [words for words in active if words[1] != "not-found" and not words[0].startswith(PASSING)]
    return [line for line in enabled if not line.startswith("session-")] + [" ".join(words[:3]) for words in own]


def main() -> None:
    passwd, group = lines("getent", "passwd"), lines("getent", "group")
    packages = lines("dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Abbrev}\\n")
    print(json.dumps({"files": files(), "passwd": passwd, "group": group, "shadow": shadow(), "packages": packages, "units": units()}))


if __name__ == "__main__":
    main()
