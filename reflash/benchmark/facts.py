"""What is known of the model and of the machine: for the ceiling, for layouts, for what hidden states would take."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from reflash.benchmark.gpus import GpuLook
from reflash.config.engine import EngineConfig, LlamaCppConfig, SglangConfig, VllmConfig
from reflash.config.paths import local_path
from reflash.engines.layout.fit import sizes
from reflash.engines.provision.place import environments
from reflash.engines.serve.weights import read_model
from reflash.errors import ConfigError, RenderError
from reflash.forecast.ceiling import Traffic
from reflash.render.gguf import read_gguf

COPY_BYTES = 64 * 2**20  # of one copy when a CPU's memory is timed: beyond any cache
COPIES = 4
HALF = 2.0  # bytes of a number in the cache


@dataclass(frozen=True, slots=True)
class ModelSize:
    """The figures of a model that matter here; 0 where unknown."""

    traffic: Traffic
    hidden: int = 0
    layers: int = 0
    columns: int = 0  # of a feed-forward matrix, or of one expert's
    tps: tuple[int, ...] = (1,)
    extra_layers: int = 0


UNKNOWN = ModelSize(Traffic(0.0, 0.0))


def model_size(engine: EngineConfig) -> ModelSize:
    """What the weights' own files say; `UNKNOWN` where they are not at hand (an endpoint, a script)."""
    try:
        if isinstance(engine, VllmConfig | SglangConfig):
            return _served(engine)
        if isinstance(engine, LlamaCppConfig):
            return _gguf(engine)
    except (ConfigError, RenderError):
        pass
    return UNKNOWN


def installed_kinds() -> tuple[str, ...]:
    """Kinds of engines that can be launched here on GPUs."""
    return tuple(sorted({e.engine for e in environments()} & {"vllm", "sglang"}))


def bandwidth(looks: Sequence[GpuLook], uuids: Sequence[str], gpus: int) -> float:
    """Bytes a second of the memories of the GPUs that serve; of this machine's own where none does. 0: unknown."""
    if not gpus:
        return cpu_bandwidth()
    known = [look.bandwidth for look in looks if not uuids or look.uuid in uuids]
    each = [value for value in known if value]
    return sum(each) / len(each) * gpus if each else 0.0


def cpu_bandwidth() -> float:
    """Bytes a second that all cores together copy, the best of a few tries: read and written are both counted."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    pairs = [(np.ones(COPY_BYTES, np.uint8), np.empty(COPY_BYTES, np.uint8)) for _ in range(cores)]
    best = 0.0
    with ThreadPoolExecutor(cores) as threads:
        for _ in range(COPIES):
            began = time.perf_counter()
            list(threads.map(lambda pair: np.copyto(pair[1], pair[0]), pairs))
            best = max(best, 2 * COPY_BYTES * cores / (time.perf_counter() - began))
    return best


def _served(engine: VllmConfig | SglangConfig) -> ModelSize:
    facts = read_model(engine.model, engine.revision).facts
    cache = 1.0 if engine.kv_dtype.startswith(("fp8", "int8")) else HALF
    traffic = Traffic(facts.weights, facts.cache_per_token * cache / HALF, facts.state_per_sequence)
    return ModelSize(traffic, facts.hidden, facts.layers, facts.columns, tuple(sizes(facts)), facts.extra_layers)


def _gguf(engine: LlamaCppConfig) -> ModelSize:
    path = local_path(engine.model)
    fields = read_gguf(path)
    kind = str(fields.get("general.architecture", ""))

    def number(key: str) -> int:
        return _number(fields, f"{kind}.{key}")

    heads, layers, hidden = number("attention.head_count"), number("block_count"), number("embedding_length")
    kept = number("attention.head_count_kv") or heads
    head = number("attention.key_length") or (hidden // heads if heads else 0)
    weights = float(path.stat().st_size)
    return ModelSize(Traffic(weights, 2 * layers * kept * head * HALF), hidden, layers, number("feed_forward_length"))


def _number(fields: Mapping[str, Any], key: str) -> int:
    value = fields.get(key, 0)
    return value if isinstance(value, int) else 0
