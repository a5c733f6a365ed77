"""What stops the lab, said to a person."""

from __future__ import annotations

from collections.abc import Sequence


class LabProblem(Exception):
    """The machine, or the request, does not allow what was asked. The text says what is, what was expected and what to do.

    ``packages`` are the Debian packages that would help; the text then ends with the line that installs them.
    """

    def __init__(self, text: str, packages: Sequence[str] = ()) -> None:
        self.packages = tuple(packages)
        line = f"\nInstall what is missing: apt-get install -y {' '.join(self.packages)}" if packages else ""
        super().__init__(text + line)
