"""Time left, against runs whose end is known."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from math import log

import pytest

from reflash.generate.left import bin_of, edge, seconds_left, survival

SPEED, WIDTH, BUDGET = 30.0, 64, 16384


def guesses(lengths: list[float], at: list[float]) -> list[float]:
    """Guess divided by truth at these shares of a run in which a place that falls free takes the next answer."""
    begun = dict.fromkeys(range(WIDTH), 0.0)
    ends = [(lengths[n] / SPEED, n) for n in range(WIDTH)]
    heapq.heapify(ends)
    ended: Counter[int] = Counter()
    told: list[tuple[float, float | None]] = []
    while ends:
        now, over = heapq.heappop(ends)
        waiting = len(lengths) - len(begun) - ended.total()
        told.append((now, seconds_left(ended, [now - since for since in begun.values()], SPEED, waiting, BUDGET)))
        ended[bin_of(lengths[over])] += 1
        del begun[over]
        if waiting:
            number = len(lengths) - waiting
            begun[number] = now
            heapq.heappush(ends, (now + lengths[number] / SPEED, number))
    found = []
    for share in at:
        when, guess = min(told, key=lambda one: abs(one[0] - share * now))
        assert guess is not None
        found.append(guess / (now - when))
    return found


@pytest.mark.parametrize("sigma", [0.3, 1.0, 1.5])
def test_the_time_left_is_right_from_early_on_even_where_the_longest_answers_are_yet_to_end(sigma: float) -> None:
    rng = random.Random(1)
    middle = log(1500) - sigma**2 / 2
    lengths = [min(BUDGET, max(1.0, rng.lognormvariate(middle, sigma))) for _ in range(3000)]
    for guess in guesses(lengths, [0.05, 0.1, 0.25, 0.5, 0.75]):
        assert 0.75 < guess < 1.33


def test_answers_of_one_length_end_when_they_are_due() -> None:
    ended = {bin_of(600): 100}
    assert seconds_left(ended, [0.0] * 10, 30.0, 90, 600) == pytest.approx(200, rel=0.1)


def test_nothing_is_said_while_too_little_is_known() -> None:
    assert seconds_left({bin_of(100): 3}, [1.0], 30.0, 100, BUDGET) is None
    assert seconds_left({bin_of(100): 300}, [], 30.0, 100, BUDGET) is None
    assert seconds_left({bin_of(100): 300}, [1.0], 0.0, 100, BUDGET) is None


def test_an_answer_that_still_grows_counts_as_a_longer_one() -> None:
    ended = {bin_of(100): 50}
    alone, beside = survival(ended, {}, 100), survival(ended, {bin_of(1000): 50}, 1000)
    assert alone.mean == pytest.approx(100, rel=0.1)
    assert beside.mean > 500
    assert beside.longer(500) == pytest.approx(0.5, abs=0.05)
    assert beside.longer(edge(bin_of(1000))) == 0.0
