"""Blocks that a run names, turned into plain config and the process's environment."""

from __future__ import annotations

import os

from blocks.engine import Engine
from blocks.hub import HubToken
from blocks.store import Store
from reflash.config.run import RunConfig


def with_blocks(config: RunConfig, engine: Engine | None, store: Store | None, hub: HubToken | None) -> RunConfig:
    """The config with the saved engine in place of its own; keys go where libraries look for them."""
    use_keys(store, hub)
    return config.model_copy(update={"engine": engine.config()}) if engine else config


def use_keys(*saved: Store | HubToken | None) -> None:
    """Put keys into the environment of this process, which is the run's own, and of those that it starts."""
    for block in saved:
        if block is not None:
            os.environ.update(block.environment())
