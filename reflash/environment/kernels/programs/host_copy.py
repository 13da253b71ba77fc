"""Pinned memory copied to every card and back: the same bytes, and the rate."""

from __future__ import annotations

import time
from typing import Any

SIZE, ROUNDS = 256 * 2**20, 8


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """GB/s from host to device of the slowest card."""
    import torch

    here = torch.randint(0, 256, (SIZE,), dtype=torch.uint8).pin_memory()
    rates = []
    for device in range(torch.cuda.device_count()):
        there = torch.empty(SIZE, dtype=torch.uint8, device=f"cuda:{device}")
        there.copy_(here, non_blocking=True)
        torch.cuda.synchronize(device)
        began = time.monotonic()
        for _ in range(ROUNDS):
            there.copy_(here, non_blocking=True)
        torch.cuda.synchronize(device)
        rates.append(SIZE * ROUNDS / (time.monotonic() - began) / 1e9)
        if not torch.equal(there.cpu(), here):
            return {"outcome": "wrong", "says": f"GPU {device}: bytes changed on their way"}
    slowest = min(rates)
    where = f", the slowest GPU {rates.index(slowest)}" if len(rates) > 1 else ""
    return {"outcome": "passed", "says": f"{slowest:.0f} GB/s{where}", "rate": slowest}
