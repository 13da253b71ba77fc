"""A report that stands in a run's folder, shown in the UI."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE

from reflash.report.lines import verdict_line
from reflash.report.report import Report
from reflash.report.tables import verdicts_table
from reflash.report.text import report_markdown


@task(name="show", task_run_name="show", cache_policy=NO_CACHE, result_serializer="json")
def show(result: Report) -> None:
    """Make artifacts of a report: the verdicts as a table, and the whole."""
    line = verdict_line(result)
    get_run_logger().info(f"{line} Report: {result.run}/report.md")
    create_table_artifact(key="verdicts", table=verdicts_table(result), description="Turns by verdict and reason")
    create_markdown_artifact(key="report", markdown=report_markdown(result), description=line)
