"""Time as GPU-hours and money, on this machine and on others given as a table; and what the rows take to keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reflash.forecast.outlook import Span

FLOAT_BYTES = 2  # of a number of a hidden state, in bfloat16


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as somebody describes it; `speed` is one of its GPUs over one of those measured."""

    name: str
    gpus: int
    price: float  # of one GPU for one hour
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run takes on one machine."""

    machine: Machine
    seconds: Span
    gpu_hours: Span
    money: Span  # in the currency of the price


def costs(seconds: Span, tail_s: float, measured_gpus: int, machines: Iterable[Machine]) -> tuple[Cost, ...]:
    """What a run that takes so long on the GPUs measured takes elsewhere.

    Work is shared out; the end of the run (`tail_s`) is not: one long answer is no faster on more GPUs.
    """
    found = []
    for machine in machines:
        faster = machine.gpus * machine.speed / max(1, measured_gpus)
        there = Span(*(_elsewhere(s, tail_s, faster, machine.speed) for s in (seconds.low, seconds.mid, seconds.high)))
        hours = there.times(machine.gpus / 3600)
        found.append(Cost(machine, there, hours, hours.times(machine.price)))
    return tuple(found)


def _elsewhere(seconds: float, tail_s: float, faster: float, speed: float) -> float:
    tail = min(max(0.0, tail_s), seconds)
    return (seconds - tail) / faster + tail / speed


@dataclass(frozen=True, slots=True)
class Bytes:
    """What a run's rows take to keep."""

    dataset: float | None  # bytes of the dataset's files; None where the pilot made none
    hidden_layer: float | None  # hidden states of one layer, of every token, were they extracted offline
    hidden_kept: float | None  # of the layers that a drafter reads
    hidden_all: float | None  # of all layers
    layers_kept: int
    layers: int


def bytes_kept(tokens: float, dataset_per_token: float | None, hidden: int, layers: int, layers_kept: int) -> Bytes:
    """Bytes for so many tokens, prompts and answers together; `hidden` is the hidden size, 0 where unknown."""
    layer = tokens * hidden * FLOAT_BYTES if hidden else None
    return Bytes(
        dataset=tokens * dataset_per_token if dataset_per_token else None,
        hidden_layer=layer,
        hidden_kept=layer * layers_kept if layer else None,
        hidden_all=layer * layers if layer and layers else None,
        layers_kept=layers_kept,
        layers=layers,
    )
