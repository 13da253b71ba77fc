"""A tiny extension, compiled and loaded as the engines build theirs at run time: by torch, ninja and nvcc."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path
from typing import Any

# No header of torch: with one, this takes most of a minute.
SOURCE = """
__global__ void add_one(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += 1.0f; }
extern "C" int run(float* x, int n) { add_one<<<(n + 255) / 256, 256>>>(x, n); return cudaDeviceSynchronize(); }
"""


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """Needs ninja and nvcc; the caller launches it only where they are."""
    import torch
    from torch.utils.cpp_extension import load

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "add_one.cu"
        source.write_text(SOURCE)
        load("reflash_audit", [str(source)], build_directory=folder, is_python_module=False)
        built = ctypes.CDLL(str(next(Path(folder).glob("*.so"))))
        x = torch.zeros(1000, device="cuda:0")
        torch.cuda.synchronize()
        code = built.run(ctypes.c_void_p(x.data_ptr()), 1000)
        right = code == 0 and bool((x == 1).all())
    says = "compiled, loaded, launched" if right else f"launched with CUDA error {code}, x[0] = {x[0].item()}"
    return {"outcome": "passed" if right else "wrong", "says": says}
