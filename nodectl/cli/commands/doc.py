"""nodectl doc MODULE: the page of a module."""

from __future__ import annotations

import difflib
from pathlib import Path

import click

from nodectl.cli.module_page import module_page
from nodectl.engine.catalogue import known, names
from nodectl.lang.ansible_modules import NOT_HERE
from nodectl.lang.arguments import ansible_only, short_name, spec_of
from nodectl.lang.keywords import PREFIXES


@click.command("doc")
@click.argument("module", required=False)
@click.option("--all", "every", is_flag=True, help="Write the pages of all modules.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("docs/modules"), show_default=True, help="Where --all writes.")
def command(module: str | None, every: bool, out: Path) -> int:
    """Show the parameters, return values and an example of MODULE. Without MODULE: a list of all."""
    if every:
        try:
            write_pages(out)
        except OSError as error:
            raise click.ClickException(f"{error.filename or out} cannot be written: {error.strerror}; give another folder with --out") from None
    elif module is None:
        click.echo("\n".join(f"{name:<20} {_spec_summary(name)}" for name in names()))
    else:
        module = short(module)
        click.echo(page(module), nl=False)
    return 0


def page(module: str) -> str:
    """The page of a module, named as in a playbook: with or without its collection's name, in any case. Raises UsageError."""
    name = module.strip().lower()
    short = short_name(name, known) or name
    spec = spec_of(short, known)
    if spec is not None:
        return module_page(short, spec)
    if ansible_only(name):
        raise click.UsageError(f"there is no module '{module}'. {NOT_HERE}")
    near = difflib.get_close_matches(short.rsplit(".", 1)[-1], names(), 1)
    raise click.UsageError(f"there is no module '{module}'" + (f"; did you mean '{near[0]}'?" if near else ": nodectl doc lists them all"))


def short(module: str) -> str:
    """The name without its collection, as playbooks may write it too."""
    return next((module.removeprefix(prefix) for prefix in PREFIXES if module.startswith(prefix)), module)


def write_pages(out: Path) -> None:
    """One page per module; pages of modules that are gone are removed."""
    out.mkdir(parents=True, exist_ok=True)
    pages = {f"{name}.md": module_page(name, spec) for name in names() if (spec := known(name))}
    for stale in {path.name for path in out.glob("*.md")} - set(pages):
        (out / stale).unlink()
    for name, text in pages.items():
        (out / name).write_text(text, encoding="utf-8")


def _spec_summary(name: str) -> str:
    spec = known(name)
    return spec.summary if spec else ""
