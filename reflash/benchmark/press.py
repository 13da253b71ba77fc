"""Engines put under the run's own work: the driver that makes runs, at a width, for some seconds or to the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count, islice

from reflash.benchmark.steady import Look, added
from reflash.benchmark.tap import Call, Tap
from reflash.config.run import RunConfig
from reflash.engines.base import Engine
from reflash.errors import ReflashError, RunStopped
from reflash.generate.driver import Driver
from reflash.generate.progress import Progress
from reflash.ledger.ledger import Ledger
from reflash.render.base import Renderer
from reflash.types import Planned

LOOK_S = 1.0
SHARDS = 3  # open at once, as in a run: the end of one is filled by the next
LONGER = 3.0
SHARD = "00000"

Feeding = Callable[[Driver], Coroutine[None, None, None]]


@dataclass(frozen=True, slots=True)
class Work:
    """What a driver needs beside engines."""

    config: RunConfig
    ledger: Ledger
    renderer: Renderer


@dataclass(slots=True)
class Pressed:
    """What was asked, what was answered, what the engines said."""

    began: float  # all by the monotonic clock
    calls: list[Call] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    ended: float = 0.0
    failed: int = 0
    whole: bool = False  # every row was answered
    broke: str = ""  # why it ended before its time

    @property
    def done(self) -> list[Call]:
        """Requests that were answered."""
        return [call for call in self.calls if call.ended is not None]

    @property
    def under_way(self) -> list[Call]:
        """Requests that were being answered at the end; of one that was sent twice the first, if neither ended."""
        last: dict[tuple[str, int], float] = {}
        for call in self.done:
            key = (call.conversation, call.turn)
            last[key] = max(last.get(key, 0.0), call.ended or 0.0)
        found: dict[tuple[str, int], Call] = {}
        for call in self.calls:
            key = (call.conversation, call.turn)
            if call.ended is None and last.get(key, 0.0) <= call.sent:  # a piece before it may have ended
                found.setdefault(key, call)
        return list(found.values())


async def press_for(
    seconds: float, engines: Sequence[Engine], width: int, work: Work, rows: Sequence[Planned]
) -> Pressed:
    """Keep every place taken for so long, with rows over and over; then let go of what is under way.

    Where an engine does not say what it makes, up to `LONGER` times as long, until as many answers as places are there.
    """
    feed = _endless(rows)
    size = max(8 * width * len(engines), 512)  # so that no place waits while a shard is put away
    shards = (f"{number:05}" for number in count())

    async def feeding(driver: Driver) -> None:
        for shard in shards:
            await driver.run(shard, list(islice(feed, size)))

    async def all_feeding(driver: Driver) -> None:
        await asyncio.gather(*(feeding(driver) for _ in range(SHARDS)))

    return await _press(all_feeding, seconds, engines, width, work, most_s=LONGER * seconds)


async def press_through(
    limit_s: float, engines: Sequence[Engine], width: int, work: Work, rows: Sequence[Planned]
) -> Pressed:
    """Answer every row once, in so many seconds at most."""

    async def once(driver: Driver) -> None:
        await driver.run(SHARD, list(rows))

    return await _press(once, limit_s, engines, width, work)


async def _press(
    feeding: Feeding, seconds: float, engines: Sequence[Engine], width: int, work: Work, most_s: float = 0.0
) -> Pressed:
    taps = [Tap(engine, width) for engine in engines]
    pressed = Pressed(time.monotonic())
    driver = Driver(work.config, work.ledger, work.renderer, taps, Progress())
    feed = asyncio.ensure_future(feeding(driver))
    looking = asyncio.ensure_future(_look(taps, pressed))
    try:
        await asyncio.wait((feed, looking), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        while not (feed.done() or looking.done() or _enough(pressed, taps) or _past(pressed, most_s)):
            await asyncio.wait((feed, looking), timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
        pressed.ended = time.monotonic()
        if feed.done():
            pressed.whole = feed.exception() is None
            pressed.broke = str(feed.exception() or "")
    finally:
        pressed.ended = pressed.ended or time.monotonic()
        feed.cancel()
        looking.cancel()
        await driver.aclose()
        with suppress(asyncio.CancelledError, ReflashError, RunStopped):
            await feed
        with suppress(asyncio.CancelledError):
            await looking
    pressed.calls = [call for tap in taps for call in tap.calls if call.conversation != "canary"]
    pressed.failed = sum(tap.failed for tap in taps)
    pressed.broke = next((tap.broke for tap in taps if tap.broke), pressed.broke)
    return pressed


def _enough(pressed: Pressed, taps: Sequence[Tap]) -> bool:
    """Whether the rate can be told: by the engines' own counters, or by as many answers as there are places."""
    if any(look.load.generated and not look.load.late for look in pressed.looks):
        return True
    return sum(call.ended is not None for tap in taps for call in tap.calls) > sum(tap.width for tap in taps)


def _past(pressed: Pressed, most_s: float) -> bool:
    return time.monotonic() - pressed.began >= most_s


async def _look(taps: Sequence[Tap], pressed: Pressed) -> None:
    """Note the engines' figures every second; ends where one of them has died."""
    while not any(tap.broke for tap in taps):
        load = added(await asyncio.gather(*(tap.load() for tap in taps)))
        if load is not None:
            pressed.looks.append(Look(time.monotonic(), load))
        await asyncio.sleep(LOOK_S)


def _endless(rows: Sequence[Planned]) -> Iterator[Planned]:
    """Rows over and over; from the second time on under another name, and so with other seeds."""
    for turn in count():
        yield from rows if turn == 0 else _renamed(rows, turn)


def _renamed(rows: Iterable[Planned], turn: int) -> Iterator[Planned]:
    for row in rows:
        yield replace(row, conversation=replace(row.conversation, id=f"{row.conversation.id}#{turn}"))
