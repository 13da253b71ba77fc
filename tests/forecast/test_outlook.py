"""The forecast of a run: it holds the truth as often as it says, and is narrow enough to be of use."""

from __future__ import annotations

import numpy as np
import pytest

from reflash.forecast.held import hold
from reflash.forecast.outlook import Rate, outlook, read_outlook
from reflash.forecast.queue import Pace, finish_s, pace_of
from reflash.forecast.sample import Sample, SeenRow, read_sample
from tests.benchmark.worlds import ROWS, LengthWorld


def test_nine_in_ten_worlds_end_within_the_interval_of_a_pilot_of_one_row_in_a_hundred() -> None:
    """20 worlds of 100,000 rows, `benchmarks/forecast.py` runs more: lengths lognormal (sigma 0.6 to 1.0), cut."""
    held, widest = 0, 0.0
    for seed in range(20):
        world = LengthWorld(seed)
        sample, requests = world.pilot()
        said = outlook(sample, world.rate(), pace_of(requests, world.pace.places), ROWS, seed)
        held += said.seconds.holds(world.truth())
        widest = max(widest, said.seconds.plus_minus)
    assert held >= 18
    assert widest < 0.10


def test_a_stratum_that_the_pilot_has_too_many_of_is_put_right() -> None:
    """Half of the pilot is long, of the set one row in ten: a plain mean would say 550."""
    rows = tuple(SeenRow("long", (1000,)) for _ in range(50)) + tuple(SeenRow("short", (100,)) for _ in range(50))
    said = outlook(Sample(rows, {"long": 1000, "short": 9000}), Rate(1000, 0.001, 20), Pace(0.01, 0.0, 10), 10_000)
    assert said.tokens_per_row.mid == pytest.approx(190, rel=0.01)


def test_the_tail_is_part_of_the_time() -> None:
    chance = np.random.default_rng(4)
    lengths = chance.lognormal(6, 1.0, 600).round() + 1
    pace = Pace(0.02, 0.0001, 200)
    truth = finish_s(lengths, pace)
    sample = Sample(tuple(SeenRow("all", (int(n),)) for n in lengths), {"all": 600})
    said = outlook(sample, Rate(pace.tokens_per_s, 0.005, 20), pace, 600)
    assert said.tail_s > 0.2 * truth
    assert said.seconds.holds(truth)


def test_rows_under_way_when_the_pilot_ended_are_not_taken_for_short_ones() -> None:
    """Every third row was stopped at 100 of its 1,000 tokens."""
    rows = tuple(SeenRow("all", (100,), under_way=True) if n % 3 == 0 else SeenRow("all", (1000,)) for n in range(300))
    said = outlook(Sample(rows, {"all": 300}), Rate(100, 0.01, 10), Pace(0.01, 0.001, 8), 300)
    assert said.tokens_per_row.mid == pytest.approx(1000, rel=0.02)


def test_a_rate_from_two_windows_is_less_sure_than_from_twenty() -> None:
    sample = Sample(tuple(SeenRow("all", (100,)) for _ in range(100)), {"all": 1000})
    few, many = (outlook(sample, Rate(100, 0.03, n), Pace(0.01, 0.001, 8), 1000) for n in (2, 20))
    assert few.seconds.plus_minus > 1.5 * many.seconds.plus_minus


def test_it_is_read_back_as_it_was_written() -> None:
    sample = Sample((SeenRow("a", (5, 7), True, False, 30),), {"a": 3})
    assert read_sample(sample.to_json()) == sample
    said = outlook(sample, Rate(10, 0.01, 5), Pace(0.1, 0.0, 1), 3)
    assert read_outlook(said.to_json()) == said


def test_a_run_is_held_against_its_forecast_by_scale() -> None:
    sample = Sample(tuple(SeenRow("all", (100,)) for _ in range(50)), {"all": 1000})
    said = outlook(sample, Rate(100, 0.005, 20), Pace(0.01, 0.0, 1), 1000)
    seconds, tokens, a_row = hold(said, seconds=510.0, output_tokens=50_000, rows=500)
    assert seconds.forecast.mid == pytest.approx(500, rel=0.01)
    assert seconds.off == pytest.approx(0.02, abs=0.01)
    assert tokens.to_json()["within"]
    assert a_row.actual == 100
