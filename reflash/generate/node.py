"""A node at work: takes slices of shards by claims, has them answered, and commits the shards that are whole."""

from __future__ import annotations

import asyncio
import logging
import random
from bisect import insort
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from reflash.config.run import RunConfig
from reflash.errors import ReflashError, RunIncomplete, RunStopped, StoreError
from reflash.generate.choose import Free, candidates
from reflash.generate.driver import STOPPED, Driver, defect
from reflash.generate.opened import Held, Opened, ShardDone, Shards
from reflash.generate.others import Others
from reflash.generate.progress import Progress
from reflash.ledger.claims import Claims, Slice, all_done
from reflash.ledger.ledger import Ledger
from reflash.ledger.view import Claim, View
from reflash.types import Shard

log = logging.getLogger(__name__)

REPAIRS = 3  # of a shard: rows that go missing again and again are a fault that must be told


class Node:
    """What one process does of a run. Lives in one event loop."""

    def __init__(
        self,
        config: RunConfig,
        ledger: Ledger,
        progress: Progress,
        claims: Claims,
        ready: Callable[[], Awaitable[Driver]] | None,
        facts: Callable[[], Mapping[str, Any]],
        others: Others | None = None,
    ) -> None:
        """`ready` opens the engines at the first need; where it is None, this node only watches the others.

        `facts` go into each heartbeat; `others` counts what other nodes tell in theirs.
        """
        self._heartbeat_s, self._progress = config.generate.heartbeat_s, progress
        self._claims, self._ready, self._facts, self._others = claims, ready, facts, others
        calls = config.tools.calls == "regenerate"
        self._shards = Shards(ledger, claims, progress, regenerate_calls=calls)
        self._wanted: dict[str, Opened] = {}
        self._order: list[str] = []  # their names, sorted
        self._all: tuple[Shard, ...] = ()
        self._any: tuple[Shard, ...] = ()  # those to be wanted with the next one
        self._held: dict[tuple[str, int], Held] = {}
        self._mine: dict[tuple[str, int], int] = {}  # latest fences taken here
        self._view = View({}, {}, frozenset(), frozenset())
        self._seen = asyncio.Event()  # there is a first view
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()  # slices and commits
        self._loops: set[asyncio.Task[Any]] = set()  # heartbeats and intake; none before the first need
        self._rng = random.Random()  # for the order among equals only

    async def shard(self, shard: Shard) -> ShardDone:
        """Wait until a shard is committed, by whomever; this node works on it too. Raises what stopped it here."""
        waiter: asyncio.Future[ShardDone] = asyncio.get_running_loop().create_future()
        self.want(shard).waiters.append(waiter)
        return await waiter

    def want(self, shard: Shard) -> Opened:
        """This node may work on a shard from now on, until it is committed or something stops it."""
        for each in (shard, *self._any):
            if each.name not in self._wanted:
                self._wanted[each.name] = Opened(each)
                insort(self._order, each.name)
        self._any = ()
        if not self._loops:
            for loop in (self._beats(), self._intake()):
                self._go(loop, self._loops)
        self._wake.set()
        return self._wanted[shard.name]

    def want_all(self, shards: Sequence[Shard]) -> None:
        """The same of many: again, too, whenever somebody asks for one after work has been stopped."""
        self._all = self._any = tuple(shards)
        self.want(shards[0])

    async def stop(self) -> None:
        """Take no more and wait for what is under way, which ends soon where the engines have been told before.

        Claims are given up.
        """
        begun, tasks = bool(self._loops), [*self._loops, *self._tasks]
        for task in self._loops:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # the last rows are still being flushed
        self.give_up(RunStopped(STOPPED))
        if begun:
            with suppress(StoreError):  # then its claims lapse a little later
                await asyncio.to_thread(self._claims.leave)

    def give_up(self, error: ReflashError) -> None:
        """Tell everybody who waits what stopped work here."""
        for opened in list(self._wanted.values()):
            self._over(opened, error)
        self._any = self._all

    def _go(self, work: Coroutine[Any, Any, None], among: set[asyncio.Task[Any]] | None = None) -> asyncio.Task[None]:
        tasks = self._tasks if among is None else among
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """A fault of ours must not leave anybody waiting for ever; whoever asks again begins anew."""
        if not task.cancelled() and (fault := task.exception()):
            for other in (*self._loops, *self._tasks):
                other.cancel()
            self._loops.clear()
            self._held.clear()
            self.give_up(fault if isinstance(fault, ReflashError) else defect(fault))

    # Heartbeats, and what the others do

    async def _beats(self) -> None:
        while True:
            try:
                view = await asyncio.to_thread(self._beat)
            except StoreError as error:
                log.warning("no heartbeat could be given: %s", error)
            else:
                self._look(view)
            await asyncio.sleep(self._heartbeat_s)

    def _beat(self) -> View:
        held = [f"{shard}/{number}" for shard, number in self._held.copy()]
        self._claims.beat({**self._facts(), "holds": held})
        view = self._claims.look()
        if self._others:
            self._others.hear(view)
        return view

    def _look(self, view: View) -> None:
        """Let go of what others have passed or finished, and see what is free now."""
        self._view = view
        for key, held in self._held.items():
            latest = view.claims.get(key)
            if key[0] in view.committed or (latest and latest.fence > held.fence):
                log.warning("another node has taken over slice %d of shard %s, and goes on with it", key[1], key[0])
                if held.task:
                    held.task.cancel()
        for name in [name for name in self._order if name in view.committed]:
            self._committed(self._wanted[name], fresh=False)
        for opened in [self._wanted[name] for name in view.shards_claimed & self._wanted.keys()]:
            opened.whole = opened.whole + 1 if all_done(opened.shard, view.claims) else 0
            # Whoever ended its last slice may have died over it.
            if opened.whole > 1 and self._ready and (opened.begun or not self._held):
                self._go(self._commit(opened))
        self._seen.set()
        self._wake.set()

    # Taking slices

    async def _intake(self) -> None:
        """Keep rows waiting for every place at the engines, and no more than that: others may be idle."""
        await self._seen.wait()
        while self._ready:
            self._wake.clear()
            held = await self._take()
            if held is None:
                await self._wake.wait()
                continue
            held.task = self._go(self._work(held))
            await held.laid.wait()
            if driver := held.driver:
                await driver.hungry(max(4, driver.width // 8))

    async def _take(self) -> Held | None:
        shards = [self._wanted[name].shard for name in self._order]
        begun = [opened.shard for opened in self._wanted.values() if opened.begun]
        view = self._view
        found = candidates(shards, view, begun, self._free, self._rng)
        return self._got(await asyncio.to_thread(self._claim_first, found))

    def _claim_first(self, found: Iterator[Free]) -> Held | None:
        """The best of the free slices that nobody else claims before us. It may take its time: called in a thread."""
        for one, fence in found:
            opened = self._wanted.get(one.shard)
            if opened is None or (one.shard, one.number) in self._held or one.number in opened.done:
                continue
            if held := self._claim(opened, one, fence):
                return held
        return None

    def _claim(self, opened: Opened, one: Slice, fence: int) -> Held | None:
        won = self._claims.take(one, fence)
        self._view.claims[one.shard, one.number] = Claim(one.shard, one.number, fence)
        return Held(opened, one, fence) if won else None

    def _got(self, held: Held | None) -> Held | None:
        if held:
            self._mine[held.key] = held.fence
            self._held[held.key] = held
        return held

    def _free(self, claim: Claim) -> bool:
        """Whether a slice that has a claim may be taken: by ourselves too, where work on it has failed here."""
        key = (claim.shard, claim.slice)
        if self._mine.get(key) == claim.fence:
            return claim.outcome != "done" and key not in self._held
        return self._claims.lapsed(self._view, claim)

    # A slice, and its shard

    async def _work(self, held: Held) -> None:
        """Have a slice answered, and its shard committed where it was the last one."""
        opened = held.opened
        try:
            rows = await asyncio.to_thread(self._shards.rows, opened, held.slice, held.fence)
            if rows and self._ready:
                held.driver = await self._ready()
                answering = asyncio.ensure_future(held.driver.run(opened.shard.name, rows))
                await asyncio.sleep(0)  # it lays them
                held.laid.set()
                await answering
            await asyncio.to_thread(self._claims.end, held.slice, held.fence, done=True)
            opened.done.add(held.slice.number)
        except ReflashError as error:
            await self._give_up(held, error)
            return
        finally:
            self._held.pop(held.key, None)
            held.laid.set()
            self._wake.set()
        claims = await asyncio.to_thread(self._claims.of, opened.shard.name)
        if all_done(opened.shard, claims):
            await self._commit(opened)

    async def _give_up(self, held: Held, error: ReflashError) -> None:
        """Leave a slice to others, and tell those who wait for its shard, or for any where none can be worked on."""
        self._over(held.opened, error)
        if not isinstance(error, StoreError) or (held.driver and held.driver.ended):
            self.give_up(error)
        if not isinstance(error, RunStopped):
            with suppress(StoreError):
                await asyncio.to_thread(self._claims.end, held.slice, held.fence, done=False)

    async def _commit(self, opened: Opened) -> None:
        """Put the shard's part together, once for all nodes; rows that are missing after all are made."""
        if opened.committing or opened.shard.name not in self._wanted:
            return
        opened.committing = True
        try:
            await asyncio.to_thread(self._shards.commit, opened)
        except RunIncomplete as error:
            await self._repair(opened, error)
        except ReflashError as error:
            self._over(opened, error)
        else:
            self._committed(opened, fresh=True)
        finally:
            opened.committing = False

    async def _repair(self, opened: Opened, error: RunIncomplete) -> None:
        """Segments were lost: take their slices once more."""
        opened.repairs += 1
        if opened.repairs > REPAIRS:
            self._over(opened, error)
            return
        log.warning("%s", error)
        for one, fence in await asyncio.to_thread(self._shards.lacking, opened):
            opened.done.discard(one.number)
            if held := self._got(await asyncio.to_thread(self._claim, opened, one, fence)):
                held.task = self._go(self._work(held))

    def _committed(self, opened: Opened, *, fresh: bool) -> None:
        shard = opened.shard
        if self._wanted.get(shard.name) is not opened:
            return
        self._progress.committed(shard.name, shard.rows, shard.turns)
        resumed = len(opened.finished) if fresh else shard.rows
        self._over(opened, ShardDone(shard.name, shard.rows, resumed, fresh=fresh))

    def _over(self, opened: Opened, end: ShardDone | ReflashError) -> None:
        """Nothing more is to be done for a shard here, unless somebody asks for it again."""
        name = opened.shard.name
        if self._wanted.get(name) is opened:
            del self._wanted[name]
            self._order.remove(name)
        if isinstance(end, ShardDone):
            opened.tell(end)
        else:
            opened.fail(end)
