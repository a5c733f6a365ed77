"""A workload file in, a Workload out; all its mistakes at once, each at its place. Pure but for the reading of the file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from nodectl.advise.assumptions import assume
from nodectl.advise.fields import FIELDS, NEEDED, Field
from nodectl.advise.figure import Figure, derive
from nodectl.advise.layout import Layout
from nodectl.advise.workload import Workload
from nodectl.diagnostics.model import Collector
from nodectl.lang.document import Map, load
from nodectl.verify.judging.units import UnitError, quantity
from nodectl.wire.origin import Origin

SHIPPED = Path(__file__).parent / "workloads"
_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}
_FLOP = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([kMGTPE]?)FLOP(/s|s)?\s*")
_EXPONENT = re.compile(r"[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]{1,3}")
_PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_UNITS = {"bytes": "B", "time": "s", "share": "1", "flop": "FLOP", "flops": "FLOP/s", "number": "count", "count": "count", "money": "money/s"}


def shipped() -> list[str]:
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def load_workload(name_or_path: str, found: Collector) -> Workload | None:
    """A shipped workload by name, or a YAML file by path. None where something is wrong: then it stands in ``found``."""
    path = SHIPPED / f"{name_or_path}.yaml" if name_or_path in shipped() else Path(name_or_path)
    if name_or_path not in shipped() and not path.exists():
        near = get_close_matches(name_or_path, shipped(), 1)
        hint = f"did you mean {near[0]}? " if near else ""
        found.error("E411", f"no workload {name_or_path!r}", None, help=f"{hint}shipped are {', '.join(shipped())}; or give the path of a YAML file")
        return None
    tree = load(path, found)
    if not isinstance(tree, Map):
        if not found.errors:
            found.error("E411", f"{path} holds no mapping", Origin(str(path), 1, 1), label="expected name, model, parallelism, batch …")
        return None
    reader = _Reader(found)
    values = reader.read(tree)
    if found.errors:
        return None
    work = _Builder(values, reader.at, str(path.name)).build()
    _check(work, reader.at, found)
    return None if found.errors else work


class _Reader:
    """Values by (section, key), in base units; ranges as (low, value, high)."""

    def __init__(self, found: Collector) -> None:
        self.found = found
        self.at: dict[tuple[str, str], Origin] = {}

    def read(self, tree: Map) -> dict[tuple[str, str], Any]:
        values = self.section(tree, "", tree.origin)
        for name in (name for name, field in FIELDS[""].items() if field.kind == "section"):
            part = tree.get(name, Map(tree.origin))
            if isinstance(part, Map):
                values.update(self.section(part, name, tree.value_at.get(name, tree.origin)))
            else:
                self.wrong(f"{name} is {part!r}", tree.value_at[name], "expected keys and values below it")
        return values

    def section(self, part: Map, name: str, at: Origin) -> dict[tuple[str, str], Any]:
        fields, values = FIELDS[name], {}
        for key in part:
            if key not in fields:
                near = get_close_matches(str(key), fields, 1)
                self.wrong(f"unknown key {key!r}", part.key_at[key], f"did you mean {near[0]}?" if near else f"expected some of {', '.join(fields)}")
        for key, field in fields.items():
            if field.kind == "section":
                continue
            if key in part:
                self.at[name, key] = part.value_at[key]
                values[name, key] = self.value(part[key], field, part.value_at[key], key)
            elif field.default is NEEDED:
                self.wrong(f"{name + ': ' if name else ''}{key} is missing", at, f"{key} has to be said")
            else:
                values[name, key] = field.default
        return values

    def value(self, given: Any, field: Field, at: Origin, key: str) -> Any:
        try:
            return _parsed(given, field)
        except (UnitError, ValueError) as error:
            self.wrong(f"{key}: {error}", at, f"expected {_EXPECTED[field.kind]}")
            return None

    def wrong(self, message: str, at: Origin, label: str) -> None:
        self.found.error("E411", message, at, label=label)


_EXPECTED = {
    "yes": "true or false", "word": "one of the words", "text": "a text", "share": "a share from 0 to 1", "flop": "a count such as 3.2 PFLOP",
    "flops": "a rate such as 400 TFLOP/s", "bytes": "bytes such as 24 GB", "time": "a time such as 4.4 s", "count": "a whole number", "number": "a number",
    "money": "an amount",
}  # fmt: skip


def _parsed(given: Any, field: Field) -> Any:
    """Raises ValueError, UnitError."""
    if field.kind == "yes":
        if not isinstance(given, bool):
            raise ValueError(f"{given!r} is neither true nor false")
        return given
    if field.kind in ("word", "text"):
        if not isinstance(given, str) or (field.words and given not in field.words):
            raise ValueError(f"{given!r} is none of {', '.join(field.words)}" if field.words else f"{given!r} is no text")
        return given
    if field.kind == "share" and isinstance(given, list):
        if len(given) != 2 or not all(isinstance(end, (int, float)) and 0 <= end <= 1 for end in given) or given[0] > given[1]:
            raise ValueError(f"{list(given)!r} is no range; expected [low, high] between 0 and 1")
        return (float(given[0]), (given[0] + given[1]) / 2, float(given[1]))
    return _number(given, field.kind)


def _number(given: Any, kind: str) -> float:
    if kind in ("flop", "flops"):
        value = _flop(given, kind)
    elif kind == "share":
        value = quantity(given, "count")
        if value > 1:
            raise ValueError(f"{given!r} is above 1; a share lies between 0 and 1")
    else:
        # YAML takes 12.2e9 for a text: its numbers have a sign before the exponent.
        plain = float(given) if isinstance(given, str) and _EXPONENT.fullmatch(given) else given
        value = quantity(plain, {"bytes": "B", "time": "s"}.get(kind, "count"))
    if kind == "count" and (value < 1 or not value.is_integer()):
        raise ValueError(f"{given!r} is no whole number from 1 up")
    if kind in ("number", "bytes", "flop", "flops") and value <= 0:
        raise ValueError(f"{given!r} is not above zero")
    return value


def _flop(given: Any, kind: str) -> float:
    found = _FLOP.fullmatch(given) if isinstance(given, str) else None
    if found is None or bool(found.group(3)) != (kind == "flops") or not math.isfinite(float(found.group(1))):
        raise ValueError(f"{given!r} is no {'rate such as 400 TFLOP/s' if kind == 'flops' else 'count such as 3.2 PFLOP'}")
    return float(found.group(1)) * _PREFIX[found.group(2)]


class _Builder:
    """Makes figures of values; what the file leaves out is assumed by name, or follows from what it says."""

    def __init__(self, values: Mapping[tuple[str, str], Any], at: Mapping[tuple[str, str], Origin], file: str) -> None:
        self.values = values
        self.at = at
        self.file = file

    def get(self, section: str, key: str) -> Any:
        return self.values[section, key]

    def figure(self, section: str, key: str, name: str) -> Figure | None:
        value, kind = self.get(section, key), FIELDS[section][key].kind
        if value is None:
            return None
        if isinstance(value, str) and value.startswith("="):
            return assume(value[1:])
        origin = self.at.get((section, key))
        how = f"{self.file}:{origin.line}" if origin else f"{self.file}: not said, so as by default"
        low, middle, high = value if isinstance(value, tuple) else (value, value, value)
        scale = 1 / 3600 if kind == "money" else 1.0
        return Figure(name, middle * scale, _UNITS[kind], how, "workload", (), low * scale, high * scale)

    def sure(self, section: str, key: str, name: str) -> Figure:
        figure = self.figure(section, key, name)
        return figure if figure is not None else Figure(name, 0.0, _UNITS[FIELDS[section][key].kind], f"{self.file}: not said, so none", "workload")

    def width(self, key: str, name: str) -> Figure:
        word = self.get("model", key) or self.get("model", "weights")
        return Figure(name, float(_BYTES[word]), "B", f"{self.file}: {key} {word}", "workload")

    def build(self) -> Workload:
        get, parameters = self.get, self.sure("model", "parameters", "parameters")
        data, weights = str(get("parallelism", "data")), self.width("weights", "bytes per parameter")
        layout = Layout(*(int(get("parallelism", key)) for key in ("nodes", "gpus_per_node", "tensor", "expert", "pipeline")))
        samples = self.sure("batch", "samples_per_step", "samples per step")
        length = self.sure("batch", "tokens_per_sample", "tokens per sample")
        return Workload(
            name=get("", "name"), gpu=get("", "gpu"), layout=layout, data="fsdp" if data == "zero3" else data,
            reshard=get("parallelism", "reshard_after_forward"),
            micro_batches=int(get("batch", "micro_batches")), layers=int(get("model", "layers")), hidden=self.sure("model", "hidden", "hidden size"),
            parameters=parameters, active=self.figure("model", "active_parameters", "parameters used for a token") or parameters, weight_bytes=weights,
            gradient_bytes=self.width("gradients", "bytes per gradient"), activation_bytes=self.width("weights", "bytes per activation"),
            experts=int(get("model", "experts") or 0), top_k=int(get("model", "experts_per_token")),
            expert_layers=int(get("model", "expert_layers") or get("model", "layers")),
            expert_parameters=self.sure("model", "expert_parameters", "parameters of experts"),
            tokens=derive("tokens per step", "count", "samples per step * tokens per sample", lambda a, b: a * b, [samples, length]), samples=samples,
            recompute=get("compute", "activation_checkpointing"), seconds=self.figure("compute", "seconds_per_step", "compute of a step"),
            flops=self.figure("compute", "flop_per_step", "FLOP of a step"), rate=self.figure("compute", "achieved_per_gpu", "FLOP/s that a GPU reaches"),
            overlap=self.sure("compute", "overlap", "overlap"), steps=int(get("", "steps")), price=self.figure("", "price_per_node_hour", "price of a node"),
            **self.storage(parameters, weights),
        )

    def storage(self, parameters: Figure, weights: Figure) -> dict[str, Any]:
        get = self.get

        def size(name: str, each: Figure) -> Figure:
            return derive(name, "B", f"parameters * {each.name}", lambda count, width: count * width, [parameters, each])

        steps, state = int(get("", "steps")), assume("state_bytes_per_parameter")
        return {
            "sample_size": self.figure("dataset", "sample_bytes", "bytes of a sample"), "random": get("dataset", "access") == "random",
            "dataset_size": self.figure("dataset", "bytes", "bytes of the dataset"), "cache": self.figure("constraints", "cache", "cache of a place"),
            "read_ahead": self.sure("dataset", "read_ahead", "read_ahead"),
            "checkpoint_size": self.figure("checkpoint", "bytes", "bytes of a checkpoint") or size("bytes of a checkpoint", state),
            "interval": int(get("checkpoint", "interval_steps") or steps), "blocking": get("checkpoint", "blocking"),
            "save_overhead": self.sure("checkpoint", "overhead", "gathering and serialising a checkpoint"),
            "model_size": self.figure("model_load", "bytes", "bytes of the model") or size("bytes of the model", weights),
            "load_overhead": self.sure("model_load", "overhead", "building the model"),
            "durable": get("constraints", "durable"), "same_place": get("constraints", "model_and_checkpoints_together"),
            "capacity": self.figure("constraints", "capacity", "capacity asked for"),
        }


def _check(work: Workload, at: Mapping[tuple[str, str], Origin], found: Collector) -> None:
    """What only the values together show."""
    layout, place = work.layout, at.get(("parallelism", "nodes"))
    if layout.ranks % (layout.tensor * layout.pipeline):
        what = f"{layout.ranks} GPUs cannot be split into {layout.tensor} * {layout.pipeline} (tensor * pipeline)"
        found.error("E411", what, place, label="nodes * gpus_per_node must be a multiple of tensor * pipeline")
    elif layout.data % layout.expert:
        what = f"{layout.data} data ranks cannot be split into {layout.expert} expert groups"
        found.error("E411", what, at.get(("parallelism", "expert")), label="must divide the data ranks")
    if layout.pipeline > work.layers:
        found.error("E411", f"{layout.pipeline} stages for {work.layers} layers", at.get(("parallelism", "pipeline")), label="at most one stage per layer")
    if layout.expert > 1 and (not work.experts or not work.expert_parameters.value):
        label = "model: experts and expert_parameters have to be said"
        found.error("E411", "expert is above 1, but the model names no experts", at.get(("parallelism", "expert")), label=label)
    if work.expert_parameters.value > work.parameters.value:
        found.error("E411", "the experts have more parameters than the model", at.get(("model", "expert_parameters")), label="at most parameters")
