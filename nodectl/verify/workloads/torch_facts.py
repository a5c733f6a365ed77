"""What the torch interpreter of a node has: one line of JSON. Self-contained: standard library and torch, Python 3.8."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
import torch.distributed as dist


def main() -> None:
    cuda = torch.cuda.is_available()
    nccl: Any = torch.cuda.nccl
    count = torch.cuda.device_count() if cuda else 0
    facts = {
        "kind": "torch",
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "cuda": torch.version.cuda or "",
        "gpus": count,
        "names": [torch.cuda.get_device_name(index) for index in range(count)],
        "nccl": ".".join(map(str, nccl.version())) if cuda and dist.is_nccl_available() else "",
        "gloo": dist.is_gloo_available(),
    }
    print("NODECTL " + json.dumps(facts))


if __name__ == "__main__":
    main()
