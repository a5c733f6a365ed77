"""nodectl lab: hosts to rehearse on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import ParamSpec

import click

from nodectl.lab import faults, lifecycle
from nodectl.lab.plan import LabPlan
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabState, load

Given = ParamSpec("Given")
dir_option = click.option(
    "--dir", "folder", type=click.Path(path_type=Path, file_okay=False), default=Path(".nodectl/lab"), show_default=True, help="The lab's folder."
)


@contextmanager
def problems() -> Iterator[None]:
    """What stops the lab is the user's or the machine's matter, not a bug: said as it stands, exit code 1."""
    try:
        yield
    except LabProblem as problem:
        raise click.ClickException(str(problem)) from problem


def lab_command(function: Callable[Given, int]) -> Callable[Given, int]:
    @wraps(function)
    def told(*args: Given.args, **kwargs: Given.kwargs) -> int:
        with problems():
            return function(*args, **kwargs)

    return told


def say(text: str) -> None:
    click.echo(f"lab: {text}")


@click.group("lab")
def command() -> None:
    """Hosts to rehearse on: namespaces of this machine with systemd, sshd, disks, an object store, and faults on demand (root)."""


@command.command("up")
@click.option("--hosts", type=int, default=3, show_default=True, help="How many hosts: n1, n2, ...")
@click.option("--guests", type=int, default=0, show_default=True, help="How many qemu guests with a kernel of their own: g1, g2, ...")
@click.option("--disks", type=int, default=2, show_default=True, help="NVMe-like disks per host.")
@click.option("--s3/--no-s3", default=True, show_default=True, help="An object store that speaks S3.")
@click.option("--name", default="lab", show_default=True, help="Tells labs apart that run at the same time.")
@click.option("--no-torch", is_flag=True, help="Do not lend this environment's torch to the hosts.")
@dir_option
@lab_command
def up(hosts: int, guests: int, disks: int, s3: bool, name: str, no_torch: bool, folder: Path) -> int:
    """Start a lab and write hosts.yaml, a key and known_hosts into DIR."""
    state = lifecycle.up(LabPlan(name=name, dir=folder, hosts=hosts, disks=disks, s3=s3, torch="none" if no_torch else "auto", guests=guests), say)
    for note in state.notes:
        say(note)
    click.echo(f"{len(state.hosts)} hosts are up: {', '.join(state.names)}" if state.hosts else "no namespace hosts")
    if state.guests:
        click.echo(f"{len(state.guests)} guests are up: {', '.join(guest.name for guest in state.guests)}")
    click.echo(f"inventory: {state.hosts_yaml}")
    return 0


@command.command("down")
@dir_option
@lab_command
def down(folder: Path) -> int:
    """Stop the lab in DIR and take away everything it made on this machine. Without a lab there: nothing happens."""
    click.echo(f"the lab in {folder} is gone" if lifecycle.down(folder) else f"there is no lab in {folder}")
    return 0


@command.command("reset")
@click.argument("hosts", nargs=-1, required=True)
@dir_option
@lab_command
def reset(hosts: tuple[str, ...], folder: Path) -> int:
    """Put HOSTS back to their first day: fresh system, empty disks, new host keys."""
    lifecycle.reset(running(folder), list(hosts))
    click.echo(f"{', '.join(hosts)}: as new")
    return 0


@command.command("status")
@dir_option
@lab_command
def status(folder: Path) -> int:
    """Show the lab in DIR as it is now. Exit code 1 where there is none."""
    now = lifecycle.status(folder)
    if now.state is None:
        raise click.ClickException(f"there is no lab in {folder}: nodectl lab up --dir {folder}")
    click.echo(f"lab {now.state.name} in {now.state.dir}: {now.state.phase}")
    for host in now.hosts:
        click.echo(f"  {host.name:<6} {host.address:<15} {host.power:<8} ssh {_answers(host.ssh)}  disks {', '.join(host.serials) or '-'}")
    for service, answers in now.services:
        click.echo(f"  {service:<22} {_answers(answers)}")
    for fault in now.faults:
        click.echo(f"  fault: {fault.host or 'services'} {fault.fault} {fault.value}".rstrip())
    for note in now.notes:
        click.echo(f"  note: {note}")
    return 0


def _answers(yes: bool) -> str:
    return "answers" if yes else "does not answer"


@command.command("fault")
@click.argument("words", nargs=-1, metavar="[HOST] FAULT [VALUE]")
@dir_option
@lab_command
def fault(words: tuple[str, ...], folder: Path) -> int:
    """Break something, e.g. `n2 slow-link 100mbit`, `n2 down`, or `store-down`. Without arguments: what can be broken."""
    if not words:
        for kind in faults.kinds():
            line = f"{'HOST ' if kind.of_host else ''}{kind.name} {kind.value and '[' + kind.value + ']'}"
            click.echo(line.ljust(44) + " " + kind.about + (" (simulated)" if kind.simulated else ""))
        return 0
    host, name, value = fault_words(words)
    faults.apply(running(folder), host, name, value)
    click.echo(f"{' '.join(words)}: applied; mend it with: nodectl lab lift {host + ' ' if host else ''}{name} --dir {folder}")
    return 0


@command.command("lift")
@click.argument("words", nargs=-1, required=True, metavar="[HOST] FAULT")
@dir_option
@lab_command
def lift(words: tuple[str, ...], folder: Path) -> int:
    """Mend what `lab fault` broke. A fault that is not applied is said to be so; that is no failure."""
    host, name, value = fault_words(words)
    if value:
        raise LabProblem(f"lift takes no value: {value!r} is one word too many")
    state = running(folder)
    applied = any((one.host, one.fault) == (host, name) for one in state.faults)
    faults.lift(state, host, name)
    click.echo(f"{' '.join(words)}: " + ("lifted" if applied else "was not applied; nothing to lift"))
    return 0


def fault_words(words: tuple[str, ...]) -> tuple[str, str, str]:
    """(host, fault, value): the host is left out for what concerns the lab's services. Raises LabProblem."""
    rest = list(words)
    services = {kind.name for kind in faults.kinds() if not kind.of_host}
    host = "" if rest[0] in services else rest.pop(0)
    if not 1 <= len(rest) <= 2:
        raise LabProblem(f"expected [HOST] FAULT [VALUE], got {' '.join(words)!r}; `nodectl lab fault` lists what can be broken")
    return host, rest[0], rest[1] if len(rest) == 2 else ""


def running(folder: Path) -> LabState:
    state = load(folder)
    if state is None:
        raise LabProblem(f"there is no lab in {folder}: nodectl lab up --dir {folder}")
    return state
