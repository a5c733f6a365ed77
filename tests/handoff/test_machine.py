"""What a node event says of a machine, whoever wrote it: of its type, or as good as not said."""

from __future__ import annotations

from typing import Any

import pytest

from nodectl.handoff.machine import UNKNOWN_MACHINE, Machine, machine_of
from tests.handoff.pool_events import machine


def test_a_whole_description() -> None:
    found = machine_of(machine("gpu-1"))
    assert (found.hostname, found.cpus, found.sockets, found.cores_per_socket, found.threads_per_core, found.memory) == ("gpu-1", 64, 2, 16, 2, 512 * 2**30)
    assert (found.gpu_files[7], found.gpu_model, found.sku, found.error) == ("/dev/nvidia7", "NVIDIA H100 80GB HBM3", "H100-SXM", "")
    assert found.nccl_files == (("/etc/nccl.conf", "# why\nNCCL_IB_HCA==mlx5_0\n"),)


@pytest.mark.parametrize("data", [None, {}, [], "x", 7, [("hostname", "x")]])
def test_an_older_journal_says_nothing_and_why(data: Any) -> None:
    assert machine_of(data) == UNKNOWN_MACHINE
    assert UNKNOWN_MACHINE.error


def test_an_error_is_all_that_is_known() -> None:
    assert machine_of({**machine("x"), "error": "no /proc"}) == Machine(error="no /proc")
    assert machine_of({"error": ["odd"]}).error == "['odd']"


# what is changed; the field that then says nothing
ODD: list[tuple[dict[str, Any], str, Any]] = [
    ({"hostname": 7}, "hostname", ""), ({"hostname": "a\nb"}, "hostname", ""), ({"cpus": "64"}, "cpus", 0), ({"cpus": 64.0}, "cpus", 0), ({"cpus": True}, "cpus", 0),
    ({"cpus": -1}, "cpus", 0), ({"cpus": 0}, "cpus", 0), ({"cpus": 1}, "cpus", 1), ({"memory": None}, "memory", 0), ({"gpu_files": "/dev/nvidia0"}, "gpu_files", ()),
    ({"gpu_files": [1, "/dev/nvidia0", None]}, "gpu_files", ("/dev/nvidia0",)), ({"gpu_files": None}, "gpu_files", ()), ({"sku": {"a": 1}}, "sku", ""),
    ({"nccl_conf": "A=1"}, "nccl_files", ()), ({"nccl_conf": [{"path": "/x"}, {"text": "A=1"}, "x", {"path": "/y", "text": ""}]}, "nccl_files", (("/y", ""),)),
    ({"nccl_conf": [{"path": 1, "text": "A=1"}, {"path": "/x", "text": ["A=1"]}]}, "nccl_files", ()),
]


@pytest.mark.parametrize(("changes", "field", "wanted"), ODD, ids=[str(changes) for changes, _, _ in ODD])
def test_what_is_not_of_its_type_is_not_said(changes: dict[str, Any], field: str, wanted: Any) -> None:
    assert getattr(machine_of({**machine("n1"), **changes}), field) == wanted


@pytest.mark.parametrize(("sku", "model", "word"), [
    ("H100-SXM", "x", "h100-sxm"), ("", "NVIDIA GeForce RTX 4090", "nvidia-geforce-rtx-4090"), ("", "", "gpu"), ("", "(°)", "gpu"), ("--A--", "x", "a"), ("GB200", "", "gb200"),
])
def test_the_word_for_a_gpu(sku: str, model: str, word: str) -> None:
    assert Machine(sku=sku, gpu_model=model).gpu_type == word
