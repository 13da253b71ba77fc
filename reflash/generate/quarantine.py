"""Requests that were under way when an engine broke: the more often, the fewer at once; the last time one alone.

An engine that dies takes all its requests with it, and the one to blame dies again among the same innocents if all are
sent again together. In ever smaller groups the innocent are answered, and only the one to blame breaks an engine alone.
"""

from __future__ import annotations

import asyncio
from math import ceil

from reflash.generate.gate import Gate


class Quarantine:
    """Places for requests by how often they have seen an engine break. Lives in one event loop."""

    def __init__(self, width: int, attempts: int) -> None:
        self._last = attempts - 1  # failures after which a request is tried alone
        self._gates = [Gate(ceil(width ** (1 - (n - 1) / max(1, self._last - 1)))) for n in range(1, self._last)]
        self._inside = 0  # requests under suspicion that are under way
        self._alone = False
        self._wanting = 0  # who wait to be alone: nobody else goes in before them
        self._changed = asyncio.Condition()

    async def enter(self, failures: int) -> None:
        """Wait for a place; a request without failures needs none."""
        level = min(failures, self._last)
        if level <= 0:
            return
        if level == self._last:
            await self._enter_alone()
            return
        gate = self._gates[level - 1]
        await gate.enter()
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: not self._alone and not self._wanting)
                self._inside += 1
        except BaseException:
            gate.leave()
            raise

    async def leave(self, failures: int) -> None:
        """Give the place back."""
        level = min(failures, self._last)
        if level <= 0:
            return
        if level == self._last:
            self._alone = False
        else:
            self._gates[level - 1].leave()
            self._inside -= 1
        async with self._changed:
            self._changed.notify_all()

    async def _enter_alone(self) -> None:
        self._wanting += 1
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: not self._alone and not self._inside)
                self._alone = True
        finally:
            self._wanting -= 1
