"""A run watched: the progress artifact in the UI, and whoever else listens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.futures import PrefectFuture, wait

from reflash.generate.fleet import Fleet
from reflash.generate.progress import Snapshot
from reflash.report.words import describe

TICK_S = 2.0

listeners: list[Callable[[Snapshot], None]] = []  # the command line's progress bar, in the same process


def follow(fleet: Fleet, futures: Sequence[PrefectFuture[Any]]) -> None:
    """Wait for every future, telling how far the run is every two seconds. Failures are left in the futures."""
    artifact = cast(UUID, create_progress_artifact(0.0, description="Conversations finished"))
    left = list(futures)
    while left:
        left = list(wait(left, timeout=TICK_S).not_done)
        snapshot = fleet.progress.snapshot()
        update_progress_artifact(artifact, round(100 * snapshot.share, 1), description=describe(snapshot))
        for listener in listeners:
            listener(snapshot)
    for future in futures:
        future.wait()  # keeps the final state; without it `state` asks the server, which may not know yet
