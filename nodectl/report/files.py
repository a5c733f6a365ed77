"""What a run leaves for people and programs besides its journal."""

from __future__ import annotations

from pathlib import Path

from nodectl.report.fold import Summary
from nodectl.report.github import github
from nodectl.report.json import write_report
from nodectl.report.junit import junit
from nodectl.report.page import page
from nodectl.report.replace_file import replace_file


def write_files(summary: Summary, folder: Path) -> None:
    """report.json first: scripts rely on it. Then junit.xml, annotations.txt and report.html. Raises JournalLost."""
    write_report(summary, folder / "report.json")
    replace_file(folder / "junit.xml", junit(summary))
    replace_file(folder / "annotations.txt", github(summary))
    replace_file(folder / "report.html", page(summary))
