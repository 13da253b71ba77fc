"""A request may hang where the engine is well: one that is late is sent again, and the first answer counts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

from reflash.errors import EngineError
from reflash.types import Completion

ENOUGH = 32  # answers, before any is called late
TIMES = 2.0  # the longest answer so far: while many run at once some end at every age, so that is a gap and no tail
TIMES_IDLE = 1.25  # where places are free, a second sending costs nothing
FLOOR_S = 5.0
LOOK_S = 0.5
MOST = 4  # times that one request is sent

Send = Callable[[int], Coroutine[None, None, Completion]]


@dataclass(slots=True, eq=False)
class Flight:
    """One request and its further sendings."""

    send: Send
    sent_at: float  # the last time
    scope: asyncio.Timeout  # around the first sending
    again: list[asyncio.Task[None]] = field(default_factory=list)
    answer: Completion | None = None  # of a later sending
    landed: bool = False  # the first sending has ended

    def send_again(self) -> None:
        """Once more, beside those under way."""
        self.sent_at = time.monotonic()
        self.again.append(asyncio.create_task(self._once(len(self.again) + 1)))

    async def _once(self, number: int) -> None:
        try:
            answer = await self.send(number)
        except EngineError:
            return  # the first sending may still be worked on
        if self.answer is None:
            self.answer = answer
            if not self.landed:
                self.scope.reschedule(0.0)  # ends the wait for the first sending


class Lateness:
    """How long answers take, and the requests under way. Lives in one event loop; `run` must run beside them."""

    def __init__(self, places: int = 1, *, floor_s: float = FLOOR_S, look_s: float = LOOK_S, most: int = MOST) -> None:
        self._places, self._floor_s, self._look_s, self._most = places, floor_s, look_s, most
        self._answers = 0
        self._longest = 0.0
        self._flights: set[Flight] = set()

    def answered(self, seconds: float) -> None:
        """An answer came after so many seconds."""
        self._answers += 1
        if seconds > self._longest:
            self._longest = seconds

    async def first_of(self, send: Send) -> Completion:
        """Send, and again when it is late; `send` is told which time it is, from 0. The first answer counts.

        An error counts only when nothing else is under way. Whatever is still under way then is cancelled, so that an
        engine that works on it stops.
        """
        flight = Flight(send, time.monotonic(), asyncio.timeout(None))
        self._flights.add(flight)
        try:
            async with flight.scope:
                return await send(0)
        except TimeoutError:
            if flight.answer is None:
                raise
            return flight.answer
        except EngineError:
            flight.landed = True
            if answer := await _answer_of(flight):
                return answer
            raise
        finally:
            flight.landed = True
            self._flights.discard(flight)
            if flight.again:
                await _cancel(flight.again)

    async def run(self) -> None:
        """Until cancelled: look for requests that are late. One task for all of them, so that they cost nothing."""
        while True:
            await asyncio.sleep(self._look_s)
            if self._answers < ENOUGH:
                continue
            times = TIMES if len(self._flights) >= self._places else TIMES_IDLE
            limit = time.monotonic() - max(self._floor_s, times * self._longest)
            for flight in list(self._flights):
                if flight.sent_at < limit and len(flight.again) + 1 < self._most:
                    flight.send_again()


async def _answer_of(flight: Flight) -> Completion | None:
    """The answer of a later sending, waited for while one is under way."""
    while flight.answer is None and (left := [task for task in flight.again if not task.done()]):
        await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
    return flight.answer


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
