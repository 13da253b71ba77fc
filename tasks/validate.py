"""One committed shard judged."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from reflash.config.run import RunConfig
from reflash.pool import WorkerPool
from reflash.report.lines import alarm_lines
from reflash.types import Shard
from reflash.validate.run import validate_shard
from reflash.validate.summary import Tally
from tasks.generate import may_pass


@task(
    name="validate",
    task_run_name="validate {shard.name}",
    cache_policy=NO_CACHE,
    result_serializer="json",
    retries=1,  # a worker may be killed for want of memory
    retry_delay_seconds=5,
    retry_condition_fn=may_pass,
)
def validate(shard: Shard, config: RunConfig, pool: WorkerPool) -> Tally:
    """Judge each turn, in another process: no engine waits for it. A reason that hits too many is a warning."""
    tally = pool.run(validate_shard, config, shard.name)
    for line in alarm_lines(tally.alarms, tally.reasons, tally.turns):
        get_run_logger().warning(f"Shard {shard.name}: {line}")
    return tally
