"""The plan: rows to shards."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE

from reflash.config.run import RunConfig
from reflash.ledger.ledger import open_ledger
from reflash.plan.plan import plan_run
from reflash.pool import WorkerPool
from reflash.report.lines import plan_line
from reflash.report.tables import plan_table
from reflash.types import Shard


@task(name="plan", task_run_name="plan", cache_policy=NO_CACHE, result_serializer="json")
def plan(config: RunConfig, pool: WorkerPool) -> list[Shard]:
    """Read the source, render the first prompts, write the shards; found whole, it is left as it is."""
    ledger = open_ledger(config.run, create=True)
    shards = plan_run(config, ledger, pool)
    line = plan_line(ledger.source_counts(), shards)
    get_run_logger().info(line)
    create_table_artifact(key="plan", table=plan_table(ledger.source_counts(), shards), description=line)
    return shards
