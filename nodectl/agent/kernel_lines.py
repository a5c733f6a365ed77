"""Lines of the kernel's log that say something about GPUs, NVSwitches and links. Pure: text in, events out.

Lines are those of `journalctl -o short-unix` ("1719918123.123456 host kernel: …") or of dmesg ("[  680.111646] …", seconds since boot).
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional

# For grep -E: what is worth carrying from a log that may be gigabytes.
WORTH = r"NVRM: Xid|SXid|[Ll]ink is [Dd]own|[Ll]ink [Dd]own|[Ll]ost carrier|NETDEV WATCHDOG"
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d{1,9})(?:, (.*))?$")
_SXID = re.compile(r"(nvidia-nvswitch\d+): SXid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d{1,9}), (.*)$")
_DOWN = re.compile(r"\b([a-zA-Z][\w.@-]*): (?:NIC )?(?:[Ll]ink (?:is )?[Dd]own|[Ll]ost carrier)")
_UNIX = re.compile(r"^(\d{9,}\.\d+) \S+ ")
_BOOT = re.compile(r"^(?:<\d+>)?\[\s*(\d+\.\d+)\] ")


def parse(log: str, booted: float = 0.0) -> List[Dict[str, Any]]:
    """Events in the log's order: {at, kind: xid | sxid | link_down, …}. ``booted`` (s since the epoch) makes times of dmesg absolute.

    ``at`` is None where the line has no time. A line that is none of these is left out.
    """
    found = []
    for line in log.splitlines():
        event = _event(line)
        if event is not None:
            found.append({"at": _at(line, booted), **event, "line": line.strip()[:400]})
    return found


def _event(line: str) -> Optional[Dict[str, Any]]:
    xid = _XID.search(line)
    if xid:
        return {"kind": "xid", "pci": _pci(xid.group(1)), "code": int(xid.group(2)), "text": (xid.group(3) or "").strip()}
    sxid = _SXID.search(line)
    if sxid:
        return {"kind": "sxid", "pci": _pci(sxid.group(2)), "code": int(sxid.group(3)), "text": sxid.group(4).strip(), "device": sxid.group(1)}
    down = _DOWN.search(line)
    if down:
        return {"kind": "link_down", "interface": down.group(1)}
    return None


def _pci(address: str) -> str:
    """The driver writes 0000:cb:00 for what sysfs calls 0000:cb:00.0."""
    return (address if "." in address else address + ".0").lower()


def _at(line: str, booted: float) -> Optional[float]:
    unix, boot = _UNIX.match(line), _BOOT.match(line)
    if unix:
        return float(unix.group(1))
    return booted + float(boot.group(1)) if boot else None
