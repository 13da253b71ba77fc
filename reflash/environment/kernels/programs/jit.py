"""A tiny extension, compiled and loaded as the engines build theirs at run time."""

from __future__ import annotations

import tempfile
from typing import Any

SOURCE = """
#include <torch/extension.h>
__global__ void add_one(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += 1.0f; }
void run(torch::Tensor x) { add_one<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), x.numel()); }
"""


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """Needs ninja and nvcc; the caller launches it only where they are."""
    import torch
    from torch.utils.cpp_extension import load_inline

    with tempfile.TemporaryDirectory() as folder:
        built = load_inline(
            "reflash_audit",
            "void run(torch::Tensor x);",
            cuda_sources=SOURCE,
            functions=["run"],
            build_directory=folder,
        )
        x = torch.zeros(1000, device="cuda:0")
        built.run(x)
        right = bool((x == 1).all())
    return {"outcome": "passed" if right else "wrong", "says": "compiled, loaded, launched"}
