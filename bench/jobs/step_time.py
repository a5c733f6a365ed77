"""Steps of a small training job, timed: sent to the nodes by bench.time_model_lab. Self-contained: standard library and torch.

argv: JSON with mode (compute, ddp, fsdp), layers, hidden, batch, steps, rank, world, address, port. Prints one JSON line with seconds of each step.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import sys
import time
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

# Steps before the clock starts: buckets, meshes and connections are made in the first ones.
WARM = 2


def model_of(order: dict[str, Any]) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(*(nn.Linear(order["hidden"], order["hidden"], bias=False) for _ in range(order["layers"])))


def wrapped(model: nn.Sequential, order: dict[str, Any]) -> nn.Module:
    if order["mode"] == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    if order["mode"] == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (order["world"],))
        for layer in model:
            fully_shard(layer, mesh=mesh, reshard_after_forward=True)
        fully_shard(model, mesh=mesh, reshard_after_forward=True)
    return model


def timed(model: nn.Module, order: dict[str, Any]) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    seconds = []
    for _ in range(WARM + order["steps"]):
        inputs = torch.randn(order["batch"], order["hidden"])
        if order["mode"] != "compute":
            dist.barrier()
        began = time.perf_counter()
        optimizer.zero_grad()
        model(inputs).pow(2).mean().backward()
        optimizer.step()
        if order["mode"] != "compute":
            dist.barrier()
        seconds.append(time.perf_counter() - began)
    return seconds[WARM:]


def main() -> int:
    order = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    group = order["mode"] != "compute"
    if group:
        where = f"tcp://{order['address']}:{order['port']}"
        dist.init_process_group("gloo", init_method=where, rank=order["rank"], world_size=order["world"], timeout=datetime.timedelta(seconds=90))
    seconds = timed(wrapped(model_of(order), order), order)
    print(json.dumps({"rank": order["rank"], "seconds": seconds}), flush=True)
    if group:
        with contextlib.suppress(RuntimeError):
            dist.barrier()
            dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
