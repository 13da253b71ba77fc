"""Which conversation is answered next: those of the oldest open shard first, so that shards end in their order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from reflash.types import Planned


@dataclass(slots=True, eq=False)
class Batch:
    """A shard's conversations under way."""

    shard: str
    todo: deque[Planned]
    left: int  # conversations neither finished nor set aside
    over: asyncio.Event = field(default_factory=asyncio.Event)
    error: BaseException | None = None  # what ended the whole batch

    def one_less(self) -> None:
        """A conversation is finished or given up."""
        self.left -= 1
        if self.left == 0:
            self.over.set()

    def end(self, error: BaseException) -> None:
        """End the batch before its time."""
        self.error = self.error or error
        self.todo.clear()
        self.over.set()


class Desk:
    """Open batches, and who waits for a conversation."""

    def __init__(self) -> None:
        self._open: list[Batch] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._few = asyncio.Event()
        self._enough = 0
        self._taken = self._taken_when_hungry = 0  # conversations

    async def hungry(self, least: int) -> None:
        """Wait until fewer conversations than that wait to be taken, or than twice what the last fetching lasted for.

        Short answers are gone before the next slice is claimed and read; long ones had better wait for an idle node.
        """
        self._enough = max(least, 2 * (self._taken - self._taken_when_hungry))
        while sum(len(batch.todo) for batch in self._open) >= self._enough:
            self._few.clear()
            await self._few.wait()
        self._taken_when_hungry = self._taken

    def gone(self, batch: Batch) -> None:
        """A batch ended; what was not taken of it never will be."""
        batch.todo.clear()
        self._few.set()

    def lay(self, shard: str, rows: Iterable[Planned]) -> Batch:
        """Open a batch; its conversations are given out after those of shards before it. A deque is emptied."""
        todo = rows if isinstance(rows, deque) else deque(rows)
        batch = Batch(shard, todo, len(todo))
        if not todo:
            batch.over.set()
        self._open.append(batch)
        self._open.sort(key=lambda b: b.shard)
        for _ in range(min(len(todo), len(self._waiting))):
            self._wake_one()
        return batch

    async def take(self) -> tuple[Batch, Planned]:
        """The next conversation; waits until there is one."""
        while True:
            for batch in self._open:
                if batch.todo:
                    taken = batch.todo.popleft()
                    self._taken += 1
                    if len(batch.todo) < self._enough:
                        self._few.set()
                    return batch, taken
            self._open = [b for b in self._open if b.todo]
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    def _wake_one(self) -> None:
        waiter = self._waiting.popleft()
        if not waiter.done():
            waiter.set_result(None)
