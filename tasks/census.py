"""A set looked at as a whole."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE

from reflash.census.audit import Audited, run_audit
from reflash.config.audit import DataAudit
from reflash.report.census import census_line, census_markdown, findings_table


@task(name="census", task_run_name="census", cache_policy=NO_CACHE, result_serializer="json")
def census(audit: DataAudit) -> Audited:
    """Take the census of a set, and show what was found as a table and as a page."""
    found = run_audit(audit)
    line = census_line(found.report)
    get_run_logger().info("\n".join([line, *(found.drift.lines() if found.drift else ()), *found.files]))
    create_table_artifact(key="census-findings", table=findings_table(found.report), description=line)
    create_markdown_artifact(key="census", markdown=census_markdown(found), description=line)
    return found
