"""Regenerate the answers of a set: plan, generate, validate, publish, report."""

from __future__ import annotations

from contextlib import closing
from typing import Any, cast
from uuid import UUID

from prefect import flow, get_client, runtime
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.logs import show_in_run
from flows.watch import follow
from reflash.config.run import RunConfig
from reflash.errors import ConfigError, RunIncomplete
from reflash.generate.fleet import Fleet
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.pool import WorkerPool
from reflash.report.attempt import attempt_of
from reflash.report.report import Report
from reflash.types import Shard
from tasks.generate import generate
from tasks.merge import merge
from tasks.plan import plan
from tasks.publish import publish
from tasks.report import report
from tasks.validate import validate

SHARDS_AT_ONCE = 6  # enough rows for 2,000 places at 2,000 a shard; more would only hold rows in memory
STAGES = 3


def run_name() -> str:
    """Names a flow run by its folder and model."""
    config = RunConfig.model_validate(runtime.flow_run.parameters["config"])
    return f"{config.run.rstrip('/').rsplit('/', 1)[-1]} · {config.model.name}"


@flow(
    name="regenerate",
    flow_run_name=run_name,
    task_runner=cast("TaskRunner[PrefectFuture[Any]]", ThreadPoolTaskRunner(max_workers=STAGES * SHARDS_AT_ONCE)),
    result_serializer="json",
)
def regenerate(config: RunConfig) -> Report:
    """Regenerate every answer of a conversation set; the same folder goes on where it stopped.

    Raises RunIncomplete where a row is missing at the end.
    """
    show_in_run()
    _tag("reflash", config.engine.kind)
    ledger = open_ledger(config.run, create=True)
    with closing(WorkerPool(config.plan.workers)) as pool:
        shards = plan(config, pool)
        with Fleet(config, ledger, shards) as fleet:
            stages = [_submit(shard, config, fleet, pool) for shard in shards]
            follow(fleet, stages)
            attempt = attempt_of(fleet.progress.snapshot(), fleet.engines)
        summaries = [s.result() for s in stages if s.state.is_completed()]
        result = report(config, summaries, attempt)
    if not result.complete:
        if isinstance(fleet.error, ConfigError):
            raise fleet.error  # the same command would not go on
        raise RunIncomplete(f"{_what_is_missing(shards, stages, ledger)} {_cause(stages, fleet)}".rstrip())
    ledger.sweep()
    if config.source.reasons:
        merge(config)
    return result


def _tag(*names: str) -> None:
    """Tag the flow run, and not its tasks: for a tag of its own a task asks the server before it may start."""
    with get_client(sync_client=True) as client:
        client.update_flow_run(UUID(runtime.flow_run.id), tags={*runtime.flow_run.tags, *names})


def _submit(shard: Shard, config: RunConfig, fleet: Fleet, pool: WorkerPool) -> PrefectFuture[Any]:
    """A shard's three stages, queued one behind the other, so that each runs as soon as it can."""
    made = generate.with_options(retries=config.generate.retries).submit(shard, fleet)
    judged = validate.submit(shard, config, pool, wait_for=[made], return_state=False)
    return publish.submit(shard, config, pool, wait_for=[judged], return_state=False)


def _what_is_missing(shards: list[Shard], stages: list[PrefectFuture[Any]], ledger: Ledger) -> str:
    missing = [shard for shard, stage in zip(shards, stages, strict=True) if not stage.state.is_completed()]
    rows = sum(shard.rows for shard in missing)
    names = ", ".join(shard.name for shard in missing[:5]) + (", …" if len(missing) > 5 else "")
    first = next((m.name for shard in missing if (m := ledger.first_missing(shard.name))), None)
    return (
        f"{ledger.where}: {len(missing)} of {len(shards)} shards ({rows} conversations) are not finished: {names}. "
        + (f"The first conversation without an answer is {first}. " if first else "")
        + "The same command goes on with them."
    )


def _cause(stages: list[PrefectFuture[Any]], fleet: Fleet) -> str:
    failed = (str(stage.state.message) for stage in stages if stage.state.is_failed())
    words = str(fleet.error) if fleet.error else next(failed, "")
    return f"What stopped it: {words}" if words else ""
