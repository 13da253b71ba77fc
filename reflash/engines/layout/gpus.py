"""The GPUs of this machine, and which of them are ours to use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reflash.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card as the driver tells of it."""

    index: int  # in the order of the PCI bus
    uuid: str  # "GPU-…"
    name: str
    memory: int  # bytes in all
    used: int  # bytes that somebody uses now


class Cards(Protocol):
    """Whoever knows the GPUs of a machine."""

    def gpus(self) -> Sequence[Gpu]:
        """All of them, by index; none where there is no driver."""


class NvmlCards:
    """NVIDIA's cards, asked through the driver's own library: nothing is started on a GPU."""

    def gpus(self) -> Sequence[Gpu]:
        """All of them, by index; none where there is no driver."""
        import pynvml

        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError:
            return []
        try:
            return [_read(index) for index in range(pynvml.nvmlDeviceGetCount())]
        finally:
            pynvml.nvmlShutdown()


def _read(index: int) -> Gpu:
    import pynvml

    card = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(card)
    return Gpu(index, pynvml.nvmlDeviceGetUUID(card), pynvml.nvmlDeviceGetName(card), memory.total, memory.used)


def chosen(gpus: Sequence[Gpu], names: Sequence[str], said_by: str) -> list[Gpu]:
    """The GPUs that `names` name, by index or by the beginning of a UUID, in their order.

    Raises ConfigError where one is none of them: `said_by` is the setting that names it.
    """
    found: list[Gpu] = []
    for name in (n.strip() for n in names):
        fits = [g for g in gpus if name == str(g.index) or (name.startswith("GPU-") and g.uuid.startswith(name))]
        if len(fits) != 1:
            raise ConfigError(f"{said_by}: {name or 'nothing'} is no GPU of this machine; {_there_are(gpus)}")
        if fits[0] in found:
            raise ConfigError(f"{said_by}: names GPU {fits[0].index} twice")
        found += fits
    return found


def visible(gpus: Sequence[Gpu], cuda_visible_devices: str | None) -> list[Gpu]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves us; a scheduler sets it, and NVML does not heed it."""
    if cuda_visible_devices is None:
        return list(gpus)
    names = [name for name in cuda_visible_devices.split(",") if name.strip()]
    if any(name.strip().startswith("MIG-") for name in names):
        raise ConfigError(
            "CUDA_VISIBLE_DEVICES: names parts of a GPU (MIG), which are not laid out here; start the server yourself "
            "and name it with `kind: endpoint`"
        )
    return chosen(gpus, names, "CUDA_VISIBLE_DEVICES")


def _there_are(gpus: Sequence[Gpu]) -> str:
    if not gpus:
        return "there is none (no NVIDIA driver answers)"
    return "there are " + ", ".join(f"{g.index} ({g.uuid[:12]}…, {g.name})" for g in gpus)
