"""What is wrong with a config, in words that say what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from reflash.config.keys import all_keys
from reflash.config.load import apply_override, parse_config
from reflash.config.run import RunConfig
from reflash.errors import ConfigError

FIT: dict[str, Any] = {
    "run": "x",
    "source": {"path": "r"},
    "model": {"name": "m"},
    "engine": {"kind": "vllm", "model": "m"},
}
HOLES = ("Input", "union", "tag", "Extra inputs", "Field required", "instance of", "discriminator")


def refusal(changes: dict[Any, Any]) -> str:
    with pytest.raises(ConfigError) as refused:
        parse_config({key: value for key, value in (FIT | changes).items() if value is not ...}, "run.yaml")
    said = str(refused.value)
    assert not [word for word in HOLES if word in said]
    return said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 7}, "  seed: no such key; did you mean sampling.seed?"),
        ({"max_tokens": 7}, "  max_tokens: no such key; did you mean sampling.max_new_tokens?"),
        ({"smpling": {"seed": 7}}, "  smpling: no such key; did you mean sampling?"),
        ({"sampling": {"temprature": 1}}, "  sampling.temprature: no such key; did you mean sampling.temperature?"),
        ({"plan": {"wurst": 1}}, "  plan.wurst: no such key; plan has shard_rows, workers"),
        ({"wurst": 1}, "  wurst: no such key; there are run, source, model, engine, thinking, "),
    ],
)
def test_an_unknown_key_is_told_the_one_it_was_meant_for_or_those_there_are(changes: dict[str, Any], said: str) -> None:
    assert said in refusal(changes)


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ({"kind": "vllm", "model": "m", "gpu": 1}, "engine.gpu: no such key; did you mean engine.gpus?"),
        ({"kind": "vllm", "model": "m", "threads": 1}, "engine.threads: no key of kind vllm, but of llamacpp"),
        ({"kind": "endpoint", "urls": ["u"], "gpu": 1}, "did you mean engine.gpus (of kind vllm or sglang)?"),
        ({"kind": "scripted", "patience": {"atempts": 1}}, "did you mean engine.patience.attempts?"),
        ({"kind": "llamacpp"}, "  engine.model: is missing"),
        ({"kind": "endpoint", "urls": []}, "  engine.urls: must hold at least 1"),
    ],
)
def test_a_key_of_an_engine_is_judged_by_its_kind_and_named_as_it_is_written(engine: Any, said: str) -> None:
    assert said in refusal({"engine": engine})


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ({"kind": "vlm"}, "engine.kind: no such kind; did you mean vllm? There are endpoint, llamacpp, vllm, sglang"),
        ({"kind": "tgi"}, "engine.kind: no such kind; there are endpoint, llamacpp, vllm, sglang"),
        ({"kind": ["vllm"]}, "engine.kind: no such kind; there are endpoint"),
        ({"model": "m"}, "engine.kind: is missing; there are endpoint, llamacpp, vllm, sglang"),
        (7, "engine: must be a group of settings; it holds a kind (endpoint, "),
        (..., "engine: is missing; it holds a kind (endpoint, "),
    ],
)
def test_a_kind_that_there_is_not_is_told_all_and_the_nearest(engine: Any, said: str) -> None:
    assert said in refusal({"engine": engine})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"run": ...}, "  run: is missing"),
        ({"run": ""}, "  run: must not be empty"),
        ({"run": 7}, "  run: must be text"),
        ({7: 7}, "  7: is no name of a setting"),
        ({"source": ...}, "  source: is missing; it holds path, split, revision, limit, reasons"),
        ({"sampling": 7}, "  sampling: must be a group of settings; it holds temperature, top_p"),
        ({"sampling": {"temperature": 3}}, "  sampling.temperature: must be at most 2\n"),
        ({"sampling": {"top_p": 0}}, "  sampling.top_p: must be greater than 0\n"),
        ({"sampling": {"seed": 2**31}}, "  sampling.seed: must be less than 2147483648\n"),
        ({"sampling": {"seed": "x"}}, "  sampling.seed: must be a whole number"),
        ({"plan": {"shard_rows": 1.5}}, "  plan.shard_rows: must be a whole number"),
        ({"plan": {"shard_rows": 0}}, "  plan.shard_rows: must be at least 1\n"),
        ({"thinking": {"mode": "maybe"}}, "  thinking.mode: must be one of 'on', 'off', 'share'\n"),
        ({"thinking": {"preserve": "maybe"}}, "  thinking.preserve: must be true or false"),
        ({"engine": {"kind": "vllm", "model": "m", "env": [1]}}, "  engine.env: must hold names and values"),
        ({"engine": {"kind": "vllm", "model": "m", "args": "x"}}, "  engine.args: must be a list"),
        ({"length": {"temperatures": [9]}}, "  length.temperatures.0: must be at most 2\n"),
    ],
)
def test_a_value_that_cannot_be_is_told_what_can(changes: dict[str, Any], said: str) -> None:
    assert said in refusal(changes) + "\n"


def test_the_command_line_is_told_the_same() -> None:
    settings = dict(FIT)
    apply_override(settings, "seed=7")
    with pytest.raises(ConfigError, match=r"seed: no such key; did you mean sampling\.seed\?"):
        parse_config(settings, "run.yaml")


def test_no_fault_says_what_was_given() -> None:
    for engine in ({"kind": "planted"}, {"kind": "endpoint", "urls": ["u"], "width": "planted"}):
        assert "planted" not in refusal({"engine": engine})


def test_every_key_of_a_run_is_known_by_its_dotted_name() -> None:
    def names(model: Any, prefix: str = "") -> set[str]:
        found = {f"{prefix}{name}" for name in type(model).model_fields}
        inner = {name: getattr(model, name) for name in type(model).model_fields}
        return found.union(*(names(m, f"{prefix}{n}.") for n, m in inner.items() if hasattr(type(m), "model_fields")))

    known = {key.name for key in all_keys()}
    assert names(RunConfig.model_validate(FIT)) <= known
    assert {"engine.urls", "engine.threads", "engine.script", "engine.patience.stall_s"} <= known
