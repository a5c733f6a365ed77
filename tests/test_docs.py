"""Pages that are made from something else, or that list something, stay equal to it."""

from __future__ import annotations

import hashlib
import re
import subprocess
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodectl.cli.main import COMMANDS
from nodectl.cli.module_page import module_page
from nodectl.diagnostics.codes import CODES
from nodectl.diagnostics.model import Collector
from nodectl.engine.catalogue import known, names
from nodectl.inventory.load import load_inventory
from nodectl.lang.keywords import REFUSED
from nodectl.report.exit_code import MEANING

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONSUMERS = (ROOT / "tests" / "handoff" / "consumers.txt").read_text().splitlines()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "roles").rglob("*.md"))]


def package(requirement: str) -> str:
    return re.split(r"[<>=!~\[; ]", requirement)[0]


def rows(text: str) -> Iterator[list[str]]:
    """The cells of Markdown tables, without heads and rules."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and not set(cells[0]) <= {"-"} and cells[0] not in ("package", "exit code", "command", "keyword"):
            yield cells


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_dependency_has_its_reason_and_no_reason_is_left_over() -> None:
    found = {title: [cells[0] for cells in rows(body)] for title, body in sections((ROOT / "docs" / "dependencies.md").read_text()).items()}
    wanted = {"On the controller": [package(r) for r in PROJECT["dependencies"]]}
    wanted |= {f"Extra `{extra}`": [package(r) for r in reqs] for extra, reqs in PROJECT["optional-dependencies"].items()}
    wanted |= {"In the page": ["uPlot"], "Consumers of the handoff": [line.partition("==")[0] for line in CONSUMERS if line[0] != "#"]}
    assert found == wanted


def test_the_library_in_the_page_is_the_one_that_is_told() -> None:
    """Unchanged, or the page could not be mended by taking the next version."""
    page = ROOT / "nodectl" / "report" / "page"
    hashes = {name: hashlib.sha256((page / name).read_bytes()).hexdigest()[:16] for name in ("uplot.js", "uplot.css")}
    assert hashes == {"uplot.js": "19c8d4c6ad88929a", "uplot.css": "df630c6a8d6f8eea"}
    assert "(v1.6.32)" in (page / "uplot.js").read_text()[:100]
    assert "| uPlot | 1.6.32, MIT" in (ROOT / "docs" / "dependencies.md").read_text()
    assert "MIT License" in (page / "uplot.license").read_text()


def test_readme_has_every_exit_code() -> None:
    told = {int(cells[0]): cells[1] for cells in rows((ROOT / "README.md").read_text()) if cells[0].isdigit()}
    assert told == {int(code): text for code, text in MEANING.items()}


def test_module_pages_are_those_of_the_catalogue() -> None:
    wanted = {name: module_page(name, spec) for name in names() if (spec := known(name))}
    found = {path.stem: path.read_text() for path in (ROOT / "docs" / "modules").glob("*.md")}
    assert sorted(found) == sorted(wanted), "run: make docs"
    assert [name for name in wanted if found[name] != wanted[name]] == [], "run: make docs"


def test_every_role_has_its_page_and_every_page_its_role() -> None:
    roles = {path.name for path in (ROOT / "roles").iterdir() if (path / "tasks" / "main.yml").exists()}
    assert {path.stem for path in (ROOT / "docs" / "roles").glob("*.md")} == roles


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_pages_exist(page: Path) -> None:
    """Lines of code blocks that start with nodectl: their second word is a command."""
    used = re.findall(r"^ {4,}(?:\$ )?nodectl ([a-z]+)", page.read_text(), flags=re.MULTILINE)
    assert set(used) <= set(COMMANDS)


def test_the_inventory_in_readme_is_read_without_a_mistake(tmp_path: Path) -> None:
    block = re.search(r"(?:^    .*\n)*^    all:\n(?:^    .*\n)+", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    assert block
    (tmp_path / "hosts.yaml").write_text(textwrap.dedent(block[0]))
    found = Collector()
    inventory = load_inventory([str(tmp_path / "hosts.yaml")], found)
    assert list(found) == []
    assert inventory.names() == [f"gpu-{number:02}.rack1" for number in range(1, 17)]


def test_readme_names_every_command() -> None:
    text = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if not re.search(rf"`{name}\b|nodectl {name}\b", text)] == []


def test_architecture_page_shows_rooms_and_rules() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {path.name for path in (ROOT / "nodectl").iterdir() if (path / "__init__.py").exists()}
    assert set(re.findall(r"^\| `([a-z]+)` \|", text, flags=re.MULTILINE)) == rooms
    table = tomllib.loads((ROOT / "tests" / "architecture_table.toml").read_text())
    assert [rule["why"] for rule in table["never"] if rule["why"] not in text] == []


def test_every_refused_keyword_has_its_row() -> None:
    page = sections((ROOT / "docs" / "deviations.md").read_text())["Keywords that are not there"]
    told = {word for cells in rows(page) for word in re.findall(r"`([a-z_]+)`", cells[0])}
    assert told == set(REFUSED)


def test_codes_in_the_pages_exist() -> None:
    used = {code for page in PAGES for code in re.findall(r"\bE\d{3}\b", page.read_text())}
    assert used <= set(CODES)


def test_files_named_in_the_pages_exist() -> None:
    """`room/file.py` in the pages about the house: a file that was renamed leaves a wrong page behind."""
    named = {name for page in ("architecture.md", "one-task.md") for name in re.findall(r"`([a-z_/]+\.py)`", (ROOT / "docs" / page).read_text())}
    assert named
    assert [name for name in named if not ((ROOT / name).exists() or (ROOT / "nodectl" / name).exists())] == []


def test_the_version_is_in_the_changelog() -> None:
    assert f"## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()


def tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.stdout.split("\0") if name]


def test_no_path_of_the_machine_it_was_written_on() -> None:
    # Written apart, so that this file does not find itself.
    words = [b"/" + b"work/", b"/" + b"tmp/prep", b"/" + b"root/.pyenv"]
    assert [str(path) for path in tracked() if path.is_file() and any(word in path.read_bytes() for word in words)] == []
