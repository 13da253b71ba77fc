"""A bf16 matmul against the same in 32 bits, and its rate."""

from __future__ import annotations

import time
from typing import Any

SIZE, ROUNDS = 4096, 50


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """TFLOP/s of a square matmul, once its numbers are right on every card."""
    import torch

    for device in range(torch.cuda.device_count()):
        torch.manual_seed(0)
        a = torch.randn(512, 1024, device=f"cuda:{device}", dtype=torch.bfloat16)
        b = torch.randn(1024, 256, device=f"cuda:{device}", dtype=torch.bfloat16)
        want = a.cpu().float() @ b.cpu().float()
        off = ((a @ b).cpu().float() - want).abs().max().item() / want.abs().max().item()
        if not off < 0.02:  # NaN is not
            return {"outcome": "wrong", "says": f"GPU {device}: off by {off:.3g} of the largest number"}
    a = torch.randn(SIZE, SIZE, device="cuda:0", dtype=torch.bfloat16)
    for _ in range(5):
        a @ a
    torch.cuda.synchronize()
    began = time.monotonic()
    for _ in range(ROUNDS):
        a @ a
    torch.cuda.synchronize()
    rate = 2 * SIZE**3 * ROUNDS / (time.monotonic() - began) / 1e12
    return {"outcome": "passed", "says": f"{rate:.0f} TFLOP/s", "rate": rate}
