"""One judged shard written to the dataset and the rejects."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from reflash.config.run import RunConfig
from reflash.pool import WorkerPool
from reflash.publish.run import publish_shard
from reflash.publish.summary import ShardSummary
from reflash.report.board import Board
from reflash.report.lines import shard_line
from reflash.types import Shard
from tasks.generate import may_pass


@task(
    name="publish",
    task_run_name="publish {shard.name}",
    cache_policy=NO_CACHE,
    result_serializer="json",
    retries=1,  # a worker may be killed for want of memory
    retry_delay_seconds=5,
    retry_condition_fn=may_pass,
)
def publish(shard: Shard, config: RunConfig, pool: WorkerPool, board: Board) -> ShardSummary:
    """Write the good rows and the others, in another process, and tell the board."""
    summary = pool.run(publish_shard, config, shard.name)
    board.published(summary)
    get_run_logger().info(shard_line(summary))
    return summary
