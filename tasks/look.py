"""This machine looked at: what is wrong with it, what to do, and what has changed."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE

from reflash.config.machine import MachineAudit
from reflash.environment.audit import Audit, take_audit
from reflash.environment.text import audit_markdown, findings_table, verdict_line


@task(name="look", task_run_name="look at this machine", cache_policy=NO_CACHE, persist_result=False)
def look(asked: MachineAudit, kept: bool) -> Audit:
    """Audit, and show the findings as a table and the remedies as a page; `kept` for the next one to compare with."""
    audit, log = take_audit(asked, kept=kept), get_run_logger()
    line = verdict_line(audit)
    log.info(f"Machine: {line}")
    for finding in audit.of("fail", "warn"):
        log.warning(f"{finding.id}: {finding.found}; remedy: {finding.remedy}")
    create_table_artifact(key="machine-findings", table=findings_table(audit), description=line)
    create_markdown_artifact(key="machine", markdown=audit_markdown(audit), description=line)
    return audit
