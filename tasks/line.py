"""Shards of a group on their way through the stages, by the stages' own policies and without a task run each."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

from prefect import get_run_logger
from prefect.tasks import Task

from reflash.config.run import RunConfig
from reflash.errors import ReflashError, RunStopped
from reflash.generate.driver import STOPPED
from reflash.generate.fleet import Fleet
from reflash.pool import WorkerPool
from reflash.report.board import Board
from reflash.types import Shard
from tasks.generate import generate, worth_another_try
from tasks.publish import publish
from tasks.validate import validate

T = TypeVar("T")


class Line:
    """The stages, for shards of any group: the first to come is the first to be served."""

    def __init__(self, config: RunConfig, fleet: Fleet, pool: WorkerPool, board: Board, at_once: int) -> None:
        self._config, self._fleet, self._pool, self._board = config, fleet, pool, board
        self._making = ThreadPoolExecutor(at_once, "generate")
        self._judging = ThreadPoolExecutor(2 * at_once, "judge")
        self._over = threading.Event()

    def run(self, shards: Sequence[Shard]) -> None:
        """Take them the whole way, and wait. One that fails stops no other; the first error is raised at the end."""
        ends = [self._start(shard) for shard in shards]
        errors = [error for end in ends if (error := _error(end))]
        self._board.gave_up(shards)
        if errors:
            raise errors[0]

    def close(self) -> None:
        """Begin nothing more. What is under way ends with the fleet."""
        self._over.set()
        for executor in (self._making, self._judging):
            executor.shutdown(wait=False, cancel_futures=True)

    def _start(self, shard: Shard) -> Future[None]:
        try:
            made = self._making.submit(copy_context().run, self._made, shard)
            return self._judging.submit(copy_context().run, self._judged, shard, made)
        except RuntimeError as error:  # closed meanwhile
            raise RunStopped(STOPPED) from error

    def _made(self, shard: Shard) -> None:
        self._tried(generate.with_options(retries=self._config.generate.retries), shard, self._fleet)

    def _judged(self, shard: Shard, made: Future[None]) -> None:
        made.result()
        self._tried(validate, shard, self._config, self._pool)
        self._tried(publish, shard, self._config, self._pool, self._board)

    def _tried(self, task: Task[..., T], shard: Shard, *others: Any) -> T:
        """What a task run would do: call it, and call it again as its policy says."""
        delays = _delays(task)
        for tries in range(task.retries):
            try:
                return task.fn(shard, *others)
            except ReflashError as error:
                if not worth_another_try(error):
                    raise
                delay = delays[min(tries, len(delays) - 1)]
                get_run_logger().warning(f"{task.name} {shard.name} is tried again in {delay:g} s: {error}")
                if self._over.wait(delay):
                    raise
        return task.fn(shard, *others)


def _delays(task: Task[..., Any]) -> list[float]:
    given = task.retry_delay_seconds
    return [float(s) for s in given] if isinstance(given, list) else [float(given or 0)]


def _error(end: Future[None]) -> BaseException | None:
    """How a shard's way ended; waits for it."""
    try:
        error = end.exception()
    except CancelledError as cancelled:
        error = cancelled
    return RunStopped(STOPPED) if isinstance(error, CancelledError) else error
