"""The table of shipped floors in docs/verification.md: which cells are filled, which are unknown. `python bench/floors.py --write`"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from nodectl.verify.judging.floor_load import FLOORS, Floor, load_floors
from nodectl.verify.judging.units import human

PAGE = Path(__file__).parents[1] / "docs" / "verification.md"
BEGIN, END = "<!-- bench/floors.py -->\n", "<!-- end of floors -->"
SKUS = ("A100-SXM", "H100-SXM", "H200-SXM", "B200", "GB200", "MI300X")
# Title, metric, fabric, nodes.
CELLS = (
    ("inside a node", "node.all_reduce", "inside", 1), ("2 nodes, InfiniBand", "network.pairs", "ib", 2), ("2 nodes, RoCE", "network.pairs", "roce", 2),
    ("2 nodes, EFA", "network.pairs", "efa", 2), ("4 nodes, InfiniBand or RoCE", "network.all_reduce", "ib", 4),
    ("4 nodes, EFA", "network.all_reduce", "efa", 4), ("TCP", "network.pairs", "tcp", 2),
)


def table() -> str:
    """busbw of an all-reduce, GPU models down, fabrics across; then each floor with its source."""
    floors = load_floors(FLOORS)
    lines = ["| GPU | " + " | ".join(title for title, *_ in CELLS) + " |", "| --- |" + " --- |" * len(CELLS)]
    lines += [f"| {sku} | " + " | ".join(_cell(floors, sku, *cell) for cell in CELLS) + " |" for sku in SKUS]
    return "\n".join([*lines, "", *_sources(floors)]) + "\n"


def _fitting(floors: Sequence[Floor], sku: str, metric: str, fabric: str, nodes: int) -> list[Floor]:
    conditions = {"sku": sku, "fabric": fabric, "nodes": nodes, "collective": "all_reduce", "bytes": 2**40}
    return [floor for floor in floors if floor.fits(metric, {**conditions, "gpus": floor.gpus})]


def _cell(floors: Sequence[Floor], sku: str, _title: str, metric: str, fabric: str, nodes: int) -> str:
    found = _fitting(floors, sku, metric, fabric, nodes)
    return human(max(floor.floor for floor in found), "B/s").partition(" (")[0] if found else "unknown"


def _sources(floors: Sequence[Floor]) -> list[str]:
    """One line per floor of a GPU model; fabrics and metrics that share one stand together."""
    groups: dict[tuple[object, ...], list[Floor]] = {}
    for floor in floors:
        match = dict(floor.match)
        if "sku" in match:
            groups.setdefault((match["sku"], match["collective"], floor.floor, floor.source, floor.nodes, floor.size, floor.bound), []).append(floor)
    lines = ["| GPU | for | floor | messages from | physical bound | source |", "| --- | --- | --- | --- | --- | --- |"]
    for same in groups.values():
        one = same[0]
        collective = dict(one.match)["collective"]
        fabrics = ("" if collective == "all_reduce" else f"{collective}, ") + ", ".join(dict.fromkeys(dict(floor.match)["fabric"] for floor in same))
        nodes = f", {one.nodes[0]} nodes" if one.nodes and one.nodes[0] == one.nodes[1] else f", {one.nodes[0]} to {one.nodes[1]} nodes" if one.nodes else ""
        reason = f"; {one.reason}" if one.reason else ""
        bound = f"{human(one.bound, 'B/s').partition(' (')[0]} ({one.bound_reason})"
        floor, size = human(one.floor, "B/s").partition(" (")[0], f"{int(one.size) >> 30} GiB"
        lines.append(f"| {dict(one.match)['sku']} | {fabrics}{nodes} | {floor} | {size} | {bound} | {one.source} ({one.date}){reason} |")
    return lines


def page(text: str) -> str:
    """``text`` with the table between its marks."""
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:begin] + table() + text[end:]


def main() -> None:
    if "--write" in sys.argv:
        PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    else:
        sys.stdout.write(table())


if __name__ == "__main__":
    main()
