"""Pinned memory copied to a card and back: the same bytes, and the rate."""

from __future__ import annotations

import time
from typing import Any

SIZE, ROUNDS = 256 * 2**20, 8


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """GB/s from host to device of the first card."""
    import torch

    here = torch.randint(0, 256, (SIZE,), dtype=torch.uint8).pin_memory()
    there = torch.empty(SIZE, dtype=torch.uint8, device="cuda:0")
    there.copy_(here, non_blocking=True)
    torch.cuda.synchronize()
    began = time.monotonic()
    for _ in range(ROUNDS):
        there.copy_(here, non_blocking=True)
    torch.cuda.synchronize()
    rate = SIZE * ROUNDS / (time.monotonic() - began) / 1e9
    if not torch.equal(there.cpu(), here):
        return {"outcome": "wrong", "says": "bytes changed on their way"}
    return {"outcome": "passed", "says": f"{rate:.0f} GB/s", "rate": rate}
