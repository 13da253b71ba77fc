"""Models and cards as they are: their figures from public model cards and from the driver."""

from __future__ import annotations

import json
from pathlib import Path

from reflash.engines.layout.gpus import Gpu
from reflash.engines.layout.model import model_facts

GIB = 2**30
QWEN3_8B = {
    "model_type": "qwen3",
    "hidden_size": 4096,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 12288,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "tie_word_embeddings": False,
}
QWEN36_27B = json.loads(Path(__file__).with_name("qwen36_27b.json").read_text())
SMALL = model_facts(QWEN3_8B, None)
LARGE = model_facts(QWEN36_27B, None)


def cards(number: int, gib: float = 141, name: str = "NVIDIA H200", used: int = 0, first: int = 0) -> list[Gpu]:
    return [Gpu(i, f"GPU-{i:04}-abc", name, round(gib * GIB), used) for i in range(first, first + number)]
