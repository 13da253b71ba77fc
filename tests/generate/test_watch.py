"""Engines watched: narrowed where they queue, launched again where they stand still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from reflash.engines.load import Load
from reflash.engines.scripted import ScriptedEngine, echo
from reflash.generate.gate import Gate
from reflash.generate.health import Station
from reflash.generate.watch import Watch


class Told(ScriptedEngine):
    """An engine that says what it is made to say of itself."""

    def __init__(self, says: Callable[[], Load | None], width: int, *, ours: bool = True) -> None:
        super().__init__(echo, width)
        self.says, self.ours = says, ours
        self.restarts: list[str] = []

    async def load(self) -> Load | None:
        return self.says()

    def restart(self, why: str) -> bool:
        self.restarts.append(why)
        return self.ours


def watched(engine: Told, *, busy: int, stall_s: float = 60.0, seconds: float = 0.3) -> Station:
    async def scenario() -> Station:
        station = Station(engine, Gate(engine.width))
        station.gate.taken = busy
        watch = asyncio.create_task(Watch([station], stall_s, look_s=0.01).run())
        await asyncio.sleep(seconds)
        assert not watch.done()
        watch.cancel()
        return station

    return asyncio.run(scenario())


def test_an_engine_that_holds_less_than_asked_is_sent_less_and_that_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    station = watched(Told(lambda: Load(running=46, waiting=210, generated=1), 256), busy=256)
    assert station.gate.limit == 48
    told = [r.getMessage() for r in caplog.records]
    assert len(told) == 1
    assert "holds 46 of the 256" in told[0]
    assert "--disable-radix-cache" in told[0]


def test_an_engine_without_a_token_is_launched_again() -> None:
    engine = Told(lambda: Load(running=8, waiting=0, generated=1000), 8)
    watched(engine, busy=8, stall_s=0.1)
    assert engine.restarts
    assert "no token" in engine.restarts[0]


def test_an_engine_that_falls_silent_under_work_is_launched_again() -> None:
    said = iter([Load(running=8, waiting=0, generated=1000)])
    engine = Told(lambda: next(said, None), 8)
    watched(engine, busy=8, stall_s=0.1)
    assert engine.restarts


def test_one_that_is_not_ours_is_named(caplog: pytest.LogCaptureFixture) -> None:
    watched(Told(lambda: Load(running=8, waiting=0, generated=1000), 8, ours=False), busy=8, stall_s=0.1)
    assert "for you to restart" in caplog.text


@pytest.mark.parametrize("busy", [0, 8])
def test_tokens_or_idleness_are_no_standstill(busy: int) -> None:
    tokens = iter(range(10**6))
    said = (lambda: Load(running=8, waiting=0, generated=next(tokens))) if busy else (lambda: Load(0, 0, 5))
    engine = Told(said, 8)
    watched(engine, busy=busy, stall_s=0.1)
    assert engine.restarts == []


def test_an_engine_that_says_nothing_is_left_alone() -> None:
    engine = Told(lambda: None, 8)
    station = watched(engine, busy=8, stall_s=0.05)
    assert (engine.restarts, station.gate.limit) == ([], 8)
