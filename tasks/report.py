"""What happened, in the run's folder and in the UI."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE

from reflash.config.run import RunConfig
from reflash.ledger.ledger import open_ledger
from reflash.publish.summary import ShardSummary
from reflash.report.attempt import Attempt
from reflash.report.lines import alarm_lines, verdict_line
from reflash.report.report import Report
from reflash.report.tables import verdicts_table
from reflash.report.text import report_markdown
from reflash.report.write import write_report


@task(name="report", task_run_name="report", cache_policy=NO_CACHE, result_serializer="json")
def report(config: RunConfig, summaries: list[ShardSummary], attempt: Attempt, stopped: str = "") -> Report:
    """Sum up, write report.json, report.md and the dataset card, and show them as artifacts."""
    result = write_report(config, open_ledger(config.run), summaries, attempt, stopped)
    log, total, verdict = get_run_logger(), result.total, verdict_line(result)
    log.info(f"{verdict} Report: {result.run}/report.md")
    for line in alarm_lines(result.alarms, total.reasons, total.turns):
        log.warning(line)
    create_table_artifact(key="verdicts", table=verdicts_table(result), description="Turns by verdict and reason")
    create_markdown_artifact(key="report", markdown=report_markdown(result), description=verdict)
    return result
