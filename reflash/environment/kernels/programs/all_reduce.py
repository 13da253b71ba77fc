"""A sum over two ranks by NCCL, each a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from typing import Any


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """Both must hold the sum; the caller ends them all where they hang."""
    import torch

    if torch.cuda.device_count() < 2:
        return {"outcome": "absent", "says": "one GPU is visible"}
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-I", __file__]
        ranks = [subprocess.Popen([*argv, str(rank), f"file://{folder}/meet"]) for rank in range(2)]
        codes = [rank.wait() for rank in ranks]
    if any(codes):
        return {"outcome": "wrong", "says": f"ranks ended with {codes[0]} and {codes[1]}"}
    return {"outcome": "passed", "says": "two ranks agree"}


def join(rank: int, meeting: str) -> None:
    """One rank: raises where its sum is wrong."""
    import torch
    import torch.distributed as group

    torch.cuda.set_device(rank)
    group.init_process_group("nccl", init_method=meeting, rank=rank, world_size=2)
    held = torch.full((2**20,), float(rank + 1), device=f"cuda:{rank}")
    group.all_reduce(held)
    torch.cuda.synchronize()
    if not bool((held == 3).all()):
        raise ValueError(f"rank {rank} holds {held[0].item()}, not 3")
    group.destroy_process_group()


if __name__ == "__main__":
    join(int(sys.argv[1]), sys.argv[2])
