"""What the handoff's schedulers are told of a machine: asked last, never judged, and nothing is made up."""

from __future__ import annotations

from typing import Any

import pytest

from nodectl.transport.channel import Target
from nodectl.verify.machine import machine_of
from nodectl.verify.session import Gone, Session
from nodectl.wire.outcome import Outcome
from tests.verify.fleet import MACHINE, FakeFleet, FakeNode


def session_of(answer: Outcome, **fault: Any) -> Session:
    return Session("n1", Target("n1", "192.0.2.1"), {}, FakeFleet(FakeNode("n1", answers={"probe_machine": answer}, **fault)))


def test_what_it_says_and_what_torch_calls_its_gpus() -> None:
    found = machine_of(session_of(Outcome(values=MACHINE)), ["NVIDIA H100 80GB HBM3"] * 8, "H100-SXM")
    assert found == {**MACHINE, "gpu_model": "NVIDIA H100 80GB HBM3", "sku": "H100-SXM"}


# what the probe answers; words of the error
ODD: list[tuple[Outcome, str]] = [
    (Outcome(failed=True, msg="no /proc"), "no /proc"), (Outcome(values={}), "nothing for cpus"), (Outcome(values={**MACHINE, "cpus": "4"}), "'4' for cpus"),
    (Outcome(values={**MACHINE, "memory": -1}), "-1 for memory"), (Outcome(values={**MACHINE, "gpu_files": "x"}), "'x' for gpu_files"),
    (Outcome(values={**MACHINE, "nccl_conf": [{"path": "/x"}]}), "nothing for text"), (Outcome(values={**MACHINE, "nccl_conf": "A=1"}), "'A=1' for nccl_conf"),
    (Outcome(values={**MACHINE, "hostname": None}), "None for hostname"),
]


@pytest.mark.parametrize(("answer", "words"), ODD, ids=[words for _, words in ODD])
def test_an_answer_of_no_use_is_an_error_and_not_a_guess(answer: Outcome, words: str) -> None:
    found = machine_of(session_of(answer), [], "")
    assert list(found) == ["error"]
    assert words in found["error"]


def test_a_node_that_is_lost_is_lost() -> None:
    with pytest.raises(Gone):
        machine_of(session_of(Outcome(values=MACHINE), gone_at=("probe_machine", 0)), [], "")
