"""What is asked: rows whose prompts have a known number of tokens, and the config of a run over them."""

from __future__ import annotations

import json
import random
from argparse import Namespace
from pathlib import Path
from typing import Any

import yaml

from reflash.config.model import ModelConfig, ThinkingConfig
from reflash.render.base import Renderer
from reflash.render.shared import shared_renderer
from reflash.types import Message


def write_rows(options: Namespace, path: Path, rows: int, tokens: int, seed: int = 0) -> None:
    """Conversations whose prompts have exactly so many tokens: random words, each of them one token."""
    renderer = shared_renderer(ModelConfig(**model(options)), ThinkingConfig())
    words = _words(Path(options.tokenizer or options.model))
    chance = random.Random(seed)
    with path.open("w") as file:
        for number in range(rows):
            text = None
            while text is None:
                text = _of_length(renderer, [chance.choice(words) for _ in range(tokens)], tokens)
            messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "OK."}]
            file.write(json.dumps({"id": f"row-{seed}-{number:06}", "messages": messages}) + "\n")


def _of_length(renderer: Renderer, words: list[str], tokens: int) -> str | None:
    """As many of the words as make a prompt of that length; None where no number of them does."""
    count = tokens
    for _ in range(5):
        text = " ".join(words[:count])
        found = len(renderer.prompt((Message("user", text),), "", thinking=True))
        if found == tokens:
            return text
        count = min(len(words), count - (found - tokens))
    return None


def _words(folder: Path) -> list[str]:
    vocabulary = json.loads((folder / "tokenizer.json").read_bytes())["model"]["vocab"]
    found = sorted(token[1:] for token in vocabulary if token[0] == "Ġ" and token[1:].isascii())
    return [word for word in found if word.isalpha() and word.islower() and 4 <= len(word) <= 8]


def model(options: Namespace) -> dict[str, Any]:
    """The `model` part of a config."""
    return {
        "name": options.name,
        "tokenizer": options.tokenizer or options.model,
        "renderer": options.renderer,
        "context": options.context,
    }


def engine(options: Namespace) -> dict[str, Any]:
    """The `engine` part of a config that launches the server itself."""
    return {
        "kind": options.kind,
        "model": options.model,
        "python": options.python,
        "device": options.device,
        "width": options.width,
        "gpu_memory_utilization": options.memory,
        "load_format": options.load_format,
        "args": options.arg,
        "env": dict(pair.split("=", 1) for pair in options.env),
    }


def write_config(options: Namespace, path: Path, rows: Path, engine: dict[str, Any], **more: Any) -> Path:
    """A run config beside `path`, whose run's folder is `path`; `more` are its other parts."""
    config = {"run": str(path), "source": {"path": str(rows)}, "model": model(options), "engine": engine, **more}
    file = path.with_suffix(".yaml")
    file.write_text(yaml.safe_dump(config))
    return file
