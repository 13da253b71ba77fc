"""Points worth comparing, by the engine that is configured and the machine at hand."""

from __future__ import annotations

from collections.abc import Sequence

from reflash.benchmark.facts import ModelSize
from reflash.benchmark.points import SERVED, Point, point, read_point, unique
from reflash.config.engine import EngineConfig
from reflash.config.run import RunConfig

NONE = "none"
SIZES = (1, 2, 4, 8)


def points_of(config: RunConfig, gpus: int, installed: Sequence[str], model: ModelSize) -> list[Point]:
    """The config as it stands first, then those that it names, or that suggest themselves.

    `gpus` can be used here, `installed` are kinds of engines that can be launched. Raises ConfigError where a named
    point is none.
    """
    named = [text for text in config.benchmark.points if text.strip() != NONE]
    if config.benchmark.points:
        chosen = [read_point(text) for text in named]
    else:
        chosen = _suggested(config.engine, gpus, installed, model)
    return unique([Point(), *chosen], config, lambda c: c.engine.model_dump_json())


def _suggested(engine: EngineConfig, gpus: int, installed: Sequence[str], model: ModelSize) -> list[Point]:
    widths = [point({"width": w}) for w in _widths(engine.width)]
    if engine.kind not in SERVED:
        return widths
    found = widths
    for kind in installed:
        if kind != engine.kind and kind in SERVED:
            found += [point({"kind": kind, "width": w}) for w in (engine.width, *_widths(engine.width))]
    if gpus:
        found += [point({"kv_dtype": "fp8"}), point({"prefix_caching": "on"}), point({"prefix_caching": "off"})]
        found += [
            point({"tp": tp, "replicas": gpus // tp}) for tp in SIZES if tp in model.tps and gpus > 1 and tp <= gpus
        ]
        found += [point({"batch_tokens": n}) for n in (4096, 16384)]
        found += [point({"speculative": f"mtp:{n}"}) for n in (1, 2) if model.extra_layers]
    return found


def _widths(width: int) -> list[int]:
    return [w for w in (max(1, width // 4), max(1, width // 2), width * 2) if w != width]
