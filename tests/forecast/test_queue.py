"""Rows at places: the time they take, and the pace read back from requests."""

from __future__ import annotations

import numpy as np
import pytest

from reflash.forecast.queue import Pace, Requests, finish_s, pace_of
from tests.benchmark.worlds import played


def test_one_place_takes_them_one_behind_the_other() -> None:
    assert finish_s([10, 20, 30], Pace(0.1, 0.0, 1)) == pytest.approx(6.0)


def test_the_longest_answer_ends_alone_at_the_speed_of_one() -> None:
    """Two side by side for 10 tokens at 0.3 s, then one alone for 10 more at 0.2 s."""
    assert finish_s([10, 20], Pace(0.1, 0.1, 2)) == pytest.approx(10 * 0.3 + 10 * 0.2)


def test_it_agrees_with_a_play_of_every_request() -> None:
    chance = np.random.default_rng(1)
    lengths, pace = chance.integers(1, 300, 200).astype(np.float64), Pace(0.02, 0.001, 16)
    requests = played(lengths, pace)
    assert finish_s(lengths, pace) == pytest.approx(float(requests.ended.max()), rel=1e-6)


def test_no_rows_take_no_time_and_fewer_rows_than_places_leave_some_empty() -> None:
    assert finish_s([], Pace(0.1, 0.1, 4)) == 0
    assert finish_s([10], Pace(0.1, 0.1, 4)) == pytest.approx(2.0)


def test_the_pace_is_read_back_from_requests() -> None:
    chance = np.random.default_rng(2)
    true = Pace(0.02, 0.0005, 64)
    found = pace_of(played(chance.lognormal(5, 0.8, 400).round() + 1, true), 64)
    assert found.alone_s == pytest.approx(true.alone_s, rel=0.1)
    assert found.tokens_per_s == pytest.approx(true.tokens_per_s, rel=0.02)
    assert not found.assumed


def test_where_all_ran_side_by_side_the_slowing_is_assumed_and_said_to_be() -> None:
    same = Requests(np.zeros(8), np.full(8, 10.0), np.full(8, 100.0))
    found = pace_of(same, 8)
    assert found.assumed
    assert found.step_s(8) == pytest.approx(0.1)
