from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflash.loop import tail_period


def slowly(ids: list[int], window: int) -> int:
    """Every period tried, the tail walked id by id."""
    for period in range(1, len(ids) // 4 + 1):
        length = period
        while length < len(ids) and ids[-1 - length] == ids[-1 - length + period]:
            length += 1
        if length >= max(window, 4 * period):
            return period
    return 0


@given(st.lists(st.integers(0, 2), max_size=90), st.integers(8, 30))
def test_the_search_agrees_with_trying_every_period(ids: list[int], window: int) -> None:
    assert tail_period(ids, window) == slowly(ids, window)


@given(
    st.lists(st.integers(0, 3), max_size=20),
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.integers(1, 12),
    st.integers(0, 11),
    st.integers(8, 40),
)
def test_the_search_agrees_on_tails_that_do_repeat(
    head: list[int], unit: list[int], times: int, cut: int, window: int
) -> None:
    ids = head + unit * times + unit[:cut]
    assert tail_period(ids, window) == slowly(ids, window)


@pytest.mark.parametrize("period", [1, 7, 16, 40, 300])
def test_a_period_is_found_from_its_fourth_time_on(period: int) -> None:
    unit = list(range(1000, 1000 + period))
    times = max(4, -(-64 // period))
    assert tail_period([5, 6, 7, *unit * times], 64) == period
    assert tail_period([5, 6, 7, *unit * (times - 1)], 64) == 0


def test_ids_whose_bytes_repeat_at_odd_places_are_no_loop() -> None:
    shifted = [256**n % 65521 for n in range(200)]
    assert tail_period(shifted, 8) == slowly(shifted, 8)


def test_a_loop_that_ended_before_the_end_is_none() -> None:
    assert tail_period([1, 2] * 100 + [3], 64) == 0


def test_only_the_last_ids_are_looked_at() -> None:
    assert tail_period(list(range(50)) * 4, 64) == 50
    assert tail_period(list(range(50)) * 4, 64, cap=199) == 0
