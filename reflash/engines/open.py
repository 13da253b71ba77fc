"""From a config to engines that answer: a new kind is one file and one case here."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import assert_never

from reflash.config.engine import (
    EndpointConfig,
    EngineConfig,
    LlamaCppConfig,
    ScriptedConfig,
    SglangConfig,
    VllmConfig,
)
from reflash.engines.base import Engine


async def open_engines(config: EngineConfig, *, context: int, log_folder: Path | None, model: str = "") -> list[Engine]:
    """Reach or launch what the config says, ready to answer; the caller closes each of them.

    `context` is tokens of prompt and answer together; what is launched writes its log into `log_folder`.
    `model` is the name of the run's: a warning tells where something else is served.
    Raises ConfigError and EngineError. Each kind is imported only where it is used.
    """
    match config:
        case EndpointConfig():
            from reflash.engines.endpoint import open_endpoints

            return await open_endpoints(config, model)
        case LlamaCppConfig():
            from reflash.engines.kept import KeptEngine
            from reflash.engines.llamacpp import launch_llamacpp

            launch = partial(launch_llamacpp, config, context, log_folder / "llamacpp.log" if log_folder else None)
            return [KeptEngine(await launch(), launch)]
        case VllmConfig() | SglangConfig():
            from reflash.engines.serve.launch import keep_served

            return list(await keep_served(config, context, log_folder))
        case ScriptedConfig():
            from reflash.engines.scripted import open_scripted

            return [open_scripted(config)]
        case _:
            assert_never(config)


def check_engines(config: EngineConfig, *, context: int) -> None:
    """Look for what can be seen to be wrong without launching or asking anything. Raises ConfigError."""
    match config:
        case EndpointConfig():
            from reflash.engines.endpoint import base_url

            for url in config.urls:
                base_url(url)
        case LlamaCppConfig():
            from reflash.engines.llamacpp import model_file

            model_file(config.model)
        case VllmConfig() | SglangConfig():
            from reflash.engines.layout.gpus import NvmlCards
            from reflash.engines.serve.plan import make_plan

            make_plan(config, context, NvmlCards())
        case ScriptedConfig():
            from reflash.engines.scripted import open_scripted

            open_scripted(config)
        case _:
            assert_never(config)
