"""How many conversations wait at the desk before more are fetched."""

from __future__ import annotations

import asyncio

from reflash.generate.desk import Desk
from tests.making import rows


async def fetched_at(desk: Desk, least: int) -> int:
    """Take conversations one by one until the desk is hungry: how many waited then."""
    waiting = asyncio.create_task(desk.hungry(least))
    await asyncio.sleep(0)
    left = sum(len(batch.todo) for batch in desk._open)
    while not waiting.done():
        await desk.take()
        left -= 1
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return left


async def test_where_nothing_is_answered_while_more_is_fetched_few_wait() -> None:
    desk = Desk()
    desk.lay("00000", rows(100))
    assert await fetched_at(desk, 8) == 7
    desk.lay("00001", rows(100))
    assert await fetched_at(desk, 8) == 7


async def test_where_many_are_answered_while_more_is_fetched_more_wait_the_next_time() -> None:
    desk = Desk()
    desk.lay("00000", rows(100))
    assert await fetched_at(desk, 20) == 19
    for _ in range(19):  # all of them, so the engines stood idle
        await desk.take()
    desk.lay("00001", rows(100))
    assert await fetched_at(desk, 20) == 2 * 19 - 1
