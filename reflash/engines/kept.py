"""An engine of our own that is launched again when it dies: its death costs what was in flight, no more."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from reflash.engines.base import Engine
from reflash.engines.load import Load
from reflash.errors import ConfigError, EngineError, EngineGone, EngineLost, EngineStarting
from reflash.types import Completion, Prompt

log = logging.getLogger(__name__)

RESTARTS = 5  # in a row, each before it has lived for LIVED_S
LIVED_S = 600.0
BACKOFF_S = 2.0  # before the second start in a row; it doubles


class KeptEngine:
    """A launched engine and how to launch it again."""

    def __init__(
        self, engine: Engine, launch: Callable[[], Awaitable[Engine]], *, backoff_s: float = BACKOFF_S
    ) -> None:
        self.name = engine.name
        self.version = engine.version
        self.exact = engine.exact
        self.width = engine.width
        self._engine: Engine | None = engine
        self._launch = launch
        self._backoff_s = backoff_s
        self._started = time.monotonic()
        self._restarts = 0  # in a row
        self._gone = ""  # why it was given up
        self._starting: asyncio.Task[None] | None = None

    async def generate(self, prompt: Prompt) -> Completion:
        """Answer one prompt. Raises EngineStarting while it is launched again, EngineGone once it was given up."""
        engine = self._there()
        try:
            return await engine.generate(prompt)
        except EngineGone as error:
            self._again(engine, str(error))
            raise EngineLost(str(error)) from None

    async def load(self) -> Load | None:
        """What it says of itself; None while it is not there."""
        return await self._engine.load() if self._engine else None

    def restart(self, why: str) -> bool:
        """End it and launch it again, since it no longer does its work."""
        if self._engine:
            self._again(self._engine, why)
        return True

    async def aclose(self) -> None:
        """End what was launched, and what is being launched."""
        self._gone = self._gone or f"{self.name}: closed"
        if self._starting:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        if self._engine:
            await self._engine.aclose()

    def _there(self) -> Engine:
        if self._engine:
            return self._engine
        if self._gone:
            raise EngineGone(self._gone)
        raise EngineStarting(f"{self.name}: is being launched again")

    def _again(self, engine: Engine, why: str) -> None:
        """Launch it again, once, however many requests saw it die."""
        if self._engine is not engine or self._gone:
            return
        self._engine = None
        self._starting = asyncio.create_task(self._start(engine, why))

    async def _start(self, old: Engine, why: str) -> None:
        try:
            await old.aclose()
            await self._until_there(why)
        except Exception as error:  # whatever it was: requests wait for this task's word
            log.exception("%s cannot be launched again", self.name)
            self._gone = f"{self.name} died ({why}) and cannot be launched again: {error}"

    async def _until_there(self, why: str) -> None:
        if time.monotonic() - self._started > LIVED_S:
            self._restarts = 0
        while self._restarts < RESTARTS:
            self._restarts += 1
            log.warning("%s is launched again (%d of %d): %s", self.name, self._restarts, RESTARTS, why)
            await asyncio.sleep(self._backoff_s * 2 ** (self._restarts - 1) if self._restarts > 1 else 0)
            try:
                self._engine = await self._launch()
            except (EngineError, ConfigError, OSError) as error:
                why = str(error)
            else:
                self._started = time.monotonic()
                return
        self._gone = f"{self.name} was launched {RESTARTS} times in a row and died each time. The last time: {why}"
        log.error("%s", self._gone)
