"""The part of a page of docs/ that a benchmark writes: what stands between its two marks."""

from __future__ import annotations


def written(page: str, begin: str, end: str, text: str) -> str:
    """``page`` with ``text`` between the marks."""
    before, _, rest = page.partition(begin)
    return f"{before}{begin}{text}{end}{rest.partition(end)[2]}"
