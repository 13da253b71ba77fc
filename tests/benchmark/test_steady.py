"""The steady rate, from counters where they move and from requests where they do not."""

from __future__ import annotations

import pytest

from reflash.benchmark.steady import Look, added, all_taken, steady
from reflash.benchmark.tap import Call
from reflash.engines.load import Load


def calls(count: int, seconds: float, tokens: int, places: int = 4) -> list[Call]:
    """Requests one behind the other at so many places."""
    return [Call(f"row-{n}", 0, (n // places) * seconds, (n // places + 1) * seconds, tokens) for n in range(count)]


def test_counters_tell_the_rate_where_they_move_with_every_step() -> None:
    looks = [Look(t, Load(running=8, waiting=0, generated=int(500 * t), cache=t / 100)) for t in range(41)]
    found = steady([], looks, 10.0, 40.0)
    assert found is not None
    assert found.tokens_per_s == pytest.approx(500)
    assert found.spread < 0.01
    assert (found.running, found.cache) == (8, 0.4)


def test_counters_that_move_when_a_request_ends_are_not_believed() -> None:
    """A counter that jumps every ten seconds: the requests say 4 x 100 tokens each 10 s."""
    looks = [Look(t, Load(generated=400 * (t // 10))) for t in range(60)]
    found = steady(calls(24, 10.0, 100), looks, 5.0, 55.0)
    assert found is not None
    assert found.tokens_per_s == pytest.approx(40)


def test_requests_under_way_count_for_the_time_they_have_lasted() -> None:
    """Half of the places hold answers that have not ended: without them the rate would be half."""
    going = [Call(f"long-{n}", 0, 0.0) for n in range(4)]
    found = steady([*calls(16, 10.0, 100), *going], [], 0.0, 40.0)
    assert found is not None
    assert found.tokens_per_s == pytest.approx(80)


def test_where_nothing_ended_and_nothing_is_counted_there_is_no_rate() -> None:
    assert steady([Call("a", 0, 0.0)], [], 0.0, 30.0) is None
    assert steady(calls(4, 1.0, 10), [], 5.0, 5.0) is None


def test_places_are_all_taken_when_so_many_requests_were_sent() -> None:
    assert all_taken(calls(8, 10.0, 1), 4) == 0.0
    assert all_taken(calls(8, 10.0, 1), 6) == 10.0
    assert all_taken(calls(3, 10.0, 1), 4) is None


def test_engines_add_up_and_one_that_says_nothing_hides_all() -> None:
    one, two = Load(3, 1, 100, 0.5, 0), Load(4, 0, 50, 0.7, 2)
    assert added([one, two]) == Load(7, 1, 150, 0.7, 2)
    assert added([one, None]) is None
    assert added([]) is None


def test_a_counter_of_ended_requests_is_not_taken_for_one_of_steps() -> None:
    """It moves at every look, since some request always ends, and says nothing of those that are still short."""
    looks = [Look(t, Load(generated=5 * t, late=True)) for t in range(41)]
    found = steady(calls(16, 10.0, 100), looks, 0.0, 40.0)
    assert found is not None
    assert found.tokens_per_s == pytest.approx(40)
