"""Shards that a node is to see committed, and what is known of each."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from threading import Lock

from reflash.generate.driver import Driver
from reflash.generate.progress import Progress
from reflash.ledger.claims import Claims, Slice, holding
from reflash.ledger.ledger import Ledger
from reflash.types import Planned, Shard

KEPT = 2  # plans of shards in memory, for their next slices


@dataclass(frozen=True, slots=True)
class ShardDone:
    """What became of a shard."""

    shard: str
    rows: int
    resumed: int  # conversations that an earlier attempt had finished
    fresh: bool  # False where the part was there already


@dataclass(slots=True, eq=False)
class Opened:
    """A shard that somebody waits for, or that this node may work on."""

    shard: Shard
    waiters: list[asyncio.Future[ShardDone]] = field(default_factory=list)
    turns: dict[str, int] = field(default_factory=dict)  # by conversation, in the plan's order; empty until begun here
    finished: set[str] = field(default_factory=set)  # conversations that were safe when work on it began here
    done: set[int] = field(default_factory=set)  # slices that this node has ended as done
    committing: bool = False
    whole: int = 0  # views in a row in which every slice was done and the shard not committed
    repairs: int = 0  # times that rows were found missing when all slices were done

    @property
    def begun(self) -> bool:
        """Whether this node works on it, or did."""
        return bool(self.turns)

    def tell(self, done: ShardDone) -> None:
        """Wake those who wait for it."""
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(done)

    def fail(self, error: BaseException) -> None:
        """Tell those who wait for it what stopped it."""
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_exception(error)


@dataclass(slots=True, eq=False)
class Held:
    """A slice that this node has claimed."""

    opened: Opened
    slice: Slice
    fence: int
    driver: Driver | None = None  # to which its rows were given
    laid: asyncio.Event = field(default_factory=asyncio.Event)  # its rows wait for an engine, or there were none
    task: asyncio.Task[None] | None = None

    @property
    def key(self) -> tuple[str, int]:
        """The shard, and which slice of it."""
        return self.slice.shard, self.slice.number


class Shards:
    """What is done with shards in the run's folder. It may take its time: called in threads.

    The last plans read are kept, so that the next slice of a shard need not read its plan again.
    """

    def __init__(self, ledger: Ledger, claims: Claims, progress: Progress, *, regenerate_calls: bool) -> None:
        self._ledger, self._claims, self._progress = ledger, claims, progress
        self._regenerate_calls = regenerate_calls
        self._plans: OrderedDict[str, list[Planned]] = OrderedDict()
        self._lock = Lock()

    def rows(self, opened: Opened, one: Slice, fence: int) -> deque[Planned]:
        """The conversations that a slice lacks; nothing where the shard is committed."""
        name = one.shard
        if self._ledger.is_committed(name):
            return deque()
        if not opened.begun or fence > 1:  # a slice that nobody had before has rows only from before we began
            opened.finished |= self._ledger.finished_conversations(name)
        plan = self._begin(opened)
        return deque(p for p in plan[one.start : one.end] if p.conversation.id not in opened.finished)

    def commit(self, opened: Opened) -> None:
        """Put a shard's part together, once for all nodes. Raises RunIncomplete where rows are missing."""
        self._begin(opened)
        self._ledger.commit(opened.shard.name, opened.turns)
        self._claims.drop(opened.shard.name)
        self.forget(opened.shard.name)

    def lacking(self, opened: Opened) -> list[tuple[Slice, int]]:
        """The slices of which rows are missing although they were ended as done, and the fences to take them by."""
        name = opened.shard.name
        opened.finished = self._ledger.finished_conversations(name)
        latest = self._claims.of(name)
        lacking = holding(opened.turns, opened.turns.keys() - opened.finished, opened.shard)
        fences = [latest.get((name, one.number)) for one in lacking]
        return [(one, claim.fence + 1 if claim else 1) for one, claim in zip(lacking, fences, strict=True)]

    def forget(self, shard: str) -> None:
        """A shard is over."""
        with self._lock:
            self._plans.pop(shard, None)

    def _begin(self, opened: Opened) -> list[Planned]:
        """The shard's conversations; the first time, what is safe already is counted."""
        plan = self._plan(opened.shard.name)
        if not opened.begun:
            turns = {p.conversation.id: p.conversation.turns(regenerate_calls=self._regenerate_calls) for p in plan}
            opened.turns = {name: len(positions) for name, positions in turns.items()}
            opened.finished &= turns.keys()
            safe = sum(opened.turns[name] for name in opened.finished)
            self._progress.found(opened.shard.name, len(opened.finished), safe)
        return plan

    def _plan(self, shard: str) -> list[Planned]:
        with self._lock:
            if shard not in self._plans:
                self._plans[shard] = self._ledger.planned(shard)
            self._plans.move_to_end(shard)
            while len(self._plans) > KEPT:
                self._plans.popitem(last=False)
            return self._plans[shard]
