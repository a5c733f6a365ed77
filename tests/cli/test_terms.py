"""Where the site's floors and waivers come from: beside hosts.yaml, or where it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodectl.cli.main import run
from nodectl.cli.terms import SITE_FLOORS, read_terms, site_files, site_folder
from nodectl.diagnostics.model import Collector
from nodectl.inventory.load import load_inventory

FLOOR = """[[floor]]
metric = "disk.scratch.seq_read"
device = "nvme"
statistic = "mean"
floor = {value}
unit = "GB/s"
bound = 30
bound_reason = "two PCIe 5.0 disks"
source = "our own runs"
date = "2026-11"
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "hosts.yaml").write_text("all:\n  hosts:\n    n1:\n    n2:\n")
    return tmp_path


def terms(site: Path, extra: dict[str, object] | None = None) -> tuple[list[float], Collector]:
    found = Collector()
    sources = [str(site / "hosts.yaml")]
    read = read_terms(load_inventory(sources, found), sources, extra or {}, found)
    return [floor.floor / 1e9 for floor in read.floors], found


def test_the_file_beside_the_inventory_is_read(site: Path) -> None:
    assert terms(site)[0] == []
    (site / SITE_FLOORS).write_text(FLOOR.format(value=5))
    values, found = terms(site)
    assert values == [5]
    assert not found.errors


@pytest.mark.parametrize(("said", "values"), [("mine.toml", [6]), ("[mine.toml, more/yours.toml]", [6, 7]), ("more/yours.toml", [7])])
def test_files_that_the_inventory_names_stand_instead(site: Path, said: str, values: list[float]) -> None:
    (site / SITE_FLOORS).write_text(FLOOR.format(value=5))
    (site / "mine.toml").write_text(FLOOR.format(value=6))
    (site / "more").mkdir()
    (site / "more/yours.toml").write_text(FLOOR.format(value=7))
    (site / "hosts.yaml").write_text(f"all:\n  vars: {{site_floors: {said}}}\n  hosts:\n    n1:\n    n2:\n")
    assert terms(site)[0] == values


def test_an_option_counts_more_than_the_file(site: Path) -> None:
    (site / "mine.toml").write_text(FLOOR.format(value=6))
    assert terms(site, {"site_floors": "mine.toml"})[0] == [6]


@pytest.mark.parametrize(("text", "words"), [(None, "cannot be read"), ("floor = [", "is not TOML"), (FLOOR.format(value=50), "above the physical bound"), ("\udcff", "not UTF-8")])
def test_what_cannot_be_used_is_told(site: Path, text: str | None, words: str) -> None:
    if text is not None:
        (site / "mine.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    _, found = terms(site, {"site_floors": "mine.toml"})
    assert [one.code for one in found.errors] == ["E408"]
    assert words in found.errors[0].message


def test_all_of_them_are_the_sites(site: Path) -> None:
    (site / SITE_FLOORS).write_text(FLOOR.format(value=5))
    found = Collector()
    sources = [str(site / "hosts.yaml")]
    assert all(floor.site for floor in read_terms(load_inventory(sources, found), sources, {}, found).floors)


def test_a_folder_and_a_spelled_out_list_as_inventory(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site / SITE_FLOORS).write_text("")
    monkeypatch.chdir(site)
    assert site_folder([str(site)]) == site
    assert site_files({}, ["n1,n2,"]) == [Path(SITE_FLOORS)]


def test_waivers_from_the_command_line(site: Path) -> None:
    waiver = {"check": "clock.offset", "who": "ada", "why": "no NTP here", "until": "2999-01-01"}
    found = Collector()
    sources = [str(site / "hosts.yaml")]
    read = read_terms(load_inventory(sources, found), sources, {"verify_waivers": [waiver]}, found)
    assert [(one.check, one.hosts) for one in read.waivers] == [("clock.offset", ("n1", "n2"))]
    assert len(read.today) == 10


def test_check_finds_them_without_a_node(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (site / "hosts.yaml").write_text("all:\n  hosts:\n    n1: {verify_waivers: [{check: clock.offset}]}\n")
    (site / SITE_FLOORS).write_text(FLOOR.format(value=50))
    assert run(["check", "-i", str(site / "hosts.yaml")]) == 1
    text = capfd.readouterr().err
    assert "error[E313]" in text
    assert "error[E408]" in text
