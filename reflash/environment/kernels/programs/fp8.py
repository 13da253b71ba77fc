"""An FP8 matmul with scales, as torch runs it."""

from __future__ import annotations

from typing import Any


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """Against the product of the same rounded numbers."""
    import torch

    torch.manual_seed(0)
    kind = torch.float8_e4m3fn
    for rows in (16, 256):
        a = torch.randn(rows, 512, device="cuda:0").to(kind)
        b = torch.randn(256, 512, device="cuda:0").to(kind)
        one = torch.tensor(0.5, device="cuda:0")
        made = torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        want = a.cpu().float() @ b.cpu().float().t() * 0.25
        off = (made.cpu().float() - want).abs().max().item() / want.abs().max().item()
        if not off < 0.02:
            return {"outcome": "wrong", "says": f"{rows} rows: off by {off:.3g} of the largest number"}
    return {"outcome": "passed", "says": "16 and 256 rows"}
