"""What was measured, and what was judged of it: two different values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

# "skipped" comes from a waiver of the user alone: who, why, until.
Verdict = Literal["pass", "skipped", "unknown", "fail"]


@dataclass(frozen=True)
class Measurement:
    """One reading. ``value`` None means that it could not be had, and ``error`` says why: the judge makes that `unknown`.

    ``name`` is dotted ("disk.scratch.seq_write", "collective.all_reduce.group", "limits.memlock"); ``unit`` is B/s, s, count,
    bool, text, ppm …; always base units. ``hosts`` are all nodes that took part; ``conditions`` hold what a reader needs to
    repeat it (bytes per rank, ranks, backend, block size, direct yes/no, file size); ``method`` names the tool and version.
    ``simulated`` is True where the thing measured stands in for hardware (gloo for NCCL, a loop device for NVMe).
    ``detail`` is a sentence for whoever reads why it failed: what was found, beside the figure.
    ``gone`` is True where the node was not there, or could not be asked at all: no waiver covers that.
    """

    name: str
    value: float | bool | str | None
    unit: str
    hosts: tuple[str, ...]
    method: str
    conditions: dict[str, Any] = field(default_factory=dict)
    raw: str = ""
    error: str = ""
    simulated: bool = False
    detail: str = ""
    gone: bool = False


@dataclass(frozen=True)
class Waiver:
    """The user takes the blame for what some checks of some nodes would say. ``check`` is a glob on their names ("disk.scratch.*").

    ``hosts`` are the nodes whose inventory entry holds it; ``until`` is the last day on which it counts (ISO date), ``origin`` file and line.
    """

    check: str
    who: str
    why: str
    until: str
    hosts: tuple[str, ...]
    origin: str = ""


@dataclass(frozen=True)
class Check:
    """A judged measurement of one host. ``reason`` is a sentence with the measured and the expected figure.

    ``waiver`` is set where the verdict is "skipped": what the user had excused beforehand. ``unfloored`` is True where a good figure is unknown
    only because there is nothing to hold it against.
    """

    host: str
    name: str
    verdict: Verdict
    reason: str
    value: float | bool | str | None = None
    unit: str = ""
    floor: float | bool | str | None = None
    source: str = ""
    simulated: bool = False
    raw: str = ""
    waiver: Waiver | None = None
    unfloored: bool = False


def check_data(check: Check, kind: str) -> dict[str, Any]:
    """A check as its event holds it; ``kind`` is the step that made it."""
    data = asdict(check)
    del data["host"], data["unfloored"]
    return {"step": kind, **data}
