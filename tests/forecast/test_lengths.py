"""Lengths of which some were cut off: what is known of them, and what a larger budget may cost."""

from __future__ import annotations

import numpy as np
import pytest

from reflash.forecast.lengths import larger_budget, survival


def test_without_cuts_the_curve_is_the_sample_itself() -> None:
    curve = survival([10, 20, 20, 50], [True] * 4)
    assert curve.mean_up_to(1000) == pytest.approx(25)
    assert curve.quantile(0.5) == 20
    assert curve.quantile(1.0) == 50
    assert curve.unknown == 0
    assert larger_budget(curve, 1000) is None


def test_a_cut_answer_is_longer_than_it_seems() -> None:
    """The textbook case: of those at risk at 30 one of two ends, so half of two thirds go on."""
    curve = survival([10, 20, 30, 30], [True, False, True, False])
    assert curve.beyond(10) == pytest.approx(3 / 4)
    assert curve.beyond(20) == pytest.approx(3 / 4)
    assert curve.unknown == pytest.approx(3 / 8)
    assert curve.quantile(0.9) is None


def test_cuts_at_random_do_not_bias_the_mean() -> None:
    chance = np.random.default_rng(3)
    true = chance.exponential(100, 20_000)
    cut = chance.exponential(300, 20_000)
    curve = survival(np.minimum(true, cut).tolist(), (true <= cut).tolist())
    naive = float(np.minimum(true, cut).mean())
    assert curve.mean_up_to(600) == pytest.approx(np.minimum(true, 600).mean(), rel=0.02)
    assert naive < 80  # what a plain mean would have said of 100


def test_weights_count_as_so_many_answers() -> None:
    assert survival([1, 2], [True, True], [3.0, 1.0]).mean_up_to(9) == pytest.approx(1.25)


def test_a_larger_budget_lies_between_its_bounds_and_near_the_truth_of_a_heavy_tail() -> None:
    chance = np.random.default_rng(5)
    true = 200 * (1 + chance.pareto(1.5, 50_000))
    seen = np.minimum(true, 1000)
    curve = survival(seen.tolist(), (true <= 1000).tolist())
    larger = larger_budget(curve, 4000)
    assert larger is not None
    assert larger.guess is not None
    truth = float(np.minimum(true, 4000).mean())
    assert larger.low < truth < larger.high
    assert larger.guess == pytest.approx(truth, rel=0.05)


def test_where_hardly_any_answer_ends_near_the_budget_no_guess_is_made() -> None:
    larger = larger_budget(survival([10] * 50 + [1000] * 50, [True] * 50 + [False] * 50), 2000)
    assert larger is not None
    assert larger.guess is None
    assert larger.high == pytest.approx(0.5 * 10 + 0.5 * 2000)
