"""What a kind of machine has, as data: one small file per GPU model or system, each figure with its source. TOML in, checked values out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from nodectl.verify.judging.units import UnitError, quantity

# What a profile may say, and the base unit of it.
_ENTRIES: Mapping[str, str] = {
    "gpus": "count", "nvlinks": "count", "pcie_gen": "count", "pcie_width": "count", "fabric_manager": "bool", "imex": "bool", "hcas": "count",
    "hca_rate": "B/s", "nvme": "count",
}
_TOP = frozenset(["name", "summary", "gpu", "pci", "entry"])
_NEEDED = frozenset(["of", "value", "source", "date"])
FOLDER = Path(__file__).parent / "profiles"


class ProfileError(ValueError):
    """A profile that may not be used, or that nobody knows; names the file and what was expected."""


@dataclass(frozen=True)
class Entry:
    """One figure in its base unit. ``board`` True: a property of the whole machine as it is built, which a guest may see only a part of."""

    value: float | bool
    source: str
    board: bool = False


@dataclass(frozen=True)
class Profile:
    """``gpu`` are the parts of product names that choose it, ``pci`` the device ids; ``chosen`` is True where hosts.yaml named it (node_profile)."""

    name: str
    summary: str = ""
    gpu: tuple[str, ...] = ()
    entries: Mapping[str, Entry] = field(default_factory=dict)
    chosen: bool = False
    pci: tuple[str, ...] = ()

    def entry(self, key: str, bare_metal: bool) -> Entry | None:
        """The figure, where it can be asked of this node."""
        found = self.entries.get(key)
        return found if found is not None and (self.chosen or bare_metal or not found.board) else None


NO_PROFILE = Profile("")


@cache  # files of the package never change while it runs, and a fleet of thousands asks for each node
def load_profiles(folder: Path = FOLDER) -> tuple[Profile, ...]:
    """All ``*.toml`` files of ``folder``. Raises ProfileError on the first that may not be used."""
    return tuple(profile_of(path.read_text("utf-8"), path.name) for path in sorted(folder.glob("*.toml")))


def profile_of(text: str, file: str) -> Profile:
    """The profile in ``text``. Raises ProfileError."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"{file} is not TOML: {error}") from None
    unknown = sorted(set(table) - _TOP)
    if unknown or not isinstance(table.get("name"), str) or not isinstance(table.get("entry"), list):
        raise ProfileError(f"{file}: expected name, summary, gpu and [[entry]] tables; unknown: {', '.join(unknown) or 'nothing'}")
    entries: dict[str, Entry] = {}
    for number, given in enumerate(table["entry"], 1):
        key, entry = _entry(given, f"{file}, entry {number}")
        if key in entries:
            raise ProfileError(f"{file}: {key} stands there twice")
        entries[key] = entry
    return Profile(table["name"], str(table.get("summary", "")), tuple(table.get("gpu", ())), entries, pci=tuple(table.get("pci", ())))


def _entry(given: Mapping[str, Any], where: str) -> tuple[str, Entry]:
    missing = sorted(key for key in _NEEDED if given.get(key) in (None, ""))
    unknown = sorted(set(given) - _NEEDED - {"board"})
    if missing or unknown:
        words = f"missing {', '.join(missing) or 'nothing'}, unknown {', '.join(unknown) or 'nothing'}"
        raise ProfileError(f"{where}: {words}: a figure without its origin helps nobody")
    key, value = str(given["of"]), given["value"]
    if key not in _ENTRIES:
        raise ProfileError(f"{where}: {key!r} is nothing that a profile says; expected one of {', '.join(_ENTRIES)}")
    base = _ENTRIES[key]
    try:
        figure: float | bool = value if base == "bool" and isinstance(value, bool) else quantity(value, base)
    except UnitError as error:
        raise ProfileError(f"{where}: {error}") from None
    return key, Entry(figure, f"{given['source']} ({given['date']})", bool(given.get("board", False)))


def _word(part: str, name: str) -> bool:
    """ "B200" is not in "GB200": a name begins where a word begins."""
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(part)}(?![A-Za-z0-9])", name) is not None


def profile_for(profiles: Sequence[Profile], wanted: str, gpu_names: Sequence[str], pci_ids: Sequence[str] = ()) -> Profile:
    """The one that hosts.yaml names, otherwise the one of the GPUs' name (the longest match), of their PCI id, otherwise none. Raises ProfileError."""
    if wanted:
        found = next((profile for profile in profiles if profile.name == wanted), None)
        if found is None:
            raise ProfileError(f"node_profile: nobody knows {wanted!r}; expected one of {', '.join(sorted(profile.name for profile in profiles))}")
        return Profile(found.name, found.summary, found.gpu, found.entries, chosen=True, pci=found.pci)
    fitting = [(len(part), profile) for profile in profiles for part in profile.gpu for name in gpu_names[:1] if _word(part, name)]
    if fitting:
        return max(fitting, key=lambda pair: pair[0])[1]
    return next((profile for profile in profiles if set(pci_ids[:1]) & set(profile.pci)), NO_PROFILE)
