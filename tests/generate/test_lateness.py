"""A request that hangs is sent again, a slow one is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from reflash.errors import EngineAbsent, EngineError
from reflash.generate.lateness import ENOUGH, Lateness
from reflash.types import Completion


def answer(number: int) -> Completion:
    return Completion((number,), "stop", "e", 1, 1, 0.1)


@dataclass
class Sending:
    """What each sending does: after how many seconds it answers, or an error."""

    plan: Callable[[int], float | EngineError]
    fails: set[int] = field(default_factory=set)  # after their time
    sent: list[int] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)

    async def __call__(self, number: int) -> Completion:
        self.sent.append(number)
        does = self.plan(number)
        try:
            await asyncio.sleep(does if isinstance(does, float) else 0.0)
        except asyncio.CancelledError:
            self.cancelled.append(number)
            raise
        if isinstance(does, EngineError):
            raise does
        if number in self.fails:
            raise EngineAbsent("connection reset")
        return answer(number)


def ask(sending: Sending, *, learned: bool = True, longest_s: float = 0.01, most: int = 3, places: int = 1) -> int:
    """The sending whose answer counted."""

    async def scenario() -> int:
        lateness = Lateness(places, floor_s=0.1, look_s=0.02, most=most)
        for _ in range(ENOUGH if learned else ENOUGH - 1):
            lateness.answered(longest_s)
        watch = asyncio.create_task(lateness.run())
        try:
            return (await asyncio.wait_for(lateness.first_of(sending), 15)).tokens[0]
        finally:
            assert not watch.done()
            watch.cancel()
            assert len(asyncio.all_tasks()) == 2, "a sending was left behind"

    return asyncio.run(scenario())


def test_a_request_that_hangs_is_sent_again_and_the_first_answer_counts() -> None:
    sending = Sending(lambda n: 60.0 if n < 2 else 0.0)
    assert ask(sending) == 2
    assert (sending.sent, sorted(sending.cancelled)) == ([0, 1, 2], [0, 1])


def test_nothing_is_sent_twice_before_enough_answers_have_come() -> None:
    sending = Sending(lambda n: 0.5)
    assert ask(sending, learned=False) == 0
    assert sending.sent == [0]


def test_an_answer_within_twice_the_longest_is_not_late() -> None:
    sending = Sending(lambda n: 0.5)
    assert ask(sending, longest_s=2.0) == 0
    assert sending.sent == [0]


@pytest.mark.parametrize(("places", "sent"), [(1, [0]), (2, [0, 1])])
def test_where_places_are_free_an_answer_is_late_sooner(places: int, sent: list[int]) -> None:
    sending = Sending(lambda n: 1.6 if n == 0 else 60.0)
    assert ask(sending, longest_s=1.0, places=places, most=2) == 0
    assert sending.sent == sent


def test_no_request_is_sent_more_often_than_allowed() -> None:
    sending = Sending(lambda n: 1.5 if n == 0 else 60.0)
    assert ask(sending) == 0
    assert sending.sent == [0, 1, 2]


def test_the_error_of_a_second_sending_leaves_the_first_alone() -> None:
    sending = Sending(lambda n: EngineAbsent("nobody there") if n else 0.8)
    assert ask(sending) == 0
    assert sending.cancelled == []


def test_an_error_of_the_first_waits_for_a_second_that_is_under_way() -> None:
    assert ask(Sending(lambda n: 0.8 if n else 0.4, fails={0})) == 1


def test_when_all_fail_the_error_of_the_first_is_told() -> None:
    async def scenario() -> None:
        async def send(number: int) -> Completion:
            await asyncio.sleep(0.0 if number else 0.5)
            raise EngineAbsent(f"sending {number}")

        lateness = Lateness(floor_s=0.1, look_s=0.02)
        for _ in range(ENOUGH):
            lateness.answered(0.01)
        watch = asyncio.create_task(lateness.run())
        with pytest.raises(EngineAbsent, match="sending 0"):
            await lateness.first_of(send)
        watch.cancel()

    asyncio.run(scenario())


def test_a_cancelled_question_leaves_no_sending_behind() -> None:
    async def scenario() -> Sending:
        sending = Sending(lambda n: 60.0)
        lateness = Lateness(floor_s=0.1, look_s=0.02, most=3)
        for _ in range(ENOUGH):
            lateness.answered(0.01)
        watch = asyncio.create_task(lateness.run())
        question = asyncio.create_task(lateness.first_of(sending))
        await asyncio.sleep(1.0)
        assert sending.sent == [0, 1, 2]
        question.cancel()
        await asyncio.gather(question, return_exceptions=True)
        watch.cancel()
        return sending

    assert sorted(asyncio.run(scenario()).cancelled) == [0, 1, 2]


def test_a_time_limit_around_it_is_still_a_time_limit() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(0.2):
            await Lateness().first_of(Sending(lambda n: 60.0))

    with pytest.raises(TimeoutError):
        asyncio.run(scenario())
