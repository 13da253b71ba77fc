"""An engine saved once in the UI and named in runs."""

from __future__ import annotations

from pydantic import Field

from blocks.checked import Checked
from reflash.config.engine import EngineConfig


class Engine(Checked):
    """Which engine answers: servers that run already, or one that Reflash launches.

    It stands in place of the config's own, and keeps its key secret.
    """

    _block_type_name = "Reflash Engine"
    _block_type_slug = "reflash-engine"

    engine: EngineConfig = Field(description="The engine's settings, as in a run config.")

    def config(self) -> EngineConfig:
        """As plain config."""
        return self.engine
