"""cuInit, by the driver's library alone."""

from __future__ import annotations

import ctypes
from typing import Any


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """Its result code, and how many devices it counts; `options` holds what NVML counts as `cards`."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return {"outcome": "wrong", "says": str(error)}
    code = driver.cuInit(0)
    count = ctypes.c_int()
    if code == 0:
        code = driver.cuDeviceGetCount(ctypes.byref(count))
    if code:
        return {"outcome": "wrong", "says": f"CUDA error {code}"}
    right = options["visible"] is not None or count.value == options["cards"]
    return {"outcome": "passed" if right else "wrong", "says": f"{count.value} device{'s' if count.value != 1 else ''}"}
