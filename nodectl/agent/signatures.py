"""What a block device carries, read by two tools that fail in different ways: blkid looks for one answer, wipefs for all."""

from __future__ import annotations

import json
from typing import Any, Dict, List, NamedTuple, Tuple

from nodectl.agent.contract import Failed
from nodectl.agent.system import System

# Probing reads a few hundred KiB; a disk that takes longer than this is ill.
PROBE_SECONDS = 30.0


class Found(NamedTuple):
    """``type`` is the filesystem or member type ("" = none), ``table`` the partition table's type; ``others`` all further signatures."""

    type: str
    label: str
    uuid: str
    table: str
    others: Tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.type or self.table or self.others)

    def sentence(self) -> str:
        """ "ext4 (label OLD, uuid …)", as a person reads it."""
        parts = []
        if self.type:
            marks = [f"label {self.label}"] if self.label else []
            marks += [f"uuid {self.uuid}"] if self.uuid else []
            parts.append(f"{self.type} ({', '.join(marks)})" if marks else self.type)
        if self.table:
            parts.append(f"a {self.table} partition table")
        parts += list(self.others)
        return " and ".join(parts)


def probe(system: System, path: str) -> Found:
    """Signatures on ``path``. Raises Failed where a tool is missing or cannot read the device: unknown is never "empty"."""
    values = blkid(system, path)
    kinds = wipefs(system, path)
    known = {values.get("TYPE", ""), values.get("PTTYPE", "")}
    others = tuple(sorted({kind for kind in kinds if kind not in known}))
    return Found(values.get("TYPE", ""), values.get("LABEL", ""), values.get("UUID", ""), values.get("PTTYPE", ""), others)


def blkid(system: System, path: str) -> Dict[str, str]:
    """Low-level probing, without cache and without udev."""
    done = system.run(["blkid", "-p", "-o", "export", path], timeout=PROBE_SECONDS)
    if done.rc == 2 and not done.stdout.strip():
        return {}
    if done.rc == 8:
        return {"TYPE": "several contradicting signatures"}
    if done.rc != 0:
        raise Failed(f"blkid cannot read {path} (exit code {done.rc}): {done.stderr.strip() or 'no reason given'}", rc=done.rc, stderr=done.stderr)
    pairs = (line.partition("=") for line in done.stdout.splitlines() if "=" in line)
    return {key: _plain(value) for key, _, value in pairs}


def _plain(value: str) -> str:
    """`-o export` puts a backslash before characters that a shell would read."""
    out, escaped = [], False
    for char in value:
        if char == "\\" and not escaped:
            escaped = True
            continue
        out.append(char)
        escaped = False
    return "".join(out)


def wipefs(system: System, path: str) -> List[str]:
    """Types of all signatures, dry run."""
    done = system.run(["wipefs", "--no-act", "--json", path], timeout=PROBE_SECONDS)
    if done.rc != 0:
        raise Failed(f"wipefs cannot read {path} (exit code {done.rc}): {done.stderr.strip() or 'no reason given'}", rc=done.rc, stderr=done.stderr)
    if not done.stdout.strip():
        return []
    try:
        data: Any = json.loads(done.stdout)
    except ValueError:
        raise Failed(f"wipefs gave no JSON for {path}: {done.stdout[:200]!r}") from None
    return [str(entry.get("type", "unknown")) for entry in data.get("signatures", [])]
