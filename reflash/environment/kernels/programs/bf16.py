"""A bf16 matmul on every card against the same in 32 bits, and its rate."""

from __future__ import annotations

import time
from typing import Any

SIZE, AT_ONCE, WINDOW_S, WINDOWS = 8192, 10, 0.2, 4  # a card's clocks have risen by the second window


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """TFLOP/s of the slowest card, once the numbers of all are right."""
    import torch

    rates = []
    for device in range(torch.cuda.device_count()):
        torch.manual_seed(0)
        a = torch.randn(512, 1024, device=f"cuda:{device}", dtype=torch.bfloat16)
        b = torch.randn(1024, 256, device=f"cuda:{device}", dtype=torch.bfloat16)
        want = a.cpu().float() @ b.cpu().float()
        off = ((a @ b).cpu().float() - want).abs().max().item() / want.abs().max().item()
        if not off < 0.02:  # NaN is not
            return {"outcome": "wrong", "says": f"GPU {device}: off by {off:.3g} of the largest number"}
        rates.append(max(_rate(device) for _ in range(WINDOWS)))
    slowest = min(rates)
    where = f", the slowest GPU {rates.index(slowest)}" if len(rates) > 1 else ""
    return {"outcome": "passed", "says": f"{slowest:.0f} TFLOP/s{where}", "rate": slowest}


def _rate(device: int) -> float:
    import torch

    a = torch.randn(SIZE, SIZE, device=f"cuda:{device}", dtype=torch.bfloat16)
    done, began = 0, time.monotonic()
    while time.monotonic() - began < WINDOW_S:
        for _ in range(AT_ONCE):
            a @ a
        torch.cuda.synchronize(device)
        done += AT_ONCE
    return 2 * SIZE**3 * done / (time.monotonic() - began) / 1e12
