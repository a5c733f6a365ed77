"""What a node has that the whole fleet should have alike, until it can be held against the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Trait:
    """``share`` 0: must be equal; above: at least that share of the fleet's median.

    ``lone`` says what a node without a fleet gets: "omit" (it has nothing to differ from), "unknown", or "accept".
    ``doubt`` names what being like the others does not excuse; ``zero`` says what a fleet gets where no node has any: "same" (it agrees) or "omit".
    """

    value: float | str
    unit: str
    method: str
    why: str
    share: float = 0.0
    lone: Literal["omit", "unknown", "accept"] = "omit"
    simulated: bool = False
    detail: str = ""
    doubt: str = ""
    zero: Literal["omit", "same"] = "same"
