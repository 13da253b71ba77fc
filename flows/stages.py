"""Shards handed to their stages: a task run a stage and shard, or, where there are many shards, one a group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from prefect.futures import PrefectFuture
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.tasks import Task

from reflash.config.run import RunConfig
from reflash.generate.fleet import Fleet
from reflash.pool import WorkerPool
from reflash.report.board import Board
from reflash.types import Shard
from tasks.generate import generate
from tasks.group import Group
from tasks.group import shards as shards_of
from tasks.line import Line
from tasks.publish import publish
from tasks.validate import validate

STAGES = 3
SHARDS_AT_ONCE = 6  # enough rows for 2,000 places at 2,000 a shard; more would only hold rows in memory
GROUPS = 100  # at most, and as many shards that have a task run a stage: beyond, pages and the server grow slow

Runner: TypeAlias = ThreadPoolTaskRunner[Any]


@dataclass(frozen=True, slots=True)
class Stage:
    """The last task run of some shards: when it is over, work on them is over."""

    shards: tuple[Shard, ...]
    run: PrefectFuture[Any]
    before: tuple[PrefectFuture[Any], ...] = ()  # where one of these fails, the last never begins


def runner_for(shards: Sequence[Shard]) -> Runner:
    """What runs the stages of so many shards."""
    if len(shards) <= GROUPS:
        return ThreadPoolTaskRunner(max_workers=STAGES * SHARDS_AT_ONCE)
    size = _size(len(shards))
    # When the last shard of one group runs out, the others still give enough to do.
    return ThreadPoolTaskRunner(max_workers=1 - -(SHARDS_AT_ONCE - 1) // size)


@contextmanager
def begun(runner: Runner, config: RunConfig, fleet: Fleet, pool: WorkerPool, board: Board) -> Iterator[list[Stage]]:
    """The stages of all shards, queued; each begins as soon as it can. Where the block fails, nothing more begins."""
    try:
        with _queued(runner, config, fleet, pool, board) as stages:
            yield stages
    except BaseException:
        pool.close()  # else every shard that waits for its verdicts would still get them
        raise


@contextmanager
def _queued(runner: Runner, config: RunConfig, fleet: Fleet, pool: WorkerPool, board: Board) -> Iterator[list[Stage]]:
    if len(board.shards) <= GROUPS:
        yield [_one(runner, shard, config, fleet, pool, board) for shard in board.shards]
        return
    with closing(Line(config, fleet, pool, board, SHARDS_AT_ONCE)) as line:
        groups = _groups(board.shards)
        yield [Stage(group.shards, _submit(runner, shards_of, group=group, line=line)) for group in groups]


def _one(runner: Runner, shard: Shard, config: RunConfig, fleet: Fleet, pool: WorkerPool, board: Board) -> Stage:
    """A shard's three stages, queued one behind the other."""
    generating = generate.with_options(retries=config.generate.retries)
    made = _submit(runner, generating, shard=shard, fleet=fleet)
    judged = _submit(runner, validate, made, shard=shard, config=config, pool=pool)
    last = _submit(runner, publish, judged, shard=shard, config=config, pool=pool, board=board)
    return Stage((shard,), last, (made, judged))


def _submit(
    runner: Runner, task: Task[..., Any], after: PrefectFuture[Any] | None = None, **parameters: Any
) -> PrefectFuture[Any]:
    """As the task's own `submit`, which knows only the flow's runner: that one is made before the plan is known."""
    return runner.submit(task, parameters, [after] if after else None)


def _groups(shards: Sequence[Shard]) -> list[Group]:
    size = _size(len(shards))
    return [Group(tuple(shards[at : at + size])) for at in range(0, len(shards), size)]


def _size(shards: int) -> int:
    """Shards of a group."""
    return -(-shards // GROUPS)
