"""One renderer a process: worker processes keep theirs between calls."""

from __future__ import annotations

from functools import lru_cache

from reflash.config.model import ModelConfig, ThinkingConfig
from reflash.render.base import Renderer
from reflash.render.load import load_renderer


@lru_cache(maxsize=4)
def shared_renderer(model: ModelConfig, thinking: ThinkingConfig) -> Renderer:
    """This process's renderer for a model, loaded once. Raises RenderError."""
    return load_renderer(model, thinking)
