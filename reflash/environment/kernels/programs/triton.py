"""A Triton matmul whose tiles take 96 KiB of shared memory: SM12x has 101,376 bytes."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


# Triton reads annotations as types of its own: those of Python end its compiler.
@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _matmul(a, b, c, k, tile: tl.constexpr, deep: tl.constexpr):  # type: ignore[no-untyped-def]
    rows, columns, inner = tl.arange(0, tile), tl.arange(0, tile), tl.arange(0, deep)
    total = tl.zeros((tile, tile), dtype=tl.float32)
    for at in range(0, k, deep):
        left = tl.load(a + rows[:, None] * k + (at + inner)[None, :])
        right = tl.load(b + (at + inner)[:, None] * tile + columns[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * tile + columns[None, :], total)


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """One tile of 128 by 128 over 1,024, with three stages of 32 KiB."""
    torch.manual_seed(0)
    tile, k = 128, 1024
    a = torch.randn(tile, k, device="cuda:0", dtype=torch.bfloat16)
    b = torch.randn(k, tile, device="cuda:0", dtype=torch.bfloat16)
    c = torch.empty(tile, tile, device="cuda:0")
    compiled = _matmul[(1,)](a, b, c, k, tile, 64, num_stages=3, num_warps=8)
    want = a.cpu().float() @ b.cpu().float()
    off = (c.cpu() - want).abs().max().item() / want.abs().max().item()
    if not off < 0.02:
        return {"outcome": "wrong", "says": f"off by {off:.3g} of the largest number"}
    return {"outcome": "passed", "says": f"{compiled.metadata.shared} bytes of shared memory"}
