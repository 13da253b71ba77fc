"""The model as the engine's own environment takes it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from reflash.engines.serve.command import server_environment
from reflash.environment.collect.interpreter import last_line, reason
from reflash.environment.facts import Model
from reflash.environment.kernels.child import run_child
from reflash.printable import printable

LOOK = Path(__file__).with_name("look_model.py")
LIMIT_S = 120.0  # vLLM's registry imports torch


def tried_by(model: Model, python: str, engine: str, environment: Mapping[str, str] = os.environ) -> Model:
    """The same with what that interpreter makes of it; blocks. Only of what lies here: nothing is downloaded."""
    folder = Path(model.folder)
    if model.error or not model.folder or not folder.is_dir():
        return model
    variables = server_environment(environment, {"HF_HUB_OFFLINE": "1"})
    ended = run_child(
        [python, "-I", str(LOOK), str(folder), engine, "" if model.pinned is None else "hub"], variables, LIMIT_S
    )
    told = last_line(ended)
    if not isinstance(told, dict):
        return replace(model, tokenizer=reason(ended))
    return replace(
        model,
        type_known=told.get("type_known"),
        registered=told.get("registered"),
        parsers_known=None if told.get("parsers") is None else tuple(told["parsers"]),
        tokenizer=_words(told.get("tokenizer")),
        renders=_words(told.get("renders")),
        thinking=told.get("thinking"),
    )


def _words(told: str | None) -> str | None:
    return None if told is None else printable(told, 300)
