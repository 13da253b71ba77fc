"""Finished conversations put into the run's folder, a few at a time, while others are being answered."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import suppress

from reflash.errors import StoreError
from reflash.ledger.ledger import Ledger
from reflash.types import Turn


class SegmentWriter:
    """One shard's writer. What is added is safe within `flush_s`, or sooner once `enough` conversations wait."""

    def __init__(self, ledger: Ledger, shard: str, flush_s: float, enough: int) -> None:
        self._ledger, self._shard = ledger, shard
        self._flush_s, self._enough = flush_s, enough
        self._name = secrets.token_hex(4)
        self._number = 0
        self._waiting: list[Turn] = []
        self._conversations = 0
        self._some = asyncio.Event()
        self._many = asyncio.Event()
        self._closing = False
        self._writing = asyncio.Lock()
        self._error: StoreError | None = None  # of any flush: rows of it are lost
        self._task = asyncio.create_task(self._flush_regularly())

    def add(self, turns: Sequence[Turn]) -> None:
        """Hand over one finished conversation. Raises StoreError where an earlier flush failed."""
        if self._task.done():
            self._task.result()
        self._waiting += turns
        self._conversations += 1
        self._some.set()
        if self._conversations >= self._enough:
            self._many.set()

    async def flush(self) -> None:
        """When it returns, all that was added is safe. Raises StoreError."""
        await self._flush()

    async def close(self) -> None:
        """Flush the rest and end. Raises StoreError of any flush."""
        self._closing = True
        self._some.set()
        self._many.set()
        await self._task
        await self._flush()

    async def _flush_regularly(self) -> None:
        while not self._closing:
            await self._some.wait()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._many.wait(), self._flush_s)
            await self._flush()

    async def _flush(self) -> None:
        async with self._writing:  # one flush waits for the other, so that what it promised is kept
            if self._error:
                raise self._error
            turns, self._waiting, self._conversations = self._waiting, [], 0
            self._some.clear()
            self._many.clear()
            if turns:
                number, self._number = self._number, self._number + 1
                try:
                    await asyncio.to_thread(self._ledger.write_segment, self._shard, self._name, number, turns)
                except StoreError as error:
                    self._error = error
                    raise
