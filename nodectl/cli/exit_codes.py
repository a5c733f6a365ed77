"""Which exit code an exception means. The only place that decides it; ``main`` is the only caller."""

from __future__ import annotations

import click

from nodectl.diagnostics.model import Mistakes
from nodectl.report.exit_code import ExitCode


def code_of(error: BaseException) -> ExitCode:
    """INPUT_WRONG for what the user can mend before the run, INTERRUPTED for Ctrl-C, BUG for everything that nobody foresaw.

    A journal that cannot be written any more counts as BUG too: the run ended in the middle, and its record with it.
    """
    # click writes a line when it is interrupted; where the terminal is gone, which was the interrupt, that fails in turn.
    if isinstance(error, (click.Abort, KeyboardInterrupt)) or isinstance(error.__context__, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(error, (Mistakes, click.ClickException)):
        return ExitCode.INPUT_WRONG
    return ExitCode.BUG
