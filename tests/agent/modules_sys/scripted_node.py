"""A node made of a case file: its files, accounts and mounts are tables, its programs answer what was recorded.

A program's answer may depend on what was done before: each program that ``acts`` moves the node one step on, and an answer counts
``after`` that many steps. So the same case is rehearsed in check mode, done, and done again.
"""

from __future__ import annotations

import fnmatch
import grp
import os
import pwd
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from nodectl.agent import apt_packages, dpkg_unfinished, kernel_keys, package_locks
from nodectl.agent.contract import Failed
from nodectl.agent.processes import Completed
from nodectl.agent.system import Mount, System


class Node(System):
    """``case`` is the case file's content. Paths below ``root`` are real files; all others are those of the case. Its devices are all 259:0."""

    def __init__(self, case: Mapping[str, Any], root: Path) -> None:
        super().__init__(case.get("environment"))
        self.root = str(root)
        self.programs: list[dict[str, Any]] = list(case.get("run", []))
        self.files: dict[str, str] = dict(case.get("files", {}))
        self.devices: frozenset[str] = frozenset(case.get("devices", []))
        self.table = [Mount(*line.split(" ")) for line in case.get("mounts", [])]
        self.silent: str = case.get("silent", "")
        self.step = 0
        self.acted: list[str] = []
        self.fed: list[str] = []
        self.used: set[int] = set()

    def run(self, argv: Sequence[str], stdin: bytes = b"", timeout: float | None = 60.0, env: Mapping[str, str] | None = None, cwd: str = "") -> Completed:
        """The recorded answer. A program that no answer is for fails the test; one that is missing on the node has ``missing``."""
        line = " ".join(argv)
        fitting = [number for number, one in enumerate(self.programs) if one.get("after", 0) <= self.step and fnmatch.fnmatchcase(line, one["argv"])]
        assert fitting, f"after {self.step} steps nothing is scripted for: {line}"
        number = max(fitting, key=lambda number: self.programs[number].get("after", 0))
        one = self.programs[number]
        self.used.add(number)
        if one.get("missing"):
            raise Failed(f"program not found: {argv[0]} (looked in {self.environment['PATH']})", rc=2, cmd=list(argv))
        if one.get("acts"):
            self._act(line, stdin, one)
        return Completed(one.get("rc", 0), one.get("stdout", ""), one.get("stderr", ""), tuple(argv))

    def _act(self, line: str, stdin: bytes, one: Mapping[str, Any]) -> None:
        self.acted.append(line)
        self.fed.append(stdin.decode())
        self.step += 1
        self.files.update(one.get("then", {}))
        for target in one.get("unmounts", []):
            self.table = [mount for mount in self.table if mount.target != target]
        self.table += [Mount(*line.split(" ")) for line in one.get("mounts", [])]
        for path, content in one.get("kernel", {}).items():
            Path(self.root, path).write_text(content)

    def which(self, name: str) -> str | None:
        known = (one for one in self.programs if fnmatch.fnmatchcase(name, one["argv"].split(" ")[0]))
        return f"/usr/bin/{name}" if any(not one.get("missing") for one in known) else None

    def read(self, path: str) -> bytes | None:
        if path.startswith(self.root):
            return super().read(path)
        return self.files[path].encode("utf-8", "surrogateescape") if path in self.files else None

    def stat(self, path: str, follow: bool = False) -> os.stat_result | None:
        if path.startswith(self.root):
            return super().stat(path, follow)
        if path in self.files or path in self.devices:
            kind = stat.S_IFREG | 0o644 if path in self.files else stat.S_IFBLK | 0o660
            return os.stat_result((kind, 7, 1, 1, 0, 0, len(self.files.get(path, "")), 0, 0, 0), {"st_rdev": os.makedev(259, 0)})
        return None

    def write_atomic(self, path: str, data: Any, mode: int | None = None, uid: int | None = None, gid: int | None = None, follow: bool = True) -> None:
        assert isinstance(data, bytes)
        self.acted.append(f"write {path}")
        if path.startswith(self.root):
            super().write_atomic(path, data, mode, uid, gid, follow)
        else:
            self.files[path] = data.decode("utf-8", "surrogateescape")

    def mounts(self) -> list[Mount]:
        return list(self.table)

    def probe(self, path: str, timeout: float) -> str:
        return self.silent

    def sleep(self, seconds: float) -> None:
        self.stopper.check()

    # -- accounts, as the C library reads them from the node's files

    def _entries(self, path: str) -> list[list[str]]:
        return [line.split(":") for line in self.files.get(path, "").splitlines() if line]

    def user(self, name: str) -> pwd.struct_passwd:
        for one in self._entries("/etc/passwd"):
            if one[0] == name:
                return pwd.struct_passwd((one[0], one[1], int(one[2]), int(one[3]), *one[4:7]))
        raise KeyError(name)

    def groups(self) -> list[grp.struct_group]:
        return [grp.struct_group((one[0], one[1], int(one[2]), [name for name in one[3].split(",") if name])) for one in self._entries("/etc/group")]

    def group(self, wanted: str | int) -> grp.struct_group:
        for entry in self.groups():
            if wanted in (entry.gr_name, entry.gr_gid):
                return entry
        raise KeyError(wanted)


def stand_in(monkeypatch: pytest.MonkeyPatch, node: Node, case: Mapping[str, Any]) -> None:
    """What modules ask past their System is answered by the node too."""
    monkeypatch.setattr(pwd, "getpwnam", node.user)
    monkeypatch.setattr(grp, "getgrnam", node.group)
    monkeypatch.setattr(grp, "getgrgid", node.group)
    monkeypatch.setattr(grp, "getgrall", node.groups)
    monkeypatch.setattr(kernel_keys, "PROC", f"{node.root}/proc/sys")
    monkeypatch.setattr(package_locks, "holder", lambda path: case.get("lock_holder"))
    monkeypatch.setattr(apt_packages, "_has_lists", lambda: case.get("lists", True))
    monkeypatch.setattr(dpkg_unfinished, "UPDATES", f"{node.root}/updates")
    ages = case.get("list_stamps", [int(time.time())])
    monkeypatch.setattr(apt_packages, "list_age", lambda system: (time.time() - ages[min(node.step, len(ages) - 1)], ages[min(node.step, len(ages) - 1)]))
