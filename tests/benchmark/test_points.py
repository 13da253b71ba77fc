"""Points: read, applied to a config, and told apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reflash.benchmark.facts import UNKNOWN
from reflash.benchmark.points import Point, apply, point, read_point
from reflash.benchmark.suggest import points_of
from reflash.config.engine import SglangConfig, VllmConfig
from reflash.config.run import RunConfig
from reflash.errors import ConfigError
from tests.making import config

SPLIT = replace(UNKNOWN, tps=(1, 2, 4), extra_layers=1)
VLLM = {"kind": "vllm", "model": "/m", "width": 256, "args": ["--x", "1"], "env": {"A": "b"}, "python": "/p"}


def run(**engine: Any) -> RunConfig:
    return config("run", engine={**VLLM, **engine})


def args(chosen: RunConfig) -> tuple[str, ...]:
    assert isinstance(chosen.engine, VllmConfig | SglangConfig)
    return chosen.engine.args


def test_a_point_is_what_was_written_whatever_its_order() -> None:
    assert read_point("width=64, kind=sglang") == read_point("kind=sglang,width=64")
    assert read_point("kind=sglang,width=64").name == "kind=sglang,width=64"
    assert Point().name == "as configured"


@pytest.mark.parametrize("text", ["width", "width=", "=4", "width=4,width=8", ""])
def test_what_is_no_point_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="key=value"):
        read_point(text)


def test_settings_go_where_each_engine_takes_them() -> None:
    found = apply(run(), read_point("kv_dtype=fp8,prefix_caching=off,batch_tokens=8192,speculative=mtp:2,tp=2"))
    assert isinstance(found.engine, VllmConfig)
    assert (found.engine.kv_dtype, found.engine.prefix_caching, found.engine.tp) == ("fp8", "off", 2)
    assert args(found)[:4] == ("--x", "1", "--max-num-batched-tokens", "8192")
    assert args(found)[4] == "--speculative-config"
    assert '"num_speculative_tokens": 2' in args(found)[5]


def test_another_engine_takes_over_the_weights_and_not_the_words_of_the_first() -> None:
    found = apply(run(load_format="dummy"), read_point("kind=sglang,width=128,speculative=mtp:1"))
    assert isinstance(found.engine, SglangConfig)
    assert (found.engine.model, found.engine.width, found.engine.load_format) == ("/m", 128, "dummy")
    assert found.engine.python is None
    assert found.engine.env == {}
    assert args(found)[:2] == ("--speculative-algorithm", "NEXTN")


def test_speculation_that_is_configured_can_be_switched_off() -> None:
    configured = run(args=["--speculative-config", "{}", "--y", "--max-num-batched-tokens=4096"])
    assert args(apply(configured, read_point("speculative=off,batch_tokens=512"))) == (
        "--y",
        "--max-num-batched-tokens",
        "512",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("threads=2", "vllm takes python, tp"),
        ("width=wide", "width must be a whole number"),
        ("kind=llamacpp", "only vllm and sglang serve the same weights"),
        ("kind=trt", "no such kind"),
        ("kind=hf", "not installed"),
        ("prefix_caching=maybe", "must be one of"),
        ("speculative=eagle", "off or mtp:N"),
    ],
)
def test_a_point_that_cannot_work_says_why(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        apply(run(), read_point(text))


def test_an_endpoints_key_stays_with_it() -> None:
    engine = {"kind": "endpoint", "urls": ["http://127.0.0.1:1"], "api_key": "word", "width": 8}
    found = apply(config("run", engine=engine), point({"width": 4})).engine
    assert found.width == 4
    assert found.kind == "endpoint"
    assert found.api_key is not None
    assert found.api_key.get_secret_value() == "word"


def test_points_suggest_themselves_by_engine_and_machine() -> None:
    names = [p.name for p in points_of(run(), gpus=2, installed=("sglang", "vllm"), model=SPLIT)]
    assert names[0] == "as configured"
    assert {
        "width=64",
        "kind=sglang,width=256",
        "kv_dtype=fp8",
        "prefix_caching=on",
        "replicas=1,tp=2",
        "speculative=mtp:2",
    } <= set(names)
    assert "replicas=0,tp=4" not in names
    alone = points_of(config("run", engine={"kind": "scripted", "width": 8}), 0, (), UNKNOWN)
    assert [p.name for p in alone] == ["as configured", "width=2", "width=4", "width=16"]


def test_named_points_are_taken_as_they_are_and_those_that_mean_the_same_once(tmp_path: Path) -> None:
    told = {"points": ["width=256", "width=8", "kind=hf"]}
    found = points_of(config(tmp_path, engine=VLLM, benchmark=told), 1, (), UNKNOWN)
    assert [p.name for p in found] == ["as configured", "width=8", "kind=hf"]
    nothing = points_of(config(tmp_path, engine=VLLM, benchmark={"points": ["none"]}), 1, (), UNKNOWN)
    assert nothing == [Point()]
