"""A point: what differs from the config as it stands, in words that mean the same for every engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from reflash.config.faults import faults
from reflash.config.run import RunConfig
from reflash.errors import ConfigError

COMMON = (  # what an engine launched here takes over from another kind: the rest is in its own words
    "model",
    "revision",
    "gpus",
    "tp",
    "replicas",
    "width",
    "gpu_memory_utilization",
    "kv_dtype",
    "prefix_caching",
    "load_format",
    "start_s",
    "patience",
)
SERVED = ("vllm", "sglang")
WHOLE = ("tp", "replicas", "width", "batch_tokens", "threads")  # keys whose values are whole numbers
TAKES = {  # by kind of engine
    **dict.fromkeys(
        SERVED, ("python", "tp", "replicas", "width", "kv_dtype", "prefix_caching", "speculative", "batch_tokens")
    ),
    "llamacpp": ("width", "threads"),
    "endpoint": ("width",),
    "scripted": ("width", "script"),
}
BATCH = {"vllm": "--max-num-batched-tokens", "sglang": "--chunked-prefill-size"}
SPECULATIVE = {  # flags that a point takes away before it gives its own; each has a value
    "vllm": ("--speculative-config",),
    "sglang": (
        "--speculative-algorithm",
        "--speculative-num-steps",
        "--speculative-eagle-topk",
        "--speculative-num-draft-tokens",
    ),
}


@dataclass(frozen=True, slots=True)
class Point:
    """Settings by key, in the order of the keys; none is the config as it stands."""

    settings: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """As it is printed, and given to `--point`."""
        return ",".join(f"{key}={value}" for key, value in self.settings) or "as configured"

    @property
    def launch(self) -> tuple[tuple[str, str], ...]:
        """What a server must be launched for: points that differ in their width alone share one."""
        return tuple(pair for pair in self.settings if pair[0] != "width")


def point(settings: Mapping[str, object]) -> Point:
    """A point of these settings."""
    return Point(tuple(sorted((key, str(value)) for key, value in settings.items())))


def read_point(text: str) -> Point:
    """`kind=sglang,width=128` as a point; raises ConfigError where it is none."""
    settings: dict[str, str] = {}
    for pair in text.split(","):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key or not value or key in settings:
            raise ConfigError(
                f"benchmark.points: {text}: write key=value,key=value, each key once: kind=sglang,width=128"
            )
        settings[key] = value
    return point(settings)


def apply(config: RunConfig, chosen: Point) -> RunConfig:
    """The config with a point's settings; raises ConfigError where the engine takes no such key or value."""
    settings = dict(chosen.settings)
    engine = config.engine.model_dump(exclude_unset=True) | {"kind": config.engine.kind}
    kind = settings.pop("kind", config.engine.kind)
    if kind == "hf":
        raise ConfigError(
            "kind=hf: Hugging Face Transformers is not installed here (it needs torch) and is no engine of Reflash: it "
            "answers one batch at a time, and waits for the longest answer of each"
        )
    if kind != engine["kind"]:
        engine = _of_another_kind(engine, kind)
    for key, value in settings.items():
        if key not in TAKES[kind]:
            raise ConfigError(f"benchmark.points: {chosen.name}: {kind} takes {', '.join(TAKES[kind])}, not {key}")
        _set(engine, kind, key, value, chosen)
    try:
        return RunConfig.model_validate(config.model_dump() | {"engine": engine})
    except ValidationError as error:
        raise ConfigError("\n".join([f"benchmark.points: {chosen.name}: cannot work", *faults(error)])) from error


def _of_another_kind(engine: Mapping[str, Any], kind: str) -> dict[str, Any]:
    if kind not in TAKES:
        raise ConfigError(f"benchmark.points: kind={kind}: no such kind; there are {', '.join(TAKES)}")
    if engine["kind"] not in SERVED or kind not in SERVED:
        raise ConfigError(
            f"benchmark.points: kind={kind}: only vllm and sglang serve the same weights; {engine['kind']} has its own"
        )
    return {key: engine[key] for key in COMMON if key in engine} | {"kind": kind}


def _set(engine: dict[str, Any], kind: str, key: str, value: str, chosen: Point) -> None:
    args = list(engine.get("args", ()))
    if key == "batch_tokens":
        engine["args"] = (*_without(args, (BATCH[kind],)), BATCH[kind], str(_whole(value, key, chosen)))
    elif key == "speculative":
        engine["args"] = (*_without(args, SPECULATIVE[kind]), *_speculative(kind, value, chosen))
    else:
        engine[key] = _whole(value, key, chosen) if key in WHOLE else value


def _speculative(kind: str, value: str, chosen: Point) -> list[str]:
    """Arguments for a model's own extra layer (MTP), `mtp:2` guessing two tokens."""
    if value == "off":
        return []
    method, _, number = value.partition(":")
    if method != "mtp":
        raise ConfigError(
            f"benchmark.points: {chosen.name}: speculative is off or mtp:N; other drafters go by engine.args"
        )
    guessed = _whole(number or "1", "speculative", chosen)
    if kind == "vllm":
        return ["--speculative-config", json.dumps({"method": "mtp", "num_speculative_tokens": guessed})]
    told = ("NEXTN", str(guessed), "1", str(guessed + 1))
    return [word for pair in zip(SPECULATIVE["sglang"], told, strict=True) for word in pair]


def _without(args: list[str], names: tuple[str, ...]) -> list[str]:
    """Arguments without some, which are written `--name value` or `--name=value`."""
    kept: list[str] = []
    skip = False
    for arg in args:
        if skip:
            skip = False
        elif arg in names:
            skip = True
        elif arg.partition("=")[0] not in names:
            kept.append(arg)
    return kept


def _whole(value: str, key: str, chosen: Point) -> int:
    if not value.isdigit() or not int(value):
        raise ConfigError(f"benchmark.points: {chosen.name}: {key} must be a whole number, at least 1")
    return int(value)


def unique(points: list[Point], config: RunConfig, same: Callable[[RunConfig], object]) -> list[Point]:
    """Points that mean something else than those before them; those that cannot be applied stay, to be told of."""
    found: dict[object, Point] = {}
    for one in points:
        try:
            key = same(apply(config, one))
        except ConfigError:
            key = one
        found.setdefault(key, one)
    return list(found.values())
