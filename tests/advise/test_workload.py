"""Workload files: every mistake at its place, all of them at once; what is left out follows from what is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from nodectl.advise.workload import Workload
from nodectl.advise.workload_load import load_workload, shipped
from nodectl.diagnostics.model import Collector

GOOD: dict[str, Any] = {
    "name": "mine", "gpu": "H100", "steps": 100, "model": {"parameters": 1e9, "layers": 16, "hidden": 2048},
    "parallelism": {"nodes": 2, "gpus_per_node": 8}, "batch": {"samples_per_step": 32, "tokens_per_sample": 1024},
}


def loaded(path: Path, text: str) -> tuple[Workload | None, list[str]]:
    file = path / "w.yaml"
    file.write_text(text)
    found = Collector()
    work = load_workload(str(file), found)
    said = [f"{one.origin.line}:{one.origin.column} {one.message} ({one.label})" if one.origin else one.message for one in found]
    assert (work is None) == bool(found.errors)
    assert {one.code for one in found} <= {"E411", "E101", "E102", "E109"}
    return work, said


def dump(**changes: Any) -> str:
    tree = {**GOOD, **{key: {**GOOD.get(key, {}), **value} if isinstance(value, dict) else value for key, value in changes.items()}}
    return yaml.safe_dump({key: value for key, value in tree.items() if value is not None}, sort_keys=False)


@pytest.mark.parametrize("name", shipped())
def test_shipped_workloads_load(name: str) -> None:
    found = Collector()
    work = load_workload(name, found)
    assert work is not None, list(found)
    assert work.layout.ranks == work.layout.data * work.layout.tensor * work.layout.pipeline


def test_five_sizes_are_shipped() -> None:
    assert shipped() == ["120b-moe", "12b", "405b", "70b", "7b"]


def test_what_is_left_out(tmp_path: Path) -> None:
    work, said = loaded(tmp_path, dump())
    assert work is not None, said
    assert (work.data, work.layout.tensor, work.micro_batches, work.interval, work.blocking, work.durable) == ("fsdp", 1, 1, 100, True, True)
    assert work.checkpoint_size.value == pytest.approx(13e9)
    assert work.model_size.value == pytest.approx(2e9)
    assert (work.sample_size, work.price, work.seconds) == (None, None, None)
    assert (work.overlap.kind, work.overlap.low, work.overlap.high) == ("assumed", 0.0, 1.0)
    assert "w.yaml:" in work.parameters.how


# what is said; the figure; its value in base units
VALUES: list[tuple[dict[str, Any], str, float]] = [
    ({"model": {"parameters": "12.2e9"}}, "parameters", 12.2e9),
    ({"dataset": {"sample_bytes": "50 KB"}}, "sample_size", 50e3),
    ({"dataset": {"sample_bytes": "1 MiB"}}, "sample_size", 2**20),
    ({"checkpoint": {"bytes": "1.5 TB"}}, "checkpoint_size", 1.5e12),
    ({"compute": {"seconds_per_step": "250 ms"}}, "seconds", 0.25),
    ({"compute": {"flop_per_step": "3.2 PFLOP"}}, "flops", 3.2e15),
    ({"compute": {"achieved_per_gpu": "400 TFLOP/s"}}, "rate", 400e12),
    ({"compute": {"seconds_per_step": "2.5e-3"}}, "seconds", 0.0025),
    ({"compute": {"overlap": 0.25}}, "overlap", 0.25),
    ({"compute": {"overlap": [0.2, 0.6]}}, "overlap", 0.4),
    ({"price_per_node_hour": 36}, "price", 0.01),
    ({"model": {"weights": "fp32"}}, "weight_bytes", 4),
]


@pytest.mark.parametrize(("changes", "name", "value"), VALUES)
def test_units(changes: dict[str, Any], name: str, value: float, tmp_path: Path) -> None:
    work, said = loaded(tmp_path, dump(**changes))
    assert work is not None, said
    assert getattr(work, name).value == pytest.approx(value)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"gpus": 8}, "unknown key 'gpus' (did you mean gpu?)"),
    ({"model": {"layer": 3}}, "unknown key 'layer' (did you mean layers?)"),
    ({"gpu": "H1000"}, "'H1000' is none of A100, H100"),
    ({"steps": None}, "steps is missing"),
    ({"steps": 0}, "steps: 0 is no whole number from 1 up"),
    ({"steps": 1.5}, "steps: 1.5 is no whole number"),
    ({"model": {"parameters": "12 GB"}}, "GB measures B, but count was expected"),
    ({"model": {"parameters": -1}}, "-1 is not a quantity"),
    ({"model": {"parameters": float("nan")}}, "is not a quantity"),
    ({"model": [1]}, "model is [1] (expected keys and values below it)"),
    ({"parallelism": {"data": "fsdp2"}}, "'fsdp2' is none of ddp, zero1"),
    ({"parallelism": {"tensor": 3}}, "16 GPUs cannot be split into 3 * 1"),
    ({"parallelism": {"pipeline": 16}, "model": {"layers": 8}}, "16 stages for 8 layers"),
    ({"parallelism": {"expert": 8}}, "expert is above 1, but the model names no experts"),
    ({"parallelism": {"expert": 3}}, "16 data ranks cannot be split into 3 expert groups"),
    ({"model": {"expert_parameters": 2e9}}, "the experts have more parameters than the model"),
    ({"compute": {"overlap": 1.5}}, "1.5 is above 1"),
    ({"compute": {"overlap": [0.6, 0.2]}}, "is no range; expected [low, high]"),
    ({"compute": {"overlap": [0.1]}}, "is no range"),
    ({"compute": {"achieved_per_gpu": "400 TFLOP"}}, "is no rate such as 400 TFLOP/s"),
    ({"compute": {"flop_per_step": "3 PFLOP/s"}}, "is no count such as 3.2 PFLOP"),
    ({"compute": {"seconds_per_step": "3 MB"}}, "MB measures B, but s was expected"),
    ({"checkpoint": {"blocking": "maybe"}}, "'maybe' is neither true nor false"),
    ({"name": 3}, "3 is no text"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG)
def test_mistakes(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    _, said = loaded(tmp_path, dump(**changes))
    assert any(words in line for line in said), said


def test_all_mistakes_at_once_and_where_they_stand(tmp_path: Path) -> None:
    text = "name: x\ngpu: H100\nsteps: many\nmodel: {parameters: 1e+9, layers: 0, hidden: 8}\nparallelism: {nodes: 1, gpus_per_node: 8, tensr: 2}\nbatch: {samples_per_step: 8}\n"
    _, said = loaded(tmp_path, text)
    places = {line.partition(" ")[0] for line in said}
    assert {"3:8", "4:35", "5:43", "6:8"} == places, said


def test_no_such_workload_names_the_nearest(tmp_path: Path) -> None:
    found = Collector()
    assert load_workload("70", found) is None
    assert "shipped are 120b-moe, 12b" in next(iter(found)).help
    assert "did you mean 70b?" in next(iter(found)).help
    for text in ("", "- a\n", "3\n"):
        assert loaded(tmp_path, text)[0] is None


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 10**12), st.floats(), st.text(max_size=8), st.lists(st.floats(0, 2), max_size=3))


@given(st.dictionaries(st.sampled_from(["name", "gpu", "steps", "price_per_node_hour", "other"]), SCALARS), st.dictionaries(st.sampled_from(["parameters", "layers", "hidden", "experts", "weights"]), SCALARS),
       st.dictionaries(st.sampled_from(["nodes", "gpus_per_node", "tensor", "pipeline", "expert", "data"]), SCALARS))
@settings(max_examples=60, deadline=None)
def test_no_file_ends_in_an_exception(top: dict[str, Any], model: dict[str, Any], parallel: dict[str, Any]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        tree = {**GOOD, **top, "model": {**GOOD["model"], **model}, "parallelism": {**GOOD["parallelism"], **parallel}}
        loaded(Path(folder), yaml.safe_dump(tree))
