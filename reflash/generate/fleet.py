"""A node's engines and driver in an event loop of their own, so that shard tasks in threads can share them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, TypeVar

import uvloop

from reflash.config.run import RunConfig
from reflash.engines.base import Engine
from reflash.engines.open import open_engines
from reflash.errors import ReflashError, RunStopped
from reflash.generate.driver import STOPPED, Driver
from reflash.generate.identity import gone_here, node_facts, node_name
from reflash.generate.node import Node
from reflash.generate.opened import ShardDone
from reflash.generate.others import Others
from reflash.generate.progress import Progress
from reflash.heap import few_arenas
from reflash.ledger import names
from reflash.ledger.claims import Claims
from reflash.ledger.ledger import Ledger
from reflash.render.shared import shared_renderer
from reflash.types import Shard

__all__ = ["Fleet", "ShardDone", "log_folder"]

T = TypeVar("T")
Role: TypeAlias = Literal["alone", "node", "watch"]


class Fleet:
    """Engines of this node, open from `with` to its end."""

    def __init__(
        self, config: RunConfig, ledger: Ledger, shards: list[Shard], *, node: str = "", role: Role = "alone"
    ) -> None:
        """`node` names this process among those of the run, by default by its machine and pid.

        `role`: "node" one of several, "alone" counts what others who join do, too; "watch" works on nothing itself.
        """
        self._config, self._ledger, self._shards, self._role = config, ledger, shards, role
        self.progress = Progress(shards, config.sampling.max_new_tokens)
        self.engines: list[Engine] = []
        self.error: ReflashError | None = None  # the last that ended a shard
        self.claims = Claims(ledger.store, node or node_name(), config.generate.expiry_s, gone_here)
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="reflash-engines", daemon=True)
        self._driver: Driver | None = None
        self._opening = asyncio.Lock()
        self._opening_tasks: set[asyncio.Future[Driver]] = set()
        others = None if role == "node" else Others(self.claims, self.progress)
        ready = None if role == "watch" else self._ready
        self._node = Node(config, ledger, self.progress, self.claims, ready, self._facts, others)
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        few_arenas()  # tables of segments and parts are made in threads
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
        """See one shard committed, by this node or another, from where its segments end; blocks. From any thread.

        Raises RunIncomplete, RunStopped, EngineError or StoreError.
        """
        if self._ledger.is_committed(shard.name):
            self.progress.found(shard.name, shard.rows, shard.turns)
            self.progress.committed(shard.name)
            return ShardDone(shard.name, shard.rows, shard.rows, fresh=False)
        try:
            return self._call(self._node.shard(shard))
        except ReflashError as error:
            self.error = error
            raise

    def run_all(self) -> None:
        """See every shard committed, by this node and others; blocks. Raises the first error of any shard."""
        self.take_any()
        for shard in self._shards:
            self.run_shard(shard)

    def take_any(self) -> None:
        """Let this node work on every shard, whoever waits for it: it never idles while others hold some."""
        if self._shards:
            self._loop.call_soon_threadsafe(self._node.want_all, self._shards)

    def give_up(self, error: ReflashError) -> None:
        """Tell everybody who waits for a shard that none will come."""
        self.error = error
        self._loop.call_soon_threadsafe(self._node.give_up, error)

    def others_live(self) -> bool:
        """Whether another node of the run was heard of lately."""
        view = self.claims.look()
        return bool(view.nodes.keys() - self.claims.dead(view) - {self.claims.node})

    def _facts(self) -> dict[str, Any]:
        """What stands in this node's heartbeat."""
        facts = node_facts(self.progress, [engine.name for engine in self.engines], self.error)
        return {"role": self._role, **facts}

    async def _ready(self) -> Driver:
        """The driver, with engines opened at the first need, and again where they were lost."""
        if self._closed:
            raise RunStopped(STOPPED)
        opening = asyncio.ensure_future(self._opened())
        self._opening_tasks.add(opening)
        opening.add_done_callback(self._opening_tasks.discard)
        return await asyncio.shield(opening)  # a slice that another node takes over must not end the launch

    async def _opened(self) -> Driver:
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

    async def _close(self) -> None:
        """End what is under way: engines that are still starting, rows in flight, engines."""
        for task in list(self._opening_tasks):
            task.cancel()
        await asyncio.gather(*self._opening_tasks, return_exceptions=True)
        await self._let_go()
        await self._node.stop()

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


def log_folder(ledger: Ledger) -> Path:
    """Where engines write their logs: in the run's folder where that is on a disk, else in this user's state folder."""
    if ledger.store.root:
        return ledger.store.root / names.LOGS
    home = os.environ.get("XDG_STATE_HOME")
    state = Path(home) if home else Path.home() / ".local" / "state"
    return state / "reflash" / "logs" / hashlib.blake2b(ledger.store.url.encode(), digest_size=8).hexdigest()
