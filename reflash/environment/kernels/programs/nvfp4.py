"""An NVFP4 matmul at several sizes, as vLLM runs it: some kernels gave garbage, others zeros at some sizes."""

from __future__ import annotations

import importlib.util
from typing import Any

ROWS = (1, 7, 16, 64, 200, 512)
LARGEST = 448.0 * 6.0  # of a block scale in FP8, of a number in FP4


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """Against the product in bf16: four bits leave a tenth of the norm at most, garbage leaves all of it."""
    import torch
    import vllm

    if importlib.util.find_spec("vllm._custom_ops") is None:
        return {"outcome": "absent", "says": f"vllm {vllm.__version__} has no vllm._custom_ops"}
    ops = importlib.import_module("vllm._custom_ops")
    torch.manual_seed(0)
    weight = torch.randn(256, 512, device="cuda:0", dtype=torch.bfloat16)
    scale_w = LARGEST / weight.abs().max().float()
    w4, w_blocks = ops.scaled_fp4_quant(weight, scale_w)
    for rows in ROWS:
        x = torch.randn(rows, 512, device="cuda:0", dtype=torch.bfloat16)
        scale_x = LARGEST / x.abs().max().float()
        x4, x_blocks = ops.scaled_fp4_quant(x, scale_x)
        made = ops.cutlass_scaled_fp4_mm(x4, w4, x_blocks, w_blocks, 1 / (scale_x * scale_w), torch.bfloat16)
        want = x.float() @ weight.float().t()
        off = ((made.float() - want).norm() / want.norm()).item()
        if not off < 0.25:
            zero = " (all zero)" if not bool(made.any()) else ""
            return {"outcome": "wrong", "says": f"{rows} rows: off by {off:.2f} of the norm{zero}"}
    return {"outcome": "passed", "says": f"{', '.join(map(str, ROWS))} rows"}
