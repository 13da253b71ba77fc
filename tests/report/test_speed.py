"""A benchmark's report: what a manager reads, and the figures behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reflash.benchmark.facts import ModelSize
from reflash.benchmark.outcome import Outcome
from reflash.benchmark.pilot import Pilot, read_pilot
from reflash.benchmark.points import Point, read_point
from reflash.benchmark.result import Result, Whole, conclude
from reflash.forecast.ceiling import Traffic
from reflash.forecast.queue import pace_of
from reflash.printable import printable
from reflash.report.speed import benchmark_markdown, points_table, summary
from reflash.report.speed_lines import outcome_line, pilot_line, result_line
from tests.benchmark.worlds import ROWS, LengthWorld
from tests.making import config

MODEL = ModelSize(Traffic(54e9, 65_536, 150e6), hidden=5120, layers=64, columns=17408, tps=(1, 2, 4))
VLLM = {"kind": "vllm", "model": "/m", "width": 256}
SETTINGS = {
    "price": 3.5,
    "currency": "EUR",
    "expect": "500-1000",
    "machines": [{"name": "rented | B200", "gpus": 8, "price": 5.0, "speed": 2.2}],
}


def pilot() -> Pilot:
    world = LengthWorld(3)
    sample, requests = world.pilot()
    seconds = float(requests.ended.max())
    return Pilot(
        point=read_point("width=128"),
        sample=sample,
        rate=world.rate(),
        pace=pace_of(requests, world.pace.places),
        whole=True,
        seconds=seconds,
        tail_s=60.0,
        tail_tokens_per_s=100.0,
        launch_s=200.0,
        engines=1,
        gpus=1,
        version="vllm 0.26.0",
        prompt_tokens_per_turn=230.0,
        dataset_bytes_per_token=2.5,
        verdicts={"good": 990, "rejected": 10},
    )


def result(*outcomes: Outcome, **settings: Any) -> Result:
    run = config("run", engine=VLLM, benchmark=SETTINGS | settings, sampling={"max_new_tokens": 8192})
    return conclude(run, outcomes, pilot(), MODEL, Whole(ROWS, ROWS, 4.8e12, 1.8e9))


def measured(text: str, rate: float, **more: Any) -> Outcome:
    chosen = read_point(text) if text else Point()
    return Outcome(chosen, 0, "measured", tokens_per_s=rate, spread=0.01, windows=8, seconds=30, width=128, **more)


BASE, FAST = measured("", 3000), measured("width=128", 4000, running=64.0, watts=700.0, memory=130 * 10**9)
DEAD = Outcome(read_point("kv_dtype=fp8"), 0, "did not start", "no kernel image `x` | y")


def test_the_paragraph_says_time_money_and_how_it_is_known() -> None:
    said = " ".join(summary(result(BASE, FAST, DEAD), printable))
    for words in (
        "100,000 rows take ",
        "nine times in ten between ",
        "GPU-hours, ",
        " EUR.",
        "1,000 real rows were answered in ",
        "by vllm 0.26.0",
        "Of 3 ways to run it, the fastest of those compared: 4,000 tok/s, 1.33 times the config",
        "The memory would allow ",
        "99.0% of the pilot's turns are fit to train on.",
    ):
        assert words in said
    assert "\\" not in said


def test_the_report_holds_every_part_and_stays_small() -> None:
    found = result(BASE, FAST, DEAD)
    text = benchmark_markdown(found)
    assert text.count("data:image/png") == 3
    assert len(text) < 400_000
    assert "width: 128" in text
    assert "hidden states of 6 layers" in text
    assert "rented \\| B200, 8 GPUs" in text
    assert f"| {found.outlook.rows}" not in text  # no raw figures where a person reads
    assert "it held 64 of the 128 requests asked for" in text.replace("\\", "")


def test_words_of_an_engine_cannot_break_the_table() -> None:
    row = next(r for r in points_table(result(BASE, DEAD).outcomes) if r["status"] == "did not start")
    assert row["why"] == "no kernel image \\`x\\` \\| y"


def test_the_json_is_what_a_program_needs() -> None:
    found = result(BASE, FAST, DEAD).to_json()
    assert found["advice"]["set"] == ["engine.width=128"]
    assert found["ceiling"]["share"] == pytest.approx(
        found["pilot"]["rate"]["tokens_per_s"] / found["ceiling"]["tokens_per_s"]
    )
    assert [c["machine"]["name"] for c in found["costs"]] == ["measured here", "rented | B200"]
    assert found["bytes"]["hidden_kept"] == pytest.approx(6 * found["bytes"]["hidden_layer"])
    assert found["points"][1]["joules_per_token"] == pytest.approx(0.175)
    assert found["expected"]["answer"] in ("yes", "no", "undecided")
    assert read_pilot(found["pilot"]) == pilot()


def test_answers_that_are_cut_have_their_price_told() -> None:
    found = result()
    assert found.curve.unknown > 0
    assert [one.budget for one in found.larger] == [16384, 32768]
    assert "reach the budget of 8,192 tokens" in " ".join(summary(found))
    assert "mean with a budget of 16,384" in benchmark_markdown(found)


def test_a_benchmark_without_comparison_says_so() -> None:
    text = benchmark_markdown(result())
    assert "the config as it stands was measured alone" in text
    assert "The config stays as it is." not in text  # the pilot ran by another width, which is to be used


def test_lines_tell_each_event() -> None:
    assert outcome_line(FAST) == "width=128: 4,000 tok/s ±1.0% over 30 s, 64 of 128 requests held"
    assert outcome_line(DEAD).startswith("kv_dtype=fp8: did not start: no kernel")
    assert pilot_line(replace(pilot(), seconds=600.0)).startswith("Pilot: 1,000 rows in 10 min 0 s, ")
    assert result_line(result()).endswith("by width=128")
