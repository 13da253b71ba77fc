"""A request that hangs is sent again, a slow one is not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reflash.errors import EngineAbsent
from reflash.generate.lateness import ENOUGH, Lateness, first_of


def learned(longest_s: float, floor_s: float = 0.05) -> Lateness:
    lateness = Lateness(floor_s)
    for _ in range(ENOUGH):
        lateness.answered(longest_s)
    return lateness


def asked(hang: set[int], lateness: Lateness, most: int = 3, takes_s: float = 0.0) -> tuple[Any, list[int], list[int]]:
    """The answer to one question, which times it was sent, and which of them were cancelled."""
    sent: list[int] = []
    cancelled: list[int] = []

    async def send(again: int) -> int:
        sent.append(again)
        try:
            await asyncio.sleep(60 if again in hang else takes_s)
        except asyncio.CancelledError:
            cancelled.append(again)
            raise
        return again

    return asyncio.run(asyncio.wait_for(first_of(send, lateness, most), 20)), sent, sorted(cancelled)


def test_a_request_that_hangs_is_sent_again_and_the_first_answer_counts() -> None:
    assert asked({0, 1}, learned(0.02)) == (2, [0, 1, 2], [0, 1])


def test_nothing_is_sent_twice_before_enough_answers_have_come() -> None:
    assert asked(set(), Lateness(0.01), takes_s=0.2) == (0, [0], [])


def test_an_answer_within_twice_the_longest_is_not_late() -> None:
    assert asked(set(), learned(0.2), takes_s=0.3) == (0, [0], [])


def test_no_request_is_sent_more_often_than_allowed() -> None:
    sent = []

    async def send(again: int) -> int:
        sent.append(again)
        await asyncio.sleep(60)
        return again

    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(first_of(send, learned(0.01), 3), 2))
    assert sent == [0, 1, 2]


def test_a_cancelled_question_leaves_no_request_behind() -> None:
    under_way = 0

    async def send(again: int) -> int:
        nonlocal under_way
        under_way += 1
        try:
            await asyncio.sleep(60)
        finally:
            under_way -= 1
        return again

    async def scenario() -> None:
        question = asyncio.create_task(first_of(send, learned(0.01), 3))
        await asyncio.sleep(0.5)
        assert under_way == 3
        question.cancel()
        await asyncio.gather(question, return_exceptions=True)
        assert under_way == 0

    asyncio.run(scenario())


def test_the_error_of_a_second_sending_leaves_the_first_alone() -> None:
    async def send(again: int) -> int:
        if again:
            raise EngineAbsent("nobody there")
        await asyncio.sleep(0.8)
        return again

    assert asyncio.run(asyncio.wait_for(first_of(send, learned(0.01), 3), 10)) == 0


def test_when_all_fail_the_last_error_is_told() -> None:
    async def send(again: int) -> int:
        await asyncio.sleep(0 if again else 0.5)
        raise EngineAbsent(f"sending {again}")

    with pytest.raises(EngineAbsent, match="sending 0"):
        asyncio.run(asyncio.wait_for(first_of(send, learned(0.01), 2), 10))
