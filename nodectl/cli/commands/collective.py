"""nodectl collective OP HOSTS: nccl-tests' sweep over the nodes of an inventory, without MPI and without building anything."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from nodectl.cli.ad_hoc import one_task
from nodectl.cli.hide import hidden_argv
from nodectl.cli.loading import check_targets, inventory_secrets
from nodectl.cli.options import Seconds, connection_options, read_options, run_dir_option
from nodectl.cli.proving import nodes_of
from nodectl.cli.session import Session, make_run_folder
from nodectl.diagnostics.model import Collector
from nodectl.engine.outside import output
from nodectl.engine.run import run_playbook
from nodectl.inventory.load import load_inventory
from nodectl.verify.group.operations import DTYPES, OPS, REDOPS, Sizes
from nodectl.verify.stage import verify
from nodectl.verify.suite_load import Suite, SuiteStep

# Letters that mean here what they mean to nccl-tests; the connection's options of that letter are spelled out.
_LETTERS = frozenset(["-b", "-e", "-f", "-i", "-n", "-w", "-o", "-d", "-r"])
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d+)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


class Size(click.ParamType):  # type: ignore[type-arg]
    """Bytes as nccl-tests takes them: 8, 64K, 128M, 1G are powers of two."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = _SIZE.fullmatch(str(value).strip())
        if not found or int(found[1]) < 1:
            self.fail(f"{value!r} is not a size: expected bytes such as 8, 64K, 128M or 1G (powers of two).", param, ctx)
        return int(found[1]) * _UNITS[found[2].upper()]


class Words(click.ParamType):  # type: ignore[type-arg]
    """One or several of ``known``, with commas, or `all`. ``aliases`` are other words for them; ``shown`` those that are told."""

    def __init__(self, what: str, known: Sequence[str], aliases: Mapping[str, str], shown: Sequence[str] = ()) -> None:
        self.name = what
        self.known = tuple(known)
        self.aliases = aliases
        self.shown = ", ".join(shown or known)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        if value == "all":
            return self.known
        words = tuple(dict.fromkeys(self.aliases.get(word.strip(), word.strip()) for word in str(value).split(",")))
        unknown = [word for word in words if word not in self.known]
        if unknown:
            self.fail(f"{', '.join(unknown)} is no {self.name}: expected all, or some of {self.shown}.", param, ctx)
        return words


OP = Words("operation", OPS, {f"{op}_perf": op for op in OPS})
DTYPE = Words("data type", tuple(DTYPES), {word: name for name, word in DTYPES.items()}, tuple(DTYPES.values()))
REDOP = Words("reduction", REDOPS, {})


@click.command("collective")
@click.argument("op", type=OP)
@click.argument("hosts", nargs=-1, required=True)
@click.option("-b", "--minbytes", "begin", type=Size(), default="8", show_default=True, help="Smallest size.")
@click.option("-e", "--maxbytes", "end", type=Size(), default="64M", show_default=True, help="Largest size.")
@click.option("-f", "--stepfactor", "factor", type=click.IntRange(2), default=2, show_default=True, help="Each size is this many times the one before.")
@click.option("-i", "--stepbytes", "step", type=Size(), help="Each size is this much larger than the one before, instead of -f.")
@click.option("-n", "--iters", "iterations", type=click.IntRange(1), default=20, show_default=True, help="Timed runs per size.")
@click.option("-w", "--warmup-iters", "warmup", type=click.IntRange(0), default=1, show_default=True, help="Runs before them that do not count.")
@click.option("-d", "--datatype", "dtypes", type=DTYPE, default="float", show_default=True, help="Some of float, half, bfloat16, int32, uint8 …, or all.")
@click.option("-o", "--redop", "redops", type=REDOP, default="sum", show_default=True, help="Some of sum, prod, min, max, avg, or all.")
@click.option("-r", "--root", type=click.IntRange(0), default=0, show_default=True, help="The rank that broadcast and reduce begin or end at.")
@click.option("--deadline", type=Seconds(10), default=900, show_default=True, help="Bound of the whole sweep, in seconds.")
@run_dir_option
@connection_options
def command(op: tuple[str, ...], hosts: tuple[str, ...], run_dir: Path | None, **given: Any) -> int:
    """Sweep one collective, several with commas, or `all`, over the nodes of HOSTS (an inventory), as nccl-tests does.

    NCCL where every node has GPUs, gloo otherwise. Every value is checked. Rows come on the screen and into
    the run's report.json, with each rank's time into its events.jsonl.
    """
    try:
        Sizes(given["begin"], given["end"], given["factor"], given["step"] or 0).all()
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    found = Collector()
    asked = read_options(given, found)
    inventory = load_inventory(hosts, found, asked.options.vault, output)
    check_targets(inventory, hosts, "all", asked.limit, found)
    found.stop_if_wrong()
    about = {"command": "collective", "argv": hidden_argv(sys.argv[1:], short=False), "playbook": "", "inventory": list(hosts), "check": False, "diff": False}
    with Session(make_run_folder(run_dir), asked.limits, asked.view, [*asked.secrets, *inventory_secrets(inventory)], **about) as session:
        result = run_playbook(one_task("setup", {}, "all", "Facts"), inventory, asked.options, session.connections, session.emit)
        nodes = nodes_of(result, asked.options)
        if nodes:
            verify(nodes, suite_for(op, given), session.connections, session.emit)
    return session.exit_code


def suite_for(ops: Sequence[str], given: Mapping[str, Any]) -> Suite:
    """What has to be known of the nodes, then every combination on every size."""
    options: dict[str, float] = {
        "begin": given["begin"], "end": given["end"], "factor": given["factor"], "step": given["step"] or 0, "root": given["root"], "every": 1,
        "iterations": given["iterations"], "warmup": given["warmup"], "timeout": min(60.0, given["deadline"]),
    }
    words = {"ops": tuple(ops), "dtypes": given["dtypes"], "redops": given["redops"]}
    sweep = SuiteStep("collectives", given["deadline"], options=options, words=words)
    return Suite("collective", "A sweep", (SuiteStep("fabric", 30.0), SuiteStep("route", 20.0), SuiteStep("torch", 120.0), sweep))


def _spell_out(options: Sequence[click.Parameter]) -> None:
    """Ansible's -b, -e and -f of the connection give way to nccl-tests'."""
    for option in options:
        if option.name in ("forks", "become", "extra"):
            option.opts = [word for word in option.opts if word not in _LETTERS]


_spell_out(command.params)
