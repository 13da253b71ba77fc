"""When an answer is late, learned from those that came: a request may hang where the engine is well."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

ENOUGH = 32  # answers, before any is called late
TIMES = 2.0  # the longest answer so far
FLOOR_S = 5.0


class Lateness:
    """How long answers take. While many run at once, some end at every age: twice the longest is a gap, not a tail."""

    def __init__(self, floor_s: float = FLOOR_S) -> None:
        self._floor_s = floor_s
        self._answers = 0
        self._longest = 0.0

    def answered(self, seconds: float) -> None:
        """An answer came after so many seconds."""
        self._answers += 1
        self._longest = max(self._longest, seconds)

    def late(self, age_s: float) -> bool:
        """Whether a request of this age should have been answered; never while too few answers have come."""
        return self._answers >= ENOUGH and age_s >= self._limit_s

    def look_again_s(self, age_s: float) -> float:
        """Seconds until a request of this age may be late."""
        return max(0.1, self._limit_s - age_s) if self._answers >= ENOUGH else self._floor_s

    @property
    def _limit_s(self) -> float:
        return max(self._floor_s, TIMES * self._longest)


async def first_of(send: Callable[[int], Coroutine[Any, Any, T]], lateness: Lateness, most: int) -> T:
    """Send, and send again whenever the last one is late, `most` times in all; the first answer counts.

    `send` is told which time it is, from 0. An error counts only when nothing else is under way: the one that is late
    may still be worked on. The others are cancelled then, so that an engine that works on them stops.
    """
    sent = {asyncio.create_task(send(0))}
    times, began = 1, time.monotonic()
    try:
        while True:
            wait = lateness.look_again_s(time.monotonic() - began) if times < most else None
            done, _ = await asyncio.wait(sent, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            answered = next((task for task in done if not task.exception()), None)
            if answered:
                return answered.result()
            if done == sent:
                return done.pop().result()  # raises
            sent -= done
            if times < most and lateness.late(time.monotonic() - began):
                sent.add(asyncio.create_task(send(times)))
                times, began = times + 1, time.monotonic()
    finally:
        await _cancel(sent)


async def _cancel(tasks: set[asyncio.Task[T]]) -> None:
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    if left:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*left, return_exceptions=True)
