"""What is advised, and why not the others."""

from __future__ import annotations

from dataclasses import replace

import yaml

from reflash.benchmark.advice import choose, patch, patch_options, patch_yaml, rejected, remarks
from reflash.benchmark.facts import UNKNOWN
from reflash.benchmark.notes import Notes
from reflash.benchmark.outcome import Outcome, read_outcome
from reflash.benchmark.points import Point, read_point
from reflash.config.load import parse_config
from reflash.store.objects import open_store
from tests.making import config

VLLM = {"kind": "vllm", "model": "/m", "width": 256, "env": {"A": "b"}}


def made(text: str, rate: float, number: int = 0, **more: object) -> Outcome:
    chosen = read_point(text) if text else Point()
    facts = {"tokens_per_s": rate, "spread": 0.01, "windows": 8, "width": 256}
    return Outcome(chosen, number, "measured", **(facts | more))  # type: ignore[arg-type]


def test_the_cache_that_halves_the_rate_is_found_and_named() -> None:
    """Seen on an H200 with Qwen3.6-27B: SGLang with its radix cache held 46 of 256 requests."""
    on = made("kind=sglang,prefix_caching=on", 1500, running=46.0)
    off = made("kind=sglang,prefix_caching=off", 3100, running=256.0)
    base = made("", 2700)
    choice = choose([base, on, off])
    assert choice is not None
    assert choice.outcome == off
    assert "1.15 times the config as it stands (2,700" in choice.why
    why = {r.outcome.point.name: r.why for r in rejected([base, on, off], off, UNKNOWN)}
    assert why["kind=sglang,prefix_caching=on"] == (
        "1,500 tok/s, 0.48 of 3,100; it held 46 of the 256 requests asked for"
    )


def test_the_config_as_it_stands_is_kept_where_nothing_is_measurably_faster() -> None:
    choice = choose([made("", 1000), made("width=512", 1015), made("width=64", 700)])
    assert choice is not None
    assert choice.outcome.point == Point()
    assert "width=512 made 1,015" in choice.why


def test_what_could_not_be_measured_is_told_with_its_reason() -> None:
    fine, late = made("", 100), Outcome(read_point("tp=2"), 0, "not reached", "the time was over before its turn")
    dead = Outcome(read_point("kv_dtype=fp8"), 0, "did not start", "no kernel image")
    told = [r.why for r in rejected([fine, dead, late], fine, UNKNOWN)]
    assert told == ["did not start: no kernel image", "not reached: the time was over before its turn"]
    assert choose([dead, late]) is None


def test_a_point_is_compared_with_the_best_of_its_own_round() -> None:
    slow, first, last = made("width=64", 50), made("width=512", 100), made("width=512", 90, number=1)
    [told] = rejected([slow, first, last], last, UNKNOWN)
    assert told.why.startswith("50 tok/s, 0.50 of 100")


def test_split_matrices_are_told_by_their_columns() -> None:
    model = replace(UNKNOWN, columns=2048)
    assert remarks(made("tp=8,replicas=1", 25), model) == ["TP 8 leaves each GPU matrices of 256 columns"]


def test_the_patch_is_what_a_config_takes() -> None:
    before = config("run", engine=VLLM)
    settings = patch(before, read_point("width=128,kv_dtype=fp8"))
    assert settings == {"engine": {"width": 128, "kv_dtype": "fp8"}}
    assert sorted(patch_options(settings)) == ["engine.kv_dtype=fp8", "engine.width=128"]
    assert yaml.safe_load(patch_yaml(settings)) == settings
    assert patch(before, Point()) == {}
    assert patch_yaml({}) == ""


def test_the_patch_of_another_engine_is_whole() -> None:
    before = config("run", engine=VLLM)
    settings = patch(before, read_point("kind=sglang,width=64"))
    assert settings["engine"]["kind"] == "sglang"
    assert "env" not in settings["engine"]
    [option] = patch_options(settings)
    again = before.model_dump() | {"engine": yaml.safe_load(option.removeprefix("engine="))}
    assert parse_config(again, "patch").engine.width == 64


def test_an_outcome_is_read_back_as_it_was_written(tmp_path: object) -> None:
    one = made("kind=sglang,width=64", 123.4, number=2, watts=700.0, memory=10**10)
    assert read_outcome(one.to_json()) == one
    notes = Notes(open_store(str(tmp_path), create=True))
    notes.keep(one)
    notes.keep(replace(one, tokens_per_s=1.0))  # the first stays
    assert notes.outcome(one.point, 2) == one
    assert notes.outcome(one.point, 1) is None
    notes.keep(Outcome(read_point("tp=2"), 0, "not reached", "no time"))
    assert notes.outcome(read_point("tp=2"), 0) is None
