"""What the GPUs' own counters say before and after a measurement: energy, memory, bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TWICE = 2  # transfers a clock of the memory, as NVML gives its clock


@dataclass(frozen=True, slots=True)
class GpuLook:
    """One look at one GPU."""

    uuid: str
    name: str
    used: int  # bytes of memory
    joules: float | None  # since the driver was loaded
    bandwidth: float | None  # bytes a second of its memory at its highest clock


def look() -> list[GpuLook]:
    """Every GPU of this machine; none where there is no driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return [_one(pynvml, pynvml.nvmlDeviceGetHandleByIndex(n)) for n in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:  # a card that fell off the bus takes the list with it
        return []
    finally:
        pynvml.nvmlShutdown()


def used_between(before: Sequence[GpuLook], after: Sequence[GpuLook], uuids: Sequence[str]) -> float | None:
    """Joules of these GPUs between two looks; None where one of them does not count."""
    then = {gpu.uuid: gpu.joules for gpu in before}
    total = 0.0
    for gpu in after:
        if gpu.uuid in uuids:
            first = then.get(gpu.uuid)
            if gpu.joules is None or first is None:
                return None
            total += gpu.joules - first
    return total if uuids else None


def _one(nvml: Any, card: Any) -> GpuLook:
    memory = nvml.nvmlDeviceGetMemoryInfo(card)
    return GpuLook(nvml.nvmlDeviceGetUUID(card), nvml.nvmlDeviceGetName(card), memory.used, *_counters(nvml, card))


def _counters(nvml: Any, card: Any) -> tuple[float | None, float | None]:
    """Energy and bandwidth, each None where the card does not tell it."""
    try:
        joules: float | None = nvml.nvmlDeviceGetTotalEnergyConsumption(card) / 1000
    except nvml.NVMLError:
        joules = None
    try:
        clock = nvml.nvmlDeviceGetMaxClockInfo(card, nvml.NVML_CLOCK_MEM) * 1e6
        bandwidth: float | None = clock * TWICE * nvml.nvmlDeviceGetMemoryBusWidth(card) / 8
    except nvml.NVMLError:
        bandwidth = None
    return joules, bandwidth
