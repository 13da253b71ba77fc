"""What every server's command line is made from. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reflash.config.engine import ServedConfig
from reflash.engines.layout.gpus import Gpu
from reflash.engines.layout.model import ModelFacts
from reflash.errors import ConfigError

LOOPBACK = "127.0.0.1"
# Set here, by settings that have a name of their own.
OURS = {
    "--host": "it listens on loopback alone",
    "--port": "a free one is found",
    "--api-key": "a new one is made at each start",
    "--uds": "it is asked by TCP",
    "--model": "write it as `model`",
    "--model-path": "write it as `model`",
    "--tensor-parallel-size": "write it as `tp`",
    "-tp": "write it as `tp`",
    "--tp": "write it as `tp`",
    "--tp-size": "write it as `tp`",
    "--data-parallel-size": "replicas are servers of their own; write `replicas`",
    "--dp-size": "replicas are servers of their own; write `replicas`",
}
OUR_ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "write the GPUs as `gpus`",
    "VLLM_API_KEY": "a new key is made at each start",
}
ABOUT_US = frozenset({"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "REFLASH_API_KEY"})


@dataclass(frozen=True, slots=True)
class Installed:
    """What an interpreter's environment holds: versions by package, "" where one is there without its version."""

    python: str
    packages: Mapping[str, str]

    def version(self, *names: str) -> str | None:
        """Of the first of these packages that is there; None where none is."""
        return next((self.packages[name] for name in names if name in self.packages), None)


@dataclass(frozen=True, slots=True)
class Asked:
    """What one server is to do."""

    config: ServedConfig
    installed: Installed
    facts: ModelFacts
    local: bool  # the model is a folder
    device: Literal["gpu", "cpu"]
    context: int
    gpus: tuple[Gpu, ...] = ()  # none on a CPU


@dataclass(frozen=True, slots=True)
class Command:
    """How one server is started. The key stands in the environment alone: anybody may read a command line."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]  # over `server_environment`
    reasons: tuple[str, ...]  # of what the model or the environment asked for, for the log


def check_args(config: ServedConfig) -> None:
    """Raises ConfigError where `args` or `env` set what is set here."""
    for arg in config.args:
        name = arg.partition("=")[0]
        if name in OURS:
            raise ConfigError(f"engine.args: {name} cannot be given, {OURS[name]}")
    for name in OUR_ENVIRONMENT.keys() & config.env.keys():
        raise ConfigError(f"engine.env: {name} cannot be given, {OUR_ENVIRONMENT[name]}")


def server_environment(ours: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a server in an interpreter of its own: ours, but for what is about our interpreter."""
    return {name: value for name, value in ours.items() if name not in ABOUT_US} | dict(more)


def quiet(asked: Asked) -> dict[str, str]:
    """Environment of every server: nothing is reported to anybody, and a local model needs no Hub."""
    told = {"DO_NOT_TRACK": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "PYTHONUNBUFFERED": "1"}
    return {**told, "HF_HUB_OFFLINE": "1"} if asked.local else told
