from __future__ import annotations

import gzip
import hashlib
import subprocess
from pathlib import Path

from nodectl.lab import repo


def deb(folder: Path, name: str, version: str) -> Path:
    """A real, tiny package."""
    tree = folder / "tree" / name
    (tree / "DEBIAN").mkdir(parents=True)
    control = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: a <a@b.example>\nDescription: one\n two\n"
    (tree / "DEBIAN/control").write_text(control)
    target = folder / "repo" / f"{name}_{version}_all.deb"
    target.parent.mkdir(exist_ok=True)
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", str(tree), str(target)], check=True, capture_output=True)
    return target


def test_the_index_describes_every_package(tmp_path: Path) -> None:
    one, two = deb(tmp_path, "one", "1.0"), deb(tmp_path, "two", "2.0")
    repo.write_index(tmp_path / "repo")
    text = (tmp_path / "repo/Packages").read_text()
    stanzas = text.split("\n\n")
    assert len(stanzas) == 2
    for path, stanza in zip((one, two), stanzas, strict=True):
        assert f"Filename: ./{path.name}\n" in stanza + "\n"
        assert f"Size: {path.stat().st_size}\n" in stanza
        assert f"SHA256: {hashlib.sha256(path.read_bytes()).hexdigest()}" in stanza
        assert "Description: one\n two\n" in stanza
    assert gzip.decompress((tmp_path / "repo/Packages.gz").read_bytes()).decode() == text
    assert not (tmp_path / "repo/Release").exists()


def test_packages_are_fetched_with_a_state_of_their_own(tmp_path: Path, monkeypatch: object) -> None:
    words = repo._options(tmp_path / "apt", tmp_path / "root", tmp_path / "apt/sources.list")
    settings = dict(word.split("=", 1) for word in words[1::2])
    assert set(words[::2]) == {"-o"}
    # Nothing of this machine's own apt is read for lists, sources or what is installed, nor written.
    assert settings["Dir::State::status"] == str(tmp_path / "root/var/lib/dpkg/status")
    assert settings["Dir::Etc::sourceparts"] == "/dev/null"
    assert all(settings[name].startswith(str(tmp_path)) for name in ("Dir::State", "Dir::State::lists", "Dir::Cache", "Dir::Cache::archives"))
