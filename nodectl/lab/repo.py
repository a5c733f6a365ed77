"""A small flat apt repository, so that `apt` works on hosts that have no way out."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Sequence
from pathlib import Path

from nodectl.lab.machine import remove_tree, run

# About 60 MB; a slow mirror may need minutes.
FETCH_TIMEOUT_S = 900.0
KEYRING = "usr/share/keyrings/debian-archive-keyring.gpg"


def build(folder: Path, root: Path, suite: str, mirror: str, packages: Sequence[str]) -> None:
    """Fetches ``packages`` and what they need beyond the tree at ``root``, and writes the index beside them.

    Uses apt with a state of its own: neither this machine's package lists nor its sources are read or changed.
    """
    work = folder.with_name("apt")
    folder.mkdir()
    for part in ("lists/partial", "archives/partial"):
        (work / part).mkdir(parents=True)
    sources = work / "sources.list"
    sources.write_text(f"deb [signed-by={root / KEYRING}] {mirror} {suite} main\n")
    apt = ["apt-get", "--quiet", "--yes", *_options(work, root, sources)]
    run([*apt, "update"], FETCH_TIMEOUT_S)
    run([*apt, "--no-install-recommends", "--download-only", "install", *packages], FETCH_TIMEOUT_S)
    for deb in sorted((work / "archives").glob("*.deb")):
        deb.rename(folder / deb.name)
    write_index(folder)
    remove_tree(work)


def _options(work: Path, root: Path, sources: Path) -> list[str]:
    settings = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State": work,
        "Dir::State::lists": work / "lists",
        "Dir::State::status": root / "var/lib/dpkg/status",
        "Dir::Cache": work,
        "Dir::Cache::archives": work / "archives",
        # The state belongs to root alone, which apt's own user could not read.
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def write_index(folder: Path) -> None:
    """Writes Packages and Packages.gz. No Release file: a flat repository marked trusted needs none, and an empty one breaks apt."""
    text = "\n".join(_stanza(deb) for deb in sorted(folder.glob("*.deb")))
    (folder / "Packages").write_text(text)
    (folder / "Packages.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _stanza(deb: Path) -> str:
    control = run(["dpkg-deb", "--field", str(deb)]).rstrip("\n")
    data = deb.read_bytes()
    return f"{control}\nFilename: ./{deb.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
