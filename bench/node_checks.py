"""The table of node checks in docs/verification.md, made from the files that the checks are made from: `python bench/node_checks.py --write`."""

from __future__ import annotations

import sys
from pathlib import Path

from nodectl.verify.judging.units import human, unit
from nodectl.verify.node.node_table import Row, load_table
from nodectl.verify.node.profiles import load_profiles
from nodectl.verify.node.xid import load_catalogue

PAGE = Path(__file__).parents[1] / "docs" / "verification.md"
BEGIN, END = "<!-- bench/node_checks.py -->\n", "<!-- end of node checks -->"
# In the order of the suites.
KINDS = ("host", "pci", "hca", "gpu", "nvme", "errors")
_OPS = {"at_least": "at least ", "at_most": "at most ", "equals": ""}
_EACH = {
    "gpus": "each GPU", "awake": "each GPU", "ports": "each port", "cards": "each card", "fast_cards": "each card", "controllers": "each disk",
}
_WHEN = {
    "own_kernel": "outside containers", "bare_metal": "on bare metal", "rdma_cards": "with RDMA cards", "gpus_on_bus": "with GPUs",
    "numa": "with several NUMA nodes",
    "rdma": "with usable RDMA ports", "roce": "on RoCE", "gid_pinned": "where torch_env sets NCCL_IB_GID_INDEX", "nvswitch": "with NVSwitches",
    "several_gpus": "with two GPUs or more", "awake": "in P0", "imex": "of machines with NVLink between nodes",
}


def table() -> str:
    """All rows as Markdown, then profiles and catalogue."""
    lines = ["| check | must be | of | because, and what to do | source |", "| --- | --- | --- | --- | --- |"]
    lines += [_line(kind, row) for kind in KINDS for row in load_table(kind)]
    return "\n".join([*lines, "", *_profiles(), "", *_catalogue()]) + "\n"


def _line(kind: str, row: Row) -> str:
    conditions = ", ".join(_WHEN[word] for word in row.when if word in _WHEN)
    each = _EACH.get(row.each, "the node")
    of = f"{each} {conditions}".strip()
    return f"| `{row.metric}` | {limit(row)} | {of} | {row.why} | {row.source} ({row.date}); {row.how} |"


def limit(row: Row) -> str:
    """The limit in words, with what may replace it."""
    if row.op == "same":
        words = "the same on all nodes"
    elif row.op == "near":
        words = f"at least {float(row.value or 0):.0%} of the fleet's median"
    elif row.value is None:
        words = f"{_OPS[row.op]}the profile's" if row.profile else "the same on all nodes"
    else:
        words = _OPS[row.op] + (("yes" if row.value else "no") if isinstance(row.value, bool) else _figure(row))
    if row.profile and row.value is None:
        words += ", else the same on all nodes"
    return f"{words}, or `{row.pin}`" if row.pin else words


def _figure(row: Row) -> str:
    return human(row.value, unit(row.unit).base) if isinstance(row.value, float) else f"`{row.value}`"


def _profiles() -> list[str]:
    lines = ["| profile | is | expects |", "| --- | --- | --- |"]
    for profile in load_profiles():
        entries = [f"{key} {human(entry.value, 'B/s') if key == 'hca_rate' else f'{entry.value:g}' if entry.value is not True else 'needed'}"
                   + (" (bare metal)" if entry.board else "") for key, entry in profile.entries.items()]
        lines.append(f"| `{profile.name}` | {profile.summary}{'' if profile.gpu else '; only by `node_profile`'} | {', '.join(entries)} |")
    return lines


def _catalogue() -> list[str]:
    lines = ["| Xid | asks for | takes the node out | source |", "| --- | --- | --- | --- |"]
    groups: dict[tuple[str, bool, str], list[int]] = {}
    for code, advice in load_catalogue().codes.items():
        groups.setdefault((advice.text, advice.severe, advice.source), []).append(code)
    return lines + [f"| {', '.join(map(str, codes))} | {text} | {'yes' if severe else 'no'} | {source} |" for (text, severe, source), codes in groups.items()]


def page(text: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    else:
        print(table())
