"""Runs on a lab host, as root, and prints as JSON what a playbook can have left there: files, accounts, packages, running units."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import stat
import subprocess

# Units that come and go by themselves.
PASSING = ("user", "session-", "ssh@", "sshd@", "systemd-tmpfiles", "systemd-hostnamed", "systemd-timedated", "systemd-localed", "apt-", "dpkg-")
TREES = ("/etc", "/home", "/srv")
# Accounts are compared line by line; the others are backup copies, caches, what Ansible itself needs while it works, and where these pictures lie.
ACCOUNTS = ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow", "/etc/subuid", "/etc/subgid")
LEFT_OUT = (*ACCOUNTS, *(f"{path}-" for path in ACCOUNTS), "/etc/.pwd.lock", "/etc/ld.so.cache", "/home/ops/.ansible")
# The name by which this host is known to the lab stands in files; on the other host it is another one.
HOST = re.compile(rb"\b%s\b" % re.escape(os.environ.get("TWIN", socket.gethostname())).encode())


def files() -> dict[str, list[object]]:
    """path -> [kind, uid, gid, links, content]: the digest of a file, the target of a link."""
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
            content = hashlib.sha256(HOST.sub(b"HOST", file.read())).hexdigest()
    links = info.st_nlink if stat.S_ISREG(info.st_mode) else 1
    return [stat.filemode(info.st_mode), info.st_uid, info.st_gid, links, content]


def lines(*argv: str) -> list[str]:
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.splitlines()


def shadow() -> list[str]:
    """Without the day of the last change."""
    return [":".join([*line.split(":")[:2], *line.split(":")[3:]]) for line in lines("getent", "shadow")]


def units() -> list[str]:
    """Whether each service, socket and timer runs. What is enabled or masked are links below /etc."""
    active = [line.split() for line in lines("systemctl", "list-units", "--all", "--no-legend", "--plain", "--type=service,socket,timer")]
    return [" ".join(words[:3]) for words in active if words[1] != "not-found" and not words[0].startswith(PASSING)]


def packages() -> list[str]:
    """Debian's without versions: an archive moves on. Those of rpm are the tests' own."""
    return lines("dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev}\\n") + (lines("rpm", "-qa") if os.path.exists("/usr/bin/rpm") else [])


def main() -> None:
    print(json.dumps({"files": files(), "passwd": lines("getent", "passwd"), "group": lines("getent", "group"), "shadow": shadow(), "packages": packages(), "units": units()}))


if __name__ == "__main__":
    main()
