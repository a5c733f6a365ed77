"""A program may print a megabyte without a line end: the journal keeps it, the screen and the reasons do not."""

from __future__ import annotations

from nodectl.report.fold import LAST_WORDS, complaint
from nodectl.report.human import WIDEST, failure

LONG = "x" * 500_000


def test_a_reason_stays_readable() -> None:
    said = complaint({"msg": "non-zero return code", "rc": 3, "stderr": f"first\n{LONG}\n"})
    assert said == f"non-zero return code (rc=3): {'x' * LAST_WORDS}…"
    assert complaint({"msg": "non-zero return code", "rc": 3, "stderr": "short"}) == "non-zero return code (rc=3): short"


def test_a_line_on_the_screen_is_cut_and_says_so() -> None:
    lines = [line.plain for line in failure({}, {"stdout": f"before\n{LONG}\nafter", "stderr": "y" * WIDEST})]
    assert lines == [
        "  stdout:", "    before", f"    {'x' * WIDEST}… (500000 characters)", "    after", "  stderr:", f"    {'y' * WIDEST}",
    ]
