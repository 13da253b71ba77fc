"""NVIDIA's cards and their driver, asked through NVML: nothing is started on a GPU."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from reflash.environment.facts import Card, Driver, Process

MODULE = Path("/proc/driver/nvidia/version")
UVM = Path("/dev/nvidia-uvm")
# Bits of nvmlDeviceGetCurrentClocksEventReasons that hold a card back.
REASONS = {0x4: "sw-power-cap", 0x8: "hw-slowdown", 0x20: "sw-thermal", 0x40: "hw-thermal", 0x80: "hw-power-brake"}
MODES = {0: "default", 1: "exclusive-thread", 2: "prohibited", 3: "exclusive-process"}
RECOVERY = {
    0: "none",
    1: "reset the GPU",
    2: "reboot",
    3: "drain peer-to-peer",
    4: "drain and reset",
    5: "recover the IMEX domain",
    6: "reset the bus",
    7: "reboot the system",
}
LEVELS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}


class Cards(Protocol):
    """Whoever knows the GPUs of a machine."""

    def read(self) -> tuple[Driver, tuple[Card, ...]]:
        """The driver and all cards in the order of the PCI bus; a driver that is not there is a fact."""


class NvmlCards:
    """Through the binding of nvidia-ml-py."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self.environment = environment

    def read(self) -> tuple[Driver, tuple[Card, ...]]:
        """The driver and all cards; blocks for some milliseconds a card."""
        import pynvml

        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            return Driver(
                error=_name(error), module=_module(), visible=self.environment.get("CUDA_VISIBLE_DEVICES")
            ), ()
        try:
            return self._driver(pynvml), self._cards(pynvml)
        except pynvml.NVMLError as error:  # a card that fell off the bus takes the list with it
            return Driver(error=_name(error), module=_module()), ()
        finally:
            pynvml.nvmlShutdown()

    def _driver(self, nvml: Any) -> Driver:
        cuda = nvml.nvmlSystemGetCudaDriverVersion()
        paths = self.environment.get("LD_LIBRARY_PATH", "").split(":")
        return Driver(
            version=nvml.nvmlSystemGetDriverVersion(),
            cuda=f"{cuda // 1000}.{cuda % 1000 // 10}",
            module=_module(),
            uvm=os.access(UVM, os.R_OK | os.W_OK),
            compat=tuple(p for p in paths if p and Path(p).name == "compat" and any(Path(p).glob("libcuda.so*"))),
            visible=self.environment.get("CUDA_VISIBLE_DEVICES"),
        )

    def _cards(self, nvml: Any) -> tuple[Card, ...]:
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        log = _kernel_log()
        return tuple(_card(nvml, index, handles, log) for index in range(len(handles)))


def _card(nvml: Any, index: int, handles: list[Any], log: str | None) -> Card:
    handle = handles[index]
    unsupported: list[str] = []

    def ask(field: str, read: Callable[[], Any]) -> Any:
        """None where it fails; a card that does not have it says NotSupported, an old driver FunctionNotFound."""
        try:
            return read()
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound, nvml.NVMLLibraryMismatchError):
            unsupported.append(field)
        except nvml.NVMLError:
            pass
        return None

    rows = ask("remap_failed", lambda: nvml.nvmlDeviceGetRemappedRows(handle))
    if rows is None and "remap_failed" in unsupported:
        unsupported.append("remap_pending")
    capability = ask("capability", lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
    told = {field: ask(field, partial(read, nvml, handle)) for field, read in READS.items()}
    return Card(
        index=index,
        uuid=nvml.nvmlDeviceGetUUID(handle),
        name=nvml.nvmlDeviceGetName(handle),
        memory=nvml.nvmlDeviceGetMemoryInfo(handle).total,
        capability=".".join(map(str, capability)) if capability else None,
        remap_pending=bool(rows[2]) if rows else None,
        remap_failed=bool(rows[3]) if rows else None,
        xids=None if log is None else ask("xids", lambda: events_of(log, nvml.nvmlDeviceGetPciInfo(handle).busId)),
        links=_links(nvml, index, handles),
        unsupported=tuple(unsupported),
        **told,
    )


def _recovery(nvml: Any, handle: Any) -> str:
    value = nvml.nvmlDeviceGetFieldValues(handle, [nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])[0]
    if value.nvmlReturn != nvml.NVML_SUCCESS:
        raise nvml.NVMLError(value.nvmlReturn)
    return RECOVERY.get(value.value.uiVal, f"action {value.value.uiVal}")


def _throttles(nvml: Any, handle: Any) -> tuple[str, ...]:
    bits = nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    return tuple(name for bit, name in REASONS.items() if bits & bit)


def _processes(nvml: Any, handle: Any) -> tuple[Process, ...]:
    return tuple(Process(p.pid, p.usedGpuMemory) for p in nvml.nvmlDeviceGetComputeRunningProcesses(handle))


def _temperature_limit(nvml: Any, handle: Any) -> int:
    """Where it slows down. Newer cards tell the degrees that are left: an H200 at 39 has 48, at 61 it has 25."""
    try:
        left: int = nvml.nvmlDeviceGetMarginTemperature(handle)
        now: int = nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
    except (nvml.NVMLError, nvml.NVMLLibraryMismatchError):
        limit: int = nvml.nvmlDeviceGetTemperatureThreshold(handle, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
        return limit
    return now + left


READS: Mapping[str, Callable[[Any, Any], Any]] = {
    "vbios": lambda n, h: n.nvmlDeviceGetVbiosVersion(h),
    "ecc_uncorrected": lambda n, h: n.nvmlDeviceGetTotalEccErrors(
        h, n.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, n.NVML_VOLATILE_ECC
    ),
    "recovery": _recovery,
    "throttles": _throttles,
    "temperature": lambda n, h: n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU),
    "temperature_limit": _temperature_limit,
    "power_limit": lambda n, h: n.nvmlDeviceGetPowerManagementLimit(h) / 1000,
    "power_default": lambda n, h: n.nvmlDeviceGetPowerManagementDefaultLimit(h) / 1000,
    "persistence": lambda n, h: bool(n.nvmlDeviceGetPersistenceMode(h)),
    "mig": lambda n, h: bool(n.nvmlDeviceGetMigMode(h)[0]),
    "compute_mode": lambda n, h: MODES.get(n.nvmlDeviceGetComputeMode(h), "unknown"),
    "pcie_generation": lambda n, h: n.nvmlDeviceGetCurrPcieLinkGeneration(h),
    "pcie_generation_max": lambda n, h: n.nvmlDeviceGetMaxPcieLinkGeneration(h),
    "pcie_width": lambda n, h: n.nvmlDeviceGetCurrPcieLinkWidth(h),
    "pcie_width_max": lambda n, h: n.nvmlDeviceGetMaxPcieLinkWidth(h),
    "processes": _processes,
    "busy": lambda n, h: n.nvmlDeviceGetUtilizationRates(h).gpu,
}


def _links(nvml: Any, index: int, handles: list[Any]) -> dict[str, str]:
    found = {}
    for other, handle in enumerate(handles):
        if other != index:
            with suppress(nvml.NVMLError):
                level = nvml.nvmlDeviceGetTopologyCommonAncestor(handles[index], handle)
                found[str(other)] = LEVELS.get(level, str(level))
    return found


def _name(error: Exception) -> str:
    return type(error).__name__


def _module() -> str | None:
    try:
        told = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", MODULE.read_text())
    except OSError:
        return None
    return told[1] if told else None


def _kernel_log() -> str | None:
    """What the kernel wrote since boot; None where this user may not read it."""
    lines: list[bytes] = []
    try:
        descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        while True:
            lines.append(os.read(descriptor, 8192))
    except BlockingIOError:
        return b"".join(lines).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)


def events_of(log: str, bus: str) -> tuple[int, ...]:
    """Numbers of the events of one card; its address stands there with four digits of domain, or eight."""
    short = re.escape(bus.lower()[-12:-2])  # "0000:01:00": the function is not told
    return tuple(int(x) for x in re.findall(rf"xid \(pci:[0-9a-f]*?{short}[^)]*\): (\d+)", log.lower()))
