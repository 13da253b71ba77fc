"""A run watched: how far it is, its shards and its charts in the UI, and whoever else listens."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue

from prefect import get_run_logger

from flows.living import Living
from flows.stages import Stage
from reflash.errors import WorkerDied
from reflash.generate.fleet import Fleet
from reflash.generate.progress import Snapshot
from reflash.pool import WorkerPool
from reflash.report.attempt import attempt_of
from reflash.report.board import Board
from reflash.report.live import live_markdown, view_of
from reflash.report.tables import shards_line, shards_table
from reflash.report.words import describe, duration

log = logging.getLogger(__name__)

TICK_S = 2.0
TABLE_S = 15.0
PAGE_S = 45.0  # the first page of charts, too, comes so late: a run of seconds needs none

listeners: list[Callable[[Snapshot], None]] = []  # the command line's progress bar, in the same process


def follow(run: str, board: Board, fleet: Fleet, stages: Sequence[Stage], pool: WorkerPool) -> None:
    """Wait until work on every shard is over, telling meanwhile how far it is. Failures stay on the board."""
    began, ready = time.monotonic(), False
    bar, table = Living("progress", "progress", TICK_S), Living("shards", "table", TABLE_S)
    page = Page(run, board, fleet, pool)
    _show(board, fleet, bar, table)
    for _ in _ticks(board, stages):
        snapshot = fleet.progress.snapshot()
        if snapshot.seconds and not ready:
            ready = True
            names = ", ".join(attempt_of(snapshot, fleet.engines).engines)
            waited = duration(max(0.0, time.monotonic() - snapshot.seconds - began))
            get_run_logger().info(f"Engines ready after {waited}: {names}")
        _show(board, fleet, bar, table if table.due else None)
        page.turn()
        for listener in listeners:
            listener(snapshot)
    page.close()
    _show(board, fleet, bar, table)


def _show(board: Board, fleet: Fleet, bar: Living, table: Living | None) -> None:
    snapshot = fleet.progress.snapshot()
    bar.show(round(100 * snapshot.share, 1), describe(snapshot, board.total))
    if table:
        facts = fleet.progress.shards(), board.done, board.failed
        table.show(shards_table(*facts), shards_line(*facts))


class Page:
    """The page of charts. It is drawn by a worker process: neither the engines' loop nor the bar waits for it."""

    def __init__(self, run: str, board: Board, fleet: Fleet, pool: WorkerPool) -> None:
        self._run, self._board, self._fleet, self._pool = run, board, fleet, pool
        self._artifact = Living("report", "markdown", PAGE_S)
        self._next = time.monotonic() + PAGE_S
        self._drawing: tuple[Future[str], str] | None = None

    def turn(self) -> None:
        """Show what has been drawn; begin to draw where it is time."""
        if self._drawing and self._drawing[0].done():
            self._show(*self._drawing)
            self._drawing = None
        elif not self._drawing and time.monotonic() >= self._next and self._fleet.progress.began:
            self._next = time.monotonic() + PAGE_S
            view = view_of(self._run, self._fleet.progress, self._board.total)
            self._drawing = self._pool.submit(live_markdown, view), view.line

    def close(self) -> None:
        """The run's report takes its place."""
        if self._drawing:
            self._drawing[0].cancel()
        self._artifact.drop()

    def _show(self, drawn: Future[str], line: str) -> None:
        try:
            self._artifact.show(self._pool.result(drawn), line)
        except WorkerDied as error:
            log.warning("no charts this time: %s", error)


def _ticks(board: Board, stages: Sequence[Stage]) -> Iterator[None]:
    """Every two seconds, and once more when the last stage is over."""
    over: SimpleQueue[Stage] = SimpleQueue()  # `wait` with a timeout leaves a callback behind in each future, each time
    for stage in stages:
        stage.run.add_done_callback(partial(_put, over, stage))
    left = len(stages)
    while left:
        stages[0].run.wait(timeout=0)  # raises where a person has suspended the run
        tick = time.monotonic() + TICK_S
        while left and (ended := _next(over, tick)):
            left -= 1
            _settle(ended)
            board.gave_up(ended.shards)
        yield


def _put(over: SimpleQueue[Stage], stage: Stage, _: object) -> None:
    over.put(stage)


def _settle(ended: Stage) -> None:
    """Keep the final state: without it `state` asks the server, which may not know yet."""
    try:
        ended.run.wait()
    except Exception:  # Prefect itself failed around the task: those shards are not finished, the others go on
        log.exception("a task could not be run")


def _next(over: SimpleQueue[Stage], until: float) -> Stage | None:
    try:
        return over.get(timeout=max(0.0, until - time.monotonic()))
    except Empty:
        return None
