"""Places at an engine: never more than the limit, none lost, whoever is cancelled."""

from __future__ import annotations

import asyncio
import random

import pytest

from reflash.generate.gate import Gate


def crowd(gate: Gate, chance: random.Random, most_inside: list[int]) -> list[asyncio.Task[None]]:
    """200 who want in; the most that were inside at once is kept."""
    inside = 0

    async def one() -> None:
        nonlocal inside
        await gate.enter()
        try:
            inside += 1
            most_inside.append(inside)
            await asyncio.sleep(chance.random() / 500)
        finally:
            inside -= 1
            gate.leave()

    return [asyncio.create_task(one()) for _ in range(200)]


@pytest.mark.parametrize("seed", range(20))
def test_no_place_is_lost_whoever_is_cancelled_and_however_the_limit_moves(seed: int) -> None:
    chance = random.Random(seed)
    most: list[int] = []

    async def scenario() -> None:
        gate = Gate(5)
        tasks = crowd(gate, chance, most)
        for _ in range(30):
            await asyncio.sleep(chance.random() / 500)
            gate.resize(chance.randint(1, 9))
            chance.choice(tasks).cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(e is None or isinstance(e, asyncio.CancelledError) for e in ended)
        assert (gate.taken, gate.room) == (0, gate.limit)

    asyncio.run(asyncio.wait_for(scenario(), 30))
    assert max(most) <= 9


def test_exactly_so_many_are_inside_as_there_are_places() -> None:
    most: list[int] = []

    async def scenario() -> None:
        await asyncio.gather(*crowd(Gate(5), random.Random(0), most))

    asyncio.run(scenario())
    assert max(most) == 5


def test_those_who_wait_go_in_as_they_came() -> None:
    order: list[int] = []

    async def scenario() -> None:
        gate = Gate(1)

        async def one(number: int) -> None:
            await gate.enter()
            order.append(number)
            await asyncio.sleep(0)
            gate.leave()

        await asyncio.gather(*(one(n) for n in range(10)))

    asyncio.run(scenario())
    assert order == list(range(10))
