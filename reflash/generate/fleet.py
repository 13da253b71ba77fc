"""A node's engines and driver in an event loop of their own, so that shard tasks in threads can share them."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import uvloop

from reflash.config.run import RunConfig
from reflash.engines.base import Engine
from reflash.engines.open import open_engines
from reflash.errors import ReflashError, RunStopped
from reflash.generate.driver import STOPPED, Driver
from reflash.generate.progress import Progress
from reflash.ledger import names
from reflash.ledger.ledger import Ledger
from reflash.render.shared import shared_renderer
from reflash.types import Planned, Shard

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ShardDone:
    """What became of a shard."""

    shard: str
    rows: int
    resumed: int  # conversations that an earlier attempt had finished
    fresh: bool  # False where the part was there already


class Fleet:
    """Engines of this node, open from `with` to its end."""

    def __init__(self, config: RunConfig, ledger: Ledger, shards: list[Shard]) -> None:
        self._config, self._ledger = config, ledger
        self.progress = Progress(sum(s.rows for s in shards))
        self.engines: list[Engine] = []
        self.error: ReflashError | None = None  # the last that ended a shard
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="reflash-engines", daemon=True)
        self._driver: Driver | None = None
        self._opening = asyncio.Lock()
        self._opening_tasks: set[asyncio.Future[Driver]] = set()
        self._running: set[asyncio.Future[None]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self._closed = True
        try:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=10)

    def run_shard(self, shard: Shard) -> ShardDone:
        """Generate and commit one shard, from where its segments end; blocks. Safe from several threads at once.

        Raises RunIncomplete, RunStopped, EngineError or StoreError.
        """
        if self._ledger.is_committed(shard.name):
            self.progress.found(shard.name, shard.rows)
            return ShardDone(shard.name, shard.rows, shard.rows, fresh=False)
        turns, todo = self._todo(shard.name)
        resumed = len(turns) - len(todo)
        self.progress.found(shard.name, resumed)
        try:
            self._call(self._drive(shard.name, todo))
        except ReflashError as error:
            self.error = error
            raise
        self._ledger.commit(shard.name, turns)
        return ShardDone(shard.name, shard.rows, resumed, fresh=True)

    def _todo(self, shard: str) -> tuple[dict[str, int], deque[Planned]]:
        """Turns by conversation in the plan's order, and what no segment holds yet.

        Only the latter keeps rows in memory, and each only until it is answered.
        """
        planned = self._ledger.planned(shard)
        calls = self._config.tools.calls == "regenerate"
        turns = {p.conversation.id: len(p.conversation.turns(regenerate_calls=calls)) for p in planned}
        done = self._ledger.finished_conversations(shard)
        return turns, deque(p for p in planned if p.conversation.id not in done)

    async def _ready(self) -> Driver:
        """The driver, with engines opened at the first need, and again where they were lost."""
        async with self._opening:
            if self._driver is None or self._driver.lost:
                self._driver = await self._open()
            return self._driver

    async def _open(self) -> Driver:
        await self._let_go()
        self.engines = await open_engines(
            self._config.engine,
            context=self._config.model.context,
            log_folder=log_folder(self._ledger),
            model=self._config.model.name,
        )
        renderer = shared_renderer(self._config.model, self._config.thinking)
        self.progress.begin()
        return Driver(self._config, self._ledger, renderer, self.engines, self.progress)

    async def _drive(self, shard: str, todo: deque[Planned]) -> None:
        if not todo:
            return
        opening = asyncio.ensure_future(self._ready())
        self._opening_tasks.add(opening)
        opening.add_done_callback(self._opening_tasks.discard)
        driver = await opening
        running = asyncio.ensure_future(driver.run(shard, todo))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        await running

    async def _close(self) -> None:
        """End what is under way: engines that are still starting, rows in flight, engines."""
        for task in list(self._opening_tasks):
            task.cancel()
        await asyncio.gather(*self._opening_tasks, return_exceptions=True)
        running = list(self._running)
        await self._let_go()
        await asyncio.gather(*running, return_exceptions=True)  # the last rows are still being flushed

    async def _let_go(self) -> None:
        if self._driver:
            await self._driver.aclose()
        await asyncio.gather(*(engine.aclose() for engine in self.engines))

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        with self._lock:  # a loop that has stopped would never answer
            if self._closed:
                work.close()
                raise RunStopped(STOPPED)
            answer = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return answer.result()
        except CancelledError as error:
            raise RunStopped(STOPPED) from error


def log_folder(ledger: Ledger) -> Path | None:
    """Where engines write their logs: in the run's folder where that is on a disk."""
    return ledger.store.root / names.LOGS if ledger.store.root else None
