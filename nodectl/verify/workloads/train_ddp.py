"""A tiny real training job: data-parallel steps over whatever nodes were handed off. Launched by torchrun, reads its environment.

Self-contained: standard library and torch, Python 3.8. Rank 0 prints world size and loss; a rank that is missing ends the job
within a minute instead of torch's 30. Exit code 0 only when the loss fell and all ranks hold the same weights.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

# A minute: gloo or NCCL connects within seconds, and nobody should wait 30 minutes (torch's default) for a dead peer.
TIMEOUT = datetime.timedelta(seconds=60)
FEATURES = 32
BATCH = 64


def target(inputs: torch.Tensor) -> torch.Tensor:
    """What is to be learned: smooth, so that a few steps of SGD show a falling loss."""
    return torch.sin(inputs.sum(dim=1, keepdim=True) / FEATURES**0.5)


def train(model: nn.Module, device: torch.device, steps: int, rank: int) -> "list[float]":
    """The mean loss over all ranks, per step. Each rank draws its own data."""
    draw = torch.Generator().manual_seed(1000 + rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(steps):
        inputs = torch.randn(BATCH, FEATURES, generator=draw).to(device)
        loss: Any = nn.functional.mse_loss(model(inputs), target(inputs))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(float(mean) / dist.get_world_size())
        if rank == 0:
            print(f"step {step + 1}/{steps} loss {losses[-1]:.4f}", flush=True)
    return losses


def same_weights(model: nn.Module) -> bool:
    """True when every rank holds the weights of rank 0: that is what DDP promises."""
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    first = flat.clone()
    dist.broadcast(first, src=0)
    differs = (flat != first).sum().to(torch.float64)
    dist.all_reduce(differs)
    return float(differs) == 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description="tiny data-parallel training job")
    parser.add_argument("--steps", type=int, default=20)
    steps = parser.parse_args().steps
    cuda = torch.cuda.is_available()
    local = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    dist.init_process_group("nccl" if cuda else "gloo", timeout=TIMEOUT)
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        print(f"world size {world}, backend {dist.get_backend()}, torch {torch.__version__}", flush=True)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(FEATURES, 64), nn.Tanh(), nn.Linear(64, 1)).to(device))
    losses = train(model, device, steps, rank)
    agreed = same_weights(model)
    fell = len(losses) < 2 or losses[-1] < losses[0]
    if rank == 0:
        print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, weights equal on all ranks: {'yes' if agreed else 'NO'}", flush=True)
    # Nobody leaves while a peer still talks.
    dist.barrier()
    return 0 if agreed and fell else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Not sys.exit: taking gloo's threads down at the interpreter's end aborted two of three ranks once ("terminate called without
    # an active exception"), after a training that had gone well.
    os._exit(code)
