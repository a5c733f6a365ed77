"""Messages of NVIDIA's driver and NVSwitches, and the action that each asks for: a catalogue as data, and a pure reading of events by it."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_NEEDED = frozenset(["action", "severe", "text", "codes", "source", "date"])
FILE = Path(__file__).parent / "catalogue" / "xid.toml"
# Xid 154 names what the driver asks for: "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)".
_RECOVERY = re.compile(r"changed from .*? to \S+ \(([^)]*)\)")


class CatalogueError(ValueError):
    """A catalogue that may not be used: a bug of ours, or of who edited it."""


@dataclass(frozen=True)
class Advice:
    """What to do about a code; ``severe`` ones take the node out."""

    action: str
    severe: bool
    text: str
    source: str


@dataclass(frozen=True)
class Catalogue:
    codes: Mapping[int, Advice]
    harmless_sxids: frozenset[int]


@dataclass(frozen=True)
class Found:
    """Sentences, worst first: ``severe`` ask for an action, ``unlisted`` are codes that nobody knows, ``mild`` are the application's own."""

    severe: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    mild: tuple[str, ...] = ()


@cache  # the file of the package never changes while it runs, and a fleet of thousands asks for each node
def load_catalogue(path: Path = FILE) -> Catalogue:
    """Raises CatalogueError."""
    return catalogue_of(path.read_text("utf-8"))


def catalogue_of(text: str) -> Catalogue:
    """Raises CatalogueError for a group without source, and for a code in two groups."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(f"the catalogue is not TOML: {error}") from None
    codes: dict[int, Advice] = {}
    for number, group in enumerate(table.get("group", []), 1):
        missing = sorted(_NEEDED - set(group))
        if missing:
            raise CatalogueError(f"group {number}: missing {', '.join(missing)}")
        for code in group["codes"]:
            if code in codes:
                raise CatalogueError(f"group {number}: Xid {code} stands in two groups")
            codes[code] = Advice(group["action"], bool(group["severe"]), group["text"], f"{group['source']} ({group['date']})")
    return Catalogue(codes, frozenset(table.get("sxid", {}).get("harmless", [])))


def xids(events: Sequence[Mapping[str, Any]], catalogue: Catalogue) -> Found:
    """What the Xid messages among ``events`` come to, one sentence per GPU and code."""
    mine = [event for event in events if event.get("kind") == "xid"]
    counts = Counter((str(event["pci"]), int(event["code"]), _recovery(event)) for event in mine)
    severe: list[str] = []
    unlisted: list[str] = []
    mild: list[str] = []
    for (pci, code, recovery), times in counts.items():
        advice = catalogue.codes.get(code)
        often = f" ({times} times)" if times > 1 else ""
        if advice is None:
            unlisted.append(f"GPU {pci}: Xid {code}{often}, which the catalogue does not know")
        elif code == 154 and recovery.lower() == "none":
            mild.append(f"GPU {pci}: Xid 154{often}, no action needed any more")
        else:
            what = f"{advice.text}: {recovery}" if recovery else advice.text
            (severe if advice.severe else mild).append(f"GPU {pci}: Xid {code}{often}, {what}")
    return Found(tuple(severe), tuple(unlisted), tuple(mild))


def _recovery(event: Mapping[str, Any]) -> str:
    """The action that an Xid 154 names; "" for others."""
    if int(event["code"]) != 154:
        return ""
    text = str(event.get("text", ""))
    named = _RECOVERY.search(text)
    return named.group(1) if named else text.rpartition(", ")[2]


def sxids(events: Sequence[Mapping[str, Any]], catalogue: Catalogue) -> Found:
    """NVSwitch messages: "Fatal" ones ask for an action, others are shown. One that says neither counts as fatal."""
    severe: list[str] = []
    mild: list[str] = []
    mine = [event for event in events if event.get("kind") == "sxid"]
    for (device, code, text), times in Counter((str(event.get("device", "")), int(event["code"]), str(event.get("text", ""))) for event in mine).items():
        harmless = code in catalogue.harmless_sxids or re.match(r"non-fatal", text, re.IGNORECASE)
        (mild if harmless else severe).append(f"{device}: SXid {code}{f' ({times} times)' if times > 1 else ''}, {text[:120]}")
    return Found(tuple(severe), (), tuple(mild))
