"""One shard generated: from where its segments end to its committed part."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task

from reflash.errors import ConfigError, EngineAbsent, EngineGone, EngineMisconfigured, RunStopped
from reflash.generate.fleet import Fleet, ShardDone
from reflash.report.lines import commit_line
from reflash.types import Shard

FINAL = (ConfigError, RunStopped, EngineMisconfigured, EngineGone, EngineAbsent)  # trying again would end the same way


def worth_another_try(error: object) -> bool:
    """Whether a shard that failed so may come through the next time."""
    return not isinstance(error, FINAL)


def may_pass(_task: Task[..., object], _run: TaskRun, state: State[object]) -> bool:
    """Whether a failed shard is worth another try."""
    return worth_another_try(state.result(raise_on_failure=False))


@task(
    name="generate",
    task_run_name="generate {shard.name}",
    cache_policy=NO_CACHE,
    result_serializer="json",
    retry_delay_seconds=[5, 30],
    retry_condition_fn=may_pass,
)
def generate(shard: Shard, fleet: Fleet) -> ShardDone:
    """Answer what the shard still lacks and commit it; a try goes on where the last one ended."""
    done = fleet.run_shard(shard)
    get_run_logger().info(commit_line(shard, done.resumed, fresh=done.fresh))
    return done
