"""How a machine is looked at: before a run, every night, or when a person asks."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationError

from reflash.config.base import MOST_TOKENS, Frozen
from reflash.errors import ConfigError

AuditedEngine = Literal["llamacpp", "vllm", "sglang", "endpoint"]


class MachineAudit(Frozen):
    """The audit of one machine."""

    engine: AuditedEngine = "llamacpp"
    """What is to run here: `llamacpp` is the embedded engine, `endpoint` one that runs elsewhere."""

    python: str = ""
    """Interpreter of the engine's environment; by default of the one that `reflash engines install` made."""

    model: str = ""
    """The model to serve: a folder or a Hub id."""

    revision: str | None = None
    """Revision of the Hub repository."""

    random_weights: bool = False
    """The engine makes weights at random, to measure speed: none need be there."""

    context: int = Field(default=8192, ge=1, le=MOST_TOKENS)
    """Tokens of the longest sequence that is planned."""

    tp: int | None = Field(default=None, ge=1, le=64)
    """GPUs that serve one model together; by default the fewest that the model fits on."""

    gpu_memory_utilization: float = Field(default=0.92, gt=0, lt=1)
    """Share of a GPU's memory that the engine will take."""

    runs: str = "runs"
    """Where runs are written: a folder, or a URL of an object store."""

    kernels: bool = True
    """Launch programs on the GPU, each in a child process: a minute more."""

    imports: bool = True
    """Import the engine in child processes, with its command line and its registries: half a minute more."""

    history: bool = True
    """Compare with the last audit of this machine, and keep this one for the next."""


class AuditConfig(Frozen):
    """The audit of this machine that comes before a run. Nothing here decides the run's result."""

    refuse: Literal["fail", "never"] = "fail"
    """When the run is refused: where a check fails, or never. Warnings are shown and no more."""

    kernels: bool = True
    """Launch programs on the GPUs too, before the engines start: a minute. Engines without GPUs skip it."""


def machine_audit(**given: Any) -> MachineAudit:
    """The audit that options of a command ask for; raises ConfigError with one line a fault."""
    try:
        return MachineAudit.model_validate(given)
    except ValidationError as error:
        lines = [f"--{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False)]
        raise ConfigError("\n".join(lines)) from error
