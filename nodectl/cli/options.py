"""Options that several commands share, spelled as Ansible spells them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from nodectl.cli.extra_vars import extra_vars
from nodectl.cli.vault_passwords import VAULT_OPTIONS, read_vault
from nodectl.diagnostics.model import Collector
from nodectl.engine.options import Options
from nodectl.inventory.secret_names import secret_texts
from nodectl.report.human import View
from nodectl.shipped import shipped
from nodectl.transport.channel import Limits
from nodectl.wire.secret import Secret

# Handlers that were notified and did not run, kept beside the runs for the next one on the same hosts.
PENDING = Path(".nodectl") / "pending"
Command = TypeVar("Command", bound=Callable[..., Any])


def _format(context: click.Context, _: click.Parameter, value: str) -> None:
    settings = context.find_root().obj
    if settings is not None:
        settings.format = value


format_option = click.option(
    "--format", type=click.Choice(["human", "json", "github"]), default="human", show_default=True, callback=_format, expose_value=False,
    help="How mistakes in the input are shown.",
)  # fmt: skip
inventory_option = click.option(
    "-i", "--inventory", "sources", multiple=True, required=True, metavar="HOSTS", help="Inventory file, folder, or 'host1,host2,'. Repeatable."
)
limit_option = click.option("-l", "--limit", metavar="PATTERN", help="Only these of the hosts.")
extra_vars_option = click.option("-e", "--extra-vars", "extra", multiple=True, metavar="VARS", help="key=value, a JSON object, or @file.yml. Repeatable.")
verbose_option = click.option("-v", "--verbose", count=True, help="-v: also what was ok or skipped; -vv: also every result.")
run_dir_option = click.option("--run-dir", type=click.Path(path_type=Path), metavar="DIR", help="The run's folder. Default: .nodectl/runs/<UTC time>-<id>/")

class Seconds(click.FloatRange):
    """A bound that is one: nan and inf would wait for ever."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number of seconds.", param, ctx)
        return number


_CONNECTION = (
    click.option("-f", "--forks", type=click.IntRange(1, 512), default=16, show_default=True, help="Nodes worked on at the same time."),
    click.option("-u", "--user", "remote_user", metavar="NAME", help="Log in as this user."),
    click.option("--private-key", metavar="FILE", help="The key to log in with."),
    click.option("-T", "--timeout", type=Seconds(1), metavar="SECONDS", help=f"Bound of one login. Default: {Limits().connect:.0f}"),
    click.option("-b", "--become", is_flag=True, default=None, help="Run as another user through sudo."),
    click.option("--become-user", metavar="NAME", help="The user to become. Default: root"),
    click.option("-K", "--ask-become-pass", is_flag=True, help="Ask for sudo's password."),
    click.option("--become-password-file", type=click.Path(path_type=Path), metavar="FILE", help="sudo's password is the first line of this file."),
)
_TASKS = (
    click.option("-t", "--tags", multiple=True, metavar="TAGS", help="Only tasks with these tags. Repeatable, or with commas."),
    click.option("--skip-tags", multiple=True, metavar="TAGS", help="No tasks with these tags. Repeatable, or with commas."),
    click.option("--start-at-task", metavar="NAME", help="Begin at the task with this name."),
    click.option("--force-handlers", is_flag=True, help="Run handlers on a node even if a task failed on it."),
)
_REHEARSAL = (
    click.option("-C", "--check", is_flag=True, help="Change nothing; say what would be changed."),
    click.option("-D", "--diff", is_flag=True, help="Show texts before and after."),
)
_LISTING = (
    click.option("--list-tasks", is_flag=True, help="Show the tasks that would run and stop."),
    click.option("--list-hosts", is_flag=True, help="Show the hosts of each play and stop."),
    click.option("--syntax-check", is_flag=True, help="Read everything, show mistakes and stop."),
)


def _stack(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


vault_options = _stack(*VAULT_OPTIONS)
connection_options = _stack(*_CONNECTION, vault_options, limit_option, extra_vars_option, verbose_option, format_option)
task_options = _stack(*_TASKS)
rehearsal_options = _stack(*_REHEARSAL)
listing_options = _stack(*_LISTING)


@dataclass(frozen=True)
class Asked:
    """The shared options after reading: what the engine, the transport and the screen want to know."""

    options: Options
    limits: Limits
    view: View
    limit: str | None
    secrets: tuple[Secret, ...]


def read_options(given: dict[str, Any], found: Collector) -> Asked:
    """From click's values. Mistakes go into ``found``; a password is asked for here, before anything starts."""
    password = _become_password(given, found)
    vault = read_vault(given, found)
    view = View(given.get("verbose", 0), given.get("diff", False))
    options = Options(
        check=given.get("check", False),
        diff=given.get("diff", False),
        forks=given["forks"],
        tags=_words(given.get("tags", ())),
        skip_tags=_words(given.get("skip_tags", ())),
        limit=given["limit"],
        extra_vars=extra_vars(given["extra"], found, vault),
        become=given["become"],
        become_user=given["become_user"],
        become_password=password,
        remote_user=given["remote_user"] or "",
        private_key=given["private_key"] or "",
        start_at_task=given.get("start_at_task"),
        force_handlers=given.get("force_handlers", False),
        pending_dir=PENDING,
        roles_path=(shipped("roles"),),
        vault=vault,
    )
    limits = Limits(connect=given["timeout"]) if given["timeout"] else Limits()
    secrets = [*([password] if password else []), *map(Secret, secret_texts(options.extra_vars))]
    return Asked(options, limits, view, given["limit"], tuple(secrets))


def _words(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())


def _become_password(given: dict[str, Any], found: Collector) -> Secret | None:
    if given["ask_become_pass"]:
        return Secret(click.prompt("BECOME password", hide_input=True, err=True))
    path = given["become_password_file"]
    if path is None:
        return None
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        found.error("E405", f"{path} cannot be read: {why}", None, help="give a text file that you may read")
        return None
    if not lines or not lines[0]:
        found.error("E405", f"{path} is empty", None, help="put sudo's password into its first line")
        return None
    return Secret(lines[0])
