"""What a second pass made good, put into the dataset of the run before it."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from reflash.config.run import RunConfig
from reflash.ledger.ledger import open_ledger
from reflash.publish.again import give_back


@task(name="merge", task_run_name="merge", cache_policy=NO_CACHE, result_serializer="json")
def merge(config: RunConfig) -> dict[str, int]:
    """Add this run's good rows to the runs whose rejects it made again; rows added, by run folder."""
    added = give_back(config.source, open_ledger(config.run))
    for run, rows in added.items():
        get_run_logger().info(f"{rows:,} rows made again are now in {run}/dataset")
    return added
