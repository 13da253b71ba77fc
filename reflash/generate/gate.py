"""Places at an engine: so many requests at once, a number that may change while they are under way."""

from __future__ import annotations

import asyncio
from collections import deque


class Gate:
    """First come, first in. Lives in one event loop."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def room(self) -> int:
        """Places free; negative where more are taken or waited for than there are."""
        return self.limit - self.taken - len(self._waiting)

    def resize(self, limit: int) -> None:
        """From now on so many places; who is inside stays."""
        self.limit = max(1, limit)
        self._admit()

    async def enter(self) -> None:
        """Take a place, waited for; `leave` gives it back."""
        if self.taken < self.limit and not self._waiting:
            self.taken += 1
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._waiting = deque(w for w in self._waiting if w is not waiter)
            else:
                self.leave()  # it was let in at that very moment
            raise

    def leave(self) -> None:
        """Give a place back."""
        self.taken -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self.taken < self.limit:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self.taken += 1
                waiter.set_result(None)
