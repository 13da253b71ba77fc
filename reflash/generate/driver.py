"""Engines kept full: as many conversations under way as the engines hold, whatever shard they belong to."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Sequence
from functools import partial

from reflash.config.run import RunConfig
from reflash.engines.base import Engine
from reflash.errors import (
    Defect,
    EngineError,
    EngineGone,
    EngineMisconfigured,
    ReflashError,
    RenderError,
    RunStopped,
)
from reflash.generate.ask import ask
from reflash.generate.conversation import Answering, Unanswered
from reflash.generate.desk import Batch, Desk
from reflash.generate.health import Health
from reflash.generate.order import Lengths
from reflash.generate.progress import Progress
from reflash.generate.watch import Watch
from reflash.generate.writer import SegmentWriter
from reflash.ledger.ledger import Ledger
from reflash.render.base import Renderer
from reflash.types import Message, Planned, Prompt, Sampling, Turn

log = logging.getLogger(__name__)

STOPPED = "the run was told to stop; the same command goes on with it"
STRIKES = 2  # times the width: so many rows given up with no answer in between are no accident of the rows


class Driver:
    """All engines of a node and the conversations in flight at them. Lives in one event loop."""

    def __init__(
        self, config: RunConfig, ledger: Ledger, renderer: Renderer, engines: Sequence[Engine], progress: Progress
    ) -> None:
        self._config, self._ledger = config, ledger
        self._answering = Answering.make(config, renderer)
        self._progress = progress
        self._desk = Desk()
        self._lengths = Lengths(regenerate_calls=config.tools.calls == "regenerate")
        self._batches: dict[Batch, SegmentWriter] = {}
        self._health = Health(engines, canary(renderer), config.engine.patience, progress)
        self._strikes = 0  # rows given up since the last answer
        self._rng = random.Random()  # for jitter only
        self._error: BaseException | None = None
        self._workers = [
            asyncio.create_task(self._work(home)) for home, engine in enumerate(engines) for _ in range(engine.width)
        ]
        watch = Watch(self._health.stations, config.engine.patience.stall_s, told=progress.counted)
        self._watches = [asyncio.create_task(watch.run()), asyncio.create_task(self._health.lateness.run())]
        for task in (*self._workers, *self._watches):
            task.add_done_callback(self._task_ended)

    @property
    def width(self) -> int:
        """Conversations under way at most."""
        return len(self._workers)

    @property
    def ended(self) -> bool:
        """Whether it answers nothing any more."""
        return self._error is not None

    @property
    def lost(self) -> bool:
        """Whether it ended for what another may get past: no engine answered, or a fault of ours."""
        return isinstance(self._error, EngineError | Defect) and self._error.retryable

    async def run(self, shard: str, rows: Iterable[Planned]) -> None:
        """Answer conversations of a shard; when it returns, all are in segments. A deque is emptied on the way.

        Raises RunStopped, or the error that ended the run for all shards; what got an answer is safe.
        """
        if self._error:
            raise self._error
        batch = self._desk.lay(shard, self._lengths.long_first(rows))
        writer = self._batches[batch] = self._writer(shard)
        try:
            await batch.over.wait()
        finally:  # cancelled where another node has passed its claim: answers that still come are dropped
            del self._batches[batch]
            self._desk.gone(batch)
            await (writer.flush() if writer in self._batches.values() else writer.close())
        if batch.error:
            raise batch.error

    async def hungry(self, least: int) -> None:
        """Wait until fewer conversations than that wait for a place, or than are answered while others are fetched."""
        await self._desk.hungry(least)

    def _writer(self, shard: str) -> SegmentWriter:
        """One writer for all batches of a shard that are under way, so that few objects are written."""
        for batch, writer in self._batches.items():
            if batch.shard == shard:
                return writer
        return SegmentWriter(self._ledger, shard, self._config.generate.flush_s, enough=max(8, self.width))

    def end(self, error: BaseException) -> None:
        """End every shard with this error; what is finished is kept, what is in flight is dropped."""
        self._error = self._error or error
        for task in (*self._workers, *self._watches):
            task.cancel()
        for batch in self._batches:
            batch.end(self._error)

    async def aclose(self) -> None:
        """Stop all work and wait until it has stopped."""
        self.end(RunStopped(STOPPED))
        await asyncio.gather(*self._workers, *self._watches, return_exceptions=True)

    async def _work(self, home: int) -> None:
        """One of `width` places at an engine: takes conversations for as long as there are any."""
        patience = self._config.engine.patience
        asking = partial(ask, health=self._health, home=home, patience=patience, rng=self._rng)
        while True:
            batch, planned = await self._desk.take()
            try:
                turns = await self._answering.answer(planned, asking)
            except Unanswered as failure:
                self._unanswered(batch, failure)
            else:
                self._strikes = 0
                self._lengths.seen(planned, turns)
                self._keep(batch, turns)

    def _task_ended(self, worker: asyncio.Task[None]) -> None:
        """A fault of ours ends the run; it must not leave a shard waiting for ever."""
        if not worker.cancelled() and (fault := worker.exception()):
            self.end(fault if isinstance(fault, ReflashError) else defect(fault))

    def _keep(self, batch: Batch, turns: list[Turn]) -> None:
        if batch not in self._batches:
            return
        try:
            self._batches[batch].add(turns)
        except ReflashError as error:  # the run's folder cannot be written: going on would lose answers
            self.end(error)
            return
        self._progress.finished(batch.shard, turns)
        batch.one_less()

    def _unanswered(self, batch: Batch, failure: Unanswered) -> None:
        """Set the row aside where it is to blame, else end the run with the engines' error."""
        asked = failure.asked
        if isinstance(asked.error, EngineMisconfigured | EngineGone) or asked.fault == "engine":
            self.end(asked.error or RunStopped(STOPPED))
            return
        if asked.fault == "given-up":
            log.warning("%s is set aside after %d attempts: %s", failure.conversation, asked.attempts, asked.error)
            self._strikes += 1
            if self._strikes > STRIKES * self.width and asked.error:
                self.end(asked.error)
                return
        self._keep(batch, failure.turns)


def defect(fault: BaseException) -> Defect:
    """A fault of ours as an error that names it and keeps where it came from."""
    error = Defect(f"a fault of Reflash itself, please report it: {type(fault).__name__}: {fault}")
    error.__cause__ = fault
    return error


def canary(renderer: Renderer) -> Prompt:
    """A small prompt that every sound engine answers with one token."""
    asked = (Message("user", "Hi"),)
    try:
        ids = renderer.prompt(asked, "", thinking=False)
    except RenderError:
        ids = tuple(renderer.encode("Hi"))
    return Prompt("canary", 0, ids, 1, Sampling(temperature=0.0), renderer.stop_ids, messages=asked)
