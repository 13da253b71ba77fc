"""Regenerate the answers of a set: plan, generate, validate, publish, report."""

from __future__ import annotations

from contextlib import closing
from typing import cast
from uuid import UUID

from prefect import flow, get_client, runtime

from blocks.engine import Engine
from blocks.hub import HubToken
from blocks.store import Store
from flows.attempts import FOR_GOOD, Attempt, check_attempt, refused, superseded
from flows.crew import crew
from flows.logs import show_in_run
from flows.pulse import GivenUp, pulsing
from flows.ready import check_machine
from flows.saved import with_blocks
from flows.stages import Stage, begun, runner_for
from flows.watch import follow
from reflash.config.run import RunConfig
from reflash.errors import ConfigError, RunIncomplete
from reflash.generate.fleet import Fleet
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.pool import WorkerPool
from reflash.report.attempt import attempt_of
from reflash.report.board import Board
from reflash.report.report import Report
from reflash.report.words import counted, without_secrets
from reflash.types import Shard
from tasks.merge import merge
from tasks.plan import plan
from tasks.report import report


def run_name() -> str:
    """Names a flow run by its folder and model."""
    config = RunConfig.model_validate(runtime.flow_run.parameters["config"])
    return f"{config.run.rstrip('/').rsplit('/', 1)[-1]} · {config.model.name}"


@flow(
    name="regenerate",
    flow_run_name=run_name,
    result_serializer="json",
)
def regenerate(
    config: RunConfig,
    engine: Engine | None = None,
    store: Store | None = None,
    hub: HubToken | None = None,
    attempt: Attempt = 1,
) -> Report:
    """Regenerate every answer of a conversation set; the same folder goes on where it stopped.

    Raises RunIncomplete where a row is missing at the end.

    Args:
        config: Everything about the run.
        engine: A saved engine, in place of the config's own.
        store: Saved keys of an object store, where the run's folder is a URL.
        hub: A saved token, for sets and models of the Hub that are not public.
        attempt: Counted by the automation that goes on with a run that broke off; leave it at 1.
    """
    show_in_run()
    try:
        check_attempt(config, attempt)
        return _regenerate(with_blocks(config, engine, store, hub))
    except FOR_GOOD as error:
        return cast(Report, refused(error))
    except GivenUp as error:
        return cast(Report, superseded(error))


def _regenerate(config: RunConfig) -> Report:
    _tag("reflash", config.engine.kind)
    if not config.nodes.count:
        check_machine(config)
    ledger = open_ledger(config.run, create=True)
    with closing(WorkerPool(config.plan.workers)) as pool:
        shards = plan(config, pool)
        _say_how_much(shards)
        board = Board(shards)
        with (
            runner_for(shards) as runner,
            crew(config, ledger, shards) as fleet,
            begun(runner, config, fleet, pool, board) as stages,
            pulsing(),
        ):
            follow(ledger.where, board, fleet, stages, pool)
            attempt = attempt_of(fleet.progress.snapshot(), fleet.engines, fleet.progress.rates)
        stopped = _cause(stages, fleet)
        result = report(config, board.summaries, attempt, stopped)
    if not result.complete:
        if isinstance(fleet.error, ConfigError):
            raise fleet.error  # the same command would not go on
        raise RunIncomplete(
            f"{_what_is_missing(board, ledger)} {f'What stopped it: {stopped}' if stopped else ''}".rstrip()
        )
    ledger.sweep()
    if config.source.reasons:
        merge(config)
    return result


def _tag(*names: str) -> None:
    """Tag the flow run, and not its tasks: for a tag of its own a task asks the server before it may start."""
    with get_client(sync_client=True) as client:
        client.update_flow_run(UUID(runtime.flow_run.id), tags={*runtime.flow_run.tags, *names})


def _say_how_much(shards: list[Shard]) -> None:
    """Put the number of rows into the flow run's name: it is known only now."""
    name = f"{run_name()} · {counted(sum(shard.rows for shard in shards), 'row')}"
    with get_client(sync_client=True) as client:
        client.update_flow_run(UUID(runtime.flow_run.id), name=name)


def _what_is_missing(board: Board, ledger: Ledger) -> str:
    missing = board.missing
    rows = sum(shard.rows for shard in missing)
    names = ", ".join(shard.name for shard in missing[:5]) + (", …" if len(missing) > 5 else "")
    first = next((m.name for shard in missing if (m := ledger.first_missing(shard.name))), None)
    return (
        f"{ledger.where}: {len(missing)} of {len(board.shards)} shards ({rows} conversations) are not finished: "
        + f"{names}. "
        + (f"The first conversation without an answer is {first}. " if first else "")
        + "The same command goes on with them."
    )


def _cause(stages: list[Stage], fleet: Fleet) -> str:
    """What ended the first shard that failed: an engine's error holds the end of its log."""
    runs = (run for stage in stages for run in (*stage.before, stage.run))
    failed = (str(run.state.message) for run in runs if run.state.is_failed())
    return without_secrets(str(fleet.error) if fleet.error else next(failed, ""))
