"""docs/faults.md from the case files: `python -m tests.faults.page` writes the table; a test keeps both equal."""

from __future__ import annotations

import json
from pathlib import Path

from tests.faults.case import Case, load_cases
from tests.faults.driver import MEASURED

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
BEGIN, END = "<!-- python -m tests.faults.page -->\n", "<!-- end of the cases -->\n"


def table(cases: list[Case], seconds: dict[str, float]) -> str:
    lines = ["| case | what is wrong | how it is made | named by | verdict | seconds |", "| --- | --- | --- | --- | --- | --- |"]
    lines += [f"| {' | '.join([case.name, case.about, _made(case), _named(case), _verdict(case), f'{seconds[case.name]:g}' if case.name in seconds else '-'])} |" for case in cases]
    return "\n".join(lines) + "\n"


def _made(case: Case) -> str:
    """The words after `nodectl lab fault`; what only stands on all hosts, such as recorded hardware, is in the text above the table."""
    own = [fault for fault in case.faults if fault.on != "all"] or list(case.faults)
    words = ", ".join(f"`{fault.name} {fault.value}`".replace(" `", "`") for fault in own)
    return f"{words} (simulated)" if case.simulated else words


def _named(case: Case) -> str:
    if case.expect.status == "unreachable":
        return "status `unreachable`"
    return f"`{case.expect.check}`" if case.expect.check else "nothing breaks"


def _verdict(case: Case) -> str:
    words = {"none": "not verified", "pass": "all pass"}
    return words.get(case.expect.verdict, case.expect.verdict) + (" on every node" if case.expect.everyone else "")


def page(text: str) -> str:
    """``text`` with the table of today's cases in its place."""
    seconds = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table(load_cases(), seconds) + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
