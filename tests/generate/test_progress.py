from __future__ import annotations

import time

import pytest

from reflash.generate.progress import Progress
from reflash.generate.rates import BIN_S, BINS, Rates
from reflash.types import Completion, Shard
from tests.making import turn

PLAN = [Shard("00000", 2, 3), Shard("00001", 2, 2)]


def completion(tokens: int) -> Completion:
    return Completion((7,) * tokens, "stop", "gpu/0", 5, tokens, 0.1)


def test_a_shard_waits_is_generated_and_lies_safe() -> None:
    progress = Progress(PLAN)
    assert [s.state for s in progress.shards()] == ["waiting", "waiting"]
    progress.begin()
    progress.found("00000", 1, 2)
    progress.finished("00000", [turn("a", engine="gpu/0", completion_tokens=30)])
    now, later = progress.shards()
    assert (now.state, now.rows, now.rows_all, now.output_tokens, now.engines) == ("generating", 2, 2, 30, ("gpu/0",))
    assert now.tokens_per_s > 0
    assert later.state == "waiting"
    progress.committed("00000")
    assert progress.shards()[0].state == "generated"
    assert progress.snapshot().share == 0.5


def test_a_shard_that_is_tried_again_counts_its_tries_and_no_row_twice() -> None:
    progress = Progress(PLAN)
    progress.found("00000", 0)
    progress.finished("00000", [turn("a")])
    progress.found("00000", 1, 1)
    assert progress.shards()[0].tries == 2
    assert progress.snapshot().rows == 1


def test_a_request_stands_with_its_engine_until_it_ends_however_it_ends() -> None:
    progress = Progress(PLAN)
    progress.begin()
    with progress.request("gpu/0") as answer:
        [now] = progress.snapshot().engines
        assert (now.in_flight, now.answers) == (1, 0)
        answer.append(completion(40))
    with pytest.raises(OSError, match="cut"), progress.request("gpu/1"):
        raise OSError("cut")
    [now] = progress.snapshot().engines
    assert (now.name, now.in_flight, now.answers, now.output_tokens) == ("gpu/0", 0, 1, 40)
    assert sum(progress.lengths.values()) == 1


def test_the_time_left_is_unknown_at_first_and_nothing_at_the_end() -> None:
    progress = Progress([Shard("00000", 40, 40)])
    assert progress.snapshot().seconds_left is None
    progress.begin()
    progress.found("00000", 0)
    for n in range(20):
        with progress.request("gpu/0") as answer:
            time.sleep(0.001)
            answer.append(completion(30))
        progress.finished("00000", [turn(f"row-{n}", completion_tokens=30)])
    with progress.request("gpu/0"):
        left = progress.snapshot().seconds_left
    assert left is not None
    assert left > 0.01
    for n in range(20):
        progress.finished("00000", [turn(f"more-{n}")])
    assert progress.snapshot().seconds_left == 0.0


def test_an_engines_own_count_is_believed_and_one_that_starts_again_at_nothing_too() -> None:
    rates = Rates()
    rates.add("a", 100, 10.0)
    assert rates.now("a", 20.0) == 5.0
    for seconds, count in ((10.0, 0), (20.0, 400), (21.0, 3), (22.0, 53)):
        rates.counted("a", count, seconds)
    assert rates.now("a", 22.0) == 50.0
    assert rates.now("a", 300.0) == 0.0


def test_the_course_of_days_costs_no_more_figures_than_that_of_an_hour_and_keeps_its_tokens() -> None:
    rates = Rates()
    for minute in range(3 * 24 * 60):
        rates.add("a", 60, 60.0 * minute)
    [course] = rates.course().values()
    assert BINS / 2 <= len(course) < BINS
    assert rates.bin_s > BIN_S
    assert max(course) == pytest.approx(1.0, rel=0.1)


def test_an_engine_that_gives_nothing_any_more_stands_at_nothing_in_the_course() -> None:
    rates = Rates()
    rates.add("dead", 100, 5.0)
    rates.add("alive", 100, 35.0)
    assert rates.course() == {"alive": [0.0, 0.0, 0.0], "dead": [10.0, 0.0, 0.0]}
