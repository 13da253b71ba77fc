"""One thing broken in an environment: its interpreter imports this as it starts, and REFLASH_PLANTED says what breaks.

Nothing but the standard library is needed. What is broken is what a program leans on, never the program itself.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

GIB = 2**30
FEW_CYCLES = 60_000_000_000  # half a minute of a GPU that only counts: it ends by itself, whatever becomes of us


@dataclass(frozen=True, slots=True)
class Fault:
    """What breaks, and which program is to notice."""

    name: str
    kernel: str
    outcome: str  # what must come of the program
    module: str  # broken once it is imported; "" for at once
    plant: Callable[[Any], None]
    alone: bool = False  # it takes what others need


def refuse_driver(_: None) -> None:
    """The driver's library answers CUDA error 999 to everything."""
    load = ctypes.CDLL

    class Driver:
        cuInit = cuDeviceGetCount = staticmethod(lambda *_: 999)

    ctypes.CDLL = lambda name, *a, **k: Driver if name == "libcuda.so.1" else load(name, *a, **k)  # type: ignore


def wrap_matmul(change: Callable[[Any, Any], Any]) -> Callable[[Any], None]:
    """Every product of matrices on a GPU goes through `change(torch, product)`."""

    def plant(torch: Any) -> None:
        real = torch.Tensor.__matmul__
        torch.Tensor.__matmul__ = lambda a, b: change(torch, real(a, b)) if a.is_cuda else real(a, b)

    return plant


def never_ends(torch: Any, product: Any) -> Any:
    """The GPU is busy with nothing."""
    torch.cuda._sleep(FEW_CYCLES)
    return product


def takes_the_gpu(torch: Any, product: Any) -> Any:
    """Memory of the GPU is taken until it is refused."""
    held = []
    while True:
        held.append(torch.empty(4 * GIB, dtype=torch.uint8, device=product.device))


def flip(torch: Any) -> None:
    """One bit changes on the way to a GPU."""
    real = torch.Tensor.copy_

    def copy(self: Any, source: Any, **how: Any) -> Any:
        made = real(self, source, **how)
        if self.is_cuda:
            self[self.numel() // 2] ^= 1
        return made

    torch.Tensor.copy_ = copy


def takes_the_host(torch: Any) -> None:
    """Memory of the host is taken, and never enough."""

    def pin(_: Any) -> Any:
        held = []
        while True:
            held.append(b"x" * 2**27)
            time.sleep(0.02)

    torch.Tensor.pin_memory = pin


def ask_too_much(jit: Any) -> None:
    """Every Triton kernel wants more shared memory than a card has."""
    real = jit.JITFunction.run
    jit.JITFunction.run = lambda self, *a, **k: real(self, *a, **{**k, "num_stages": 16})


def change_triton(jit: Any) -> None:
    """A Triton kernel is compiled for half the depth: the rest of the sum is lost."""
    real = jit.JITFunction.run
    jit.JITFunction.run = lambda self, a, b, c, k, *more, **how: real(self, a, b, c, k // 2, *more, **how)


def stale(torch: Any) -> None:
    """A graph that is replayed does nothing."""
    torch.cuda.CUDAGraph.replay = lambda _: None


def crash(torch: Any) -> None:
    """A graph that is replayed writes where nothing is."""
    torch.cuda.CUDAGraph.replay = lambda _: ctypes.memset(1, 0, 1)


def shrink(name: str) -> Callable[[Any], None]:
    """A function of a module gives nine tenths of what it should; of a pair, the first."""

    def plant(module: Any) -> None:
        real = getattr(module, name)

        def less(*a: Any, **k: Any) -> Any:
            made = real(*a, **k)
            return (made[0] * 0.9, *made[1:]) if isinstance(made, tuple) else made * 0.9

        setattr(module, name, less)

    return plant


def refuse_memory(module: Any) -> None:
    """Nothing of the GPU is left for the autotuner."""
    import torch

    def ask(*a: Any, **_: Any) -> Any:
        return takes_the_gpu(torch, a[0])

    module.chunk_gated_delta_rule = ask


def break_ninja(_: None) -> None:
    """The ninja that comes first on the PATH fails."""
    folder = Path(tempfile.mkdtemp())
    (folder / "ninja").write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 1.13 && exit 0\necho 'ninja: killed' >&2\nexit 1\n"
    )
    (folder / "ninja").chmod(stat.S_IRWXU)
    os.environ["PATH"] = f"{folder}:{os.environ.get('PATH', '')}"


GATED = "vllm.third_party.flash_linear_attention.ops"
FAULTS = (
    Fault("cuinit-refused", "cuinit", "wrong", "", refuse_driver),
    Fault("bf16-off", "bf16", "wrong", "torch", wrap_matmul(lambda _, made: made * 0.9)),
    Fault("bf16-zero", "bf16", "wrong", "torch", wrap_matmul(lambda _, made: made * 0)),
    Fault("bf16-hang", "bf16", "hung", "torch", wrap_matmul(never_ends)),
    Fault("host-copy-flip", "host_copy", "wrong", "torch", flip),
    Fault("host-copy-eater", "host_copy", "memory", "torch", takes_the_host),
    Fault("triton-shared-memory", "triton", "raised", "triton.runtime.jit", ask_too_much),
    Fault("triton-off", "triton", "wrong", "triton.runtime.jit", change_triton),
    Fault("graph-stale", "graph", "wrong", "torch", stale),
    Fault("graph-segfault", "graph", "crashed", "torch", crash),
    Fault("fp8-off", "fp8", "wrong", "torch", shrink("_scaled_mm")),
    Fault("jit-ninja", "jit", "raised", "", break_ninja),
    Fault("flash-attention-off", "flash_attention", "wrong", "vllm.vllm_flash_attn", shrink("flash_attn_varlen_func")),
    Fault("gated-delta-off", "gated_delta", "wrong", GATED, shrink("chunk_gated_delta_rule")),
    Fault("gated-delta-memory", "gated_delta", "memory", GATED, refuse_memory, alone=True),
    Fault("bf16-gpu-eater", "bf16", "memory", "torch", wrap_matmul(takes_the_gpu), alone=True),
)


class After:
    """A finder that breaks one module right after it was loaded."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """The spec that the others find, with a loader that breaks."""
        if name != self.fault.module:
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_break(module: ModuleType) -> None:
            load(module)
            self.fault.plant(module)

        spec.loader.exec_module = load_and_break  # type: ignore[method-assign]
        return spec


def plant(name: str) -> None:
    """Break what a fault of this name breaks."""
    fault = next(fault for fault in FAULTS if fault.name == name)
    if fault.module:
        sys.meta_path.insert(0, After(fault))  # type: ignore[arg-type]
    else:
        fault.plant(None)


if os.environ.get("REFLASH_PLANTED"):
    plant(os.environ["REFLASH_PLANTED"])
