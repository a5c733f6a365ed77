"""MIG, ECC, persistence and clocks as nvidia-smi answers: what differs is set per GPU, what is pending is told, what no GPU has is refused."""

from __future__ import annotations

from typing import Any

import pytest

from nodectl.agent.contract import Failed
from nodectl.agent.modules.gpu_settings import diff, parse, read, values, write
from nodectl.agent.processes import Completed
from nodectl.agent.system import System

HEALTHY = "0, Disabled, Disabled, Enabled, Enabled, Enabled, 2619, 1980, 570.86.15\n"
NOTHING: dict[str, Any] = {"mig": None, "ecc": None, "persistence": None, "clocks": ""}


class Smi(System):
    """Answers as nvidia-smi does, and remembers what it was told."""

    def __init__(self, out: str, rc: int = 0) -> None:
        super().__init__()
        self.out, self.rc, self.told = out, rc, list[list[str]]()

    def run(self, argv: Any, *_: Any, **__: Any) -> Completed:
        self.told.append(list(argv))
        return Completed(self.rc, self.out, "", tuple(argv))


CASES = [
    # what is wished, what nvidia-smi answers, what is done
    ({}, HEALTHY, []),
    ({"mig": False, "ecc": True, "persistence": True, "clocks": "2619,1980"}, HEALTHY, []),
    ({"mig": True}, HEALTHY, ["GPU 0: mig on"]),
    ({"ecc": False, "clocks": "1593,1410"}, HEALTHY, ["GPU 0: ecc off", "GPU 0: application clocks 1593,1410"]),
    ({"ecc": True}, HEALTHY + HEALTHY.replace("0, D", "1, D").replace("Enabled, Enabled, Enabled", "Disabled, Disabled, Enabled"), ["GPU 1: ecc on"]),
    ({"ecc": True}, HEALTHY.replace("Enabled, Enabled, Enabled", "Disabled, Enabled, Enabled"), []),
    ({"mig": False, "ecc": False}, HEALTHY.replace("Disabled, Disabled", "[N/A], [N/A]").replace("Enabled, Enabled, Enabled", "[N/A], [N/A], Enabled"), []),
]


@pytest.mark.parametrize(("wish", "answer", "done"), CASES)
def test_what_is_done(wish: dict[str, Any], answer: str, done: list[str]) -> None:
    assert diff({**NOTHING, **wish}, {"gpus": parse(answer)}).actions == done


def test_each_order_names_its_gpu() -> None:
    smi = Smi(HEALTHY)
    args = {**NOTHING, "mig": True, "clocks": "1593,1410"}
    state = read(smi, args)
    write(smi, args, state, diff(args, state))
    assert smi.told[1:] == [["nvidia-smi", "-i", "0", "-mig", "1"], ["nvidia-smi", "-i", "0", "-ac", "1593,1410"]]


def test_what_only_a_boot_makes_so_is_pending() -> None:
    state = {"gpus": parse(HEALTHY.replace("Enabled, Enabled, Enabled", "Disabled, Enabled, Enabled"))}
    told = values(NOTHING, state, diff(NOTHING, state))
    assert told == {"gpus": 1, "pending": ["GPU 0: ecc is Disabled until the next boot, then Enabled"], "driver": "570.86.15"}


BAD = [
    ({"mig": True}, HEALTHY.replace("Disabled, Disabled", "[N/A], [N/A]"), "GPU 0 has no mig"),
    ({"clocks": "fast"}, HEALTHY, "expected memory,graphics in MHz"),
    ({"clocks": "2619,1980\n"}, HEALTHY, "expected memory,graphics in MHz"),
    ({}, "0, Disabled\n", "what nobody understands: 0, Disabled"),
    ({}, "", "what nobody understands: nothing"),
]


@pytest.mark.parametrize(("wish", "answer", "said"), BAD)
def test_what_is_refused(wish: dict[str, Any], answer: str, said: str) -> None:
    with pytest.raises(Failed, match=said.replace("[", r"\[")):
        diff({**NOTHING, **wish}, {"gpus": parse(answer)})


def test_a_driver_that_fails_is_told_as_it_says_itself() -> None:
    with pytest.raises(Failed, match="exit code 18: Failed to initialize NVML"):
        read(Smi("Failed to initialize NVML: Driver/library version mismatch\n", 18), NOTHING)
