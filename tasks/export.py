"""A run's dataset written for a trainer."""

from __future__ import annotations

from pathlib import Path

from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from reflash.export.run import export_run


@task(name="export", task_run_name="export", cache_policy=NO_CACHE, result_serializer="json")
def export(run: str, form: str, out: Path | None) -> Path:
    """Write the file, and say where it is and what its reader has to be told."""
    made = export_run(run, form, out)
    missing = f"\n\nShards that are not in the dataset yet: {made.unpublished:,}" if made.unpublished else ""
    if made.lacking:
        get_run_logger().warning(f"The run's folder is incomplete: it lacks {', '.join(made.lacking[:3])}")
    line = f"{made.rows:,} rows for {form}"
    get_run_logger().info(f"{line} are in {made.path}")
    create_markdown_artifact(
        key="export", markdown=f"{line} are in `{made.path}`\n\n{made.note}{missing}\n", description=line
    )
    return made.path
