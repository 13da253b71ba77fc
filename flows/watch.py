"""A run watched: the progress artifact in the UI, and whoever else listens."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import TypeAlias, cast
from uuid import UUID

import httpx
from prefect import get_run_logger
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.futures import PrefectFuture

from reflash.generate.fleet import Fleet
from reflash.generate.progress import Snapshot
from reflash.publish.summary import ShardSummary, add_up
from reflash.report.attempt import attempt_of
from reflash.report.words import describe, duration

log = logging.getLogger(__name__)

TICK_S = 2.0

Stage: TypeAlias = PrefectFuture[ShardSummary]

listeners: list[Callable[[Snapshot], None]] = []  # the command line's progress bar, in the same process


def follow(fleet: Fleet, stages: Sequence[Stage]) -> None:
    """Wait for every shard's last stage, telling how far the run is every two seconds. Failures stay in the futures."""
    began, ready = time.monotonic(), False
    first = describe(fleet.progress.snapshot())
    artifact = cast(UUID, create_progress_artifact(0.0, key="progress", description=first))
    for judged in _judged(stages):
        snapshot = fleet.progress.snapshot()
        if snapshot.seconds and not ready:
            ready = True
            names = ", ".join(attempt_of(snapshot, fleet.engines).engines)
            waited = duration(max(0.0, time.monotonic() - snapshot.seconds - began))
            get_run_logger().info(f"Engines ready after {waited}: {names}")
        _show(artifact, snapshot, judged)
        for listener in listeners:
            listener(snapshot)


def _show(artifact: UUID, snapshot: Snapshot, judged: ShardSummary) -> None:
    """Move the bar in the UI. Prefect's client tries for a minute; a server away for longer must not end the work."""
    try:
        update_progress_artifact(artifact, round(100 * snapshot.share, 1), description=describe(snapshot, judged))
    except httpx.HTTPError as error:
        log.warning("the Prefect server does not answer, the run goes on without it: %s", error)


def _judged(stages: Sequence[Stage]) -> Iterator[ShardSummary]:
    """The shards that are done so far, added up: every two seconds, and once more when the last one is done."""
    done: SimpleQueue[Stage] = SimpleQueue()  # `wait` with a timeout leaves a callback behind in each future, each time
    for stage in stages:
        stage.add_done_callback(done.put)
    judged, left = ShardSummary(), len(stages)
    while left:
        stages[0].wait(timeout=0)  # raises where a person has suspended the run
        tick = time.monotonic() + TICK_S
        while left and (ended := _next(done, tick)):
            left -= 1
            if summary := _summary(ended):
                judged = add_up((judged, summary))
        yield judged


def _summary(ended: Stage) -> ShardSummary | None:
    try:
        ended.wait()  # keeps the final state; without it `state` asks the server, which may not know yet
    except Exception:  # Prefect itself failed around the task: that shard is not finished, the others go on
        log.exception("a shard's task could not be run")
        return None
    return ended.result() if ended.state.is_completed() else None


def _next(done: SimpleQueue[Stage], until: float) -> Stage | None:
    try:
        return done.get(timeout=max(0.0, until - time.monotonic()))
    except Empty:
        return None
