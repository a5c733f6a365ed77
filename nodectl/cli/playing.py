"""What `run` and `bootstrap` do alike before the first node is touched: read what was asked, load it all, list it or open the run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nodectl.cli.hide import hidden_argv
from nodectl.cli.listing import listing
from nodectl.cli.loading import Loaded, inventory_secrets, load
from nodectl.cli.options import Asked, read_options
from nodectl.cli.prompts import answered, check_answers
from nodectl.cli.session import Session, make_run_folder
from nodectl.diagnostics.model import Collector
from nodectl.engine.run import RunResult, run_playbook
from nodectl.wire.secret import Secret


@dataclass(frozen=True)
class Playing:
    """A playbook that loaded without a mistake, and how it was asked for."""

    command: str
    playbook: Path
    sources: Sequence[str]
    asked: Asked
    loaded: Loaded
    answers: tuple[Secret, ...] = ()

    def listed(self, given: Mapping[str, Any]) -> str | None:
        """What --list-tasks, --list-hosts and --syntax-check show; None where none of them was given."""
        return listing(self.loaded, self.asked.options, given["list_tasks"], given["list_hosts"], given["syntax_check"])

    def answered(self) -> Playing:
        """The same after a person was asked what its plays want to know."""
        playbook, secrets = answered(self.loaded.playbook, self.asked.options.extra_vars)
        return replace(self, loaded=replace(self.loaded, playbook=playbook), answers=tuple(secrets))

    def session(self, run_dir: Path | None) -> Session:
        """The run's folder is made and its journal begun."""
        options = self.asked.options
        about = {"command": self.command, "argv": hidden_argv(sys.argv[1:]), "playbook": str(self.playbook), "inventory": list(self.sources)}
        secrets = [*self.asked.secrets, *self.answers, *options.vault.opened, *inventory_secrets(self.loaded.inventory)]
        return Session(make_run_folder(run_dir), self.asked.limits, self.asked.view, secrets, check=options.check, diff=options.diff, **about)

    def play(self, session: Session) -> RunResult:
        return run_playbook(self.loaded.playbook, self.loaded.inventory, self.asked.options, session.connections, session.emit)


def read(command: str, playbook: Path, sources: Sequence[str], given: dict[str, Any], found: Collector) -> Playing:
    """All mistakes of the options, the inventory and the playbook go to ``found``; ask it to stop before the first use."""
    asked = read_options(given, found)
    loaded = load(sources, playbook, asked.options, found)
    if not any(given[name] for name in ("list_tasks", "list_hosts", "syntax_check")):
        check_answers(loaded.playbook, asked.options.extra_vars, found)
    return Playing(command, playbook, sources, asked, loaded)
