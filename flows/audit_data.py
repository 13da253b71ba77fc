"""The census of a set, by hand or every night: what it holds, and what changed since the last time."""

from __future__ import annotations

from typing import Annotated, Literal, cast

from prefect import flow, runtime
from prefect.states import Completed, Failed
from pydantic import Field

from flows.attempts import FOR_GOOD, refused
from flows.logs import show_in_run
from reflash.census.report import CensusReport
from reflash.config.audit import DataAudit
from reflash.report.census import census_line
from tasks.census import census

FailOn = Annotated[
    Literal["worse", "unfit", "nothing"],
    Field(
        description="When the run fails, so that an alert is sent: where the set is worse than at its last census (or "
        "unfit at the first), whenever it is unfit, or never."
    ),
]


def run_name() -> str:
    """Names a flow run by its set."""
    audit = DataAudit.model_validate(runtime.flow_run.parameters["audit"])
    return f"census {audit.path.rstrip('/').rsplit('/', 1)[-1]}"


@flow(name="audit-data", flow_run_name=run_name, result_serializer="json")
def audit_data(audit: DataAudit, fail_on: FailOn = "worse") -> CensusReport:
    """Count a tokenized set or one of conversations: empty answers, duplicates, broken rows, benchmark items."""
    show_in_run()
    try:
        found = census(audit)
    except FOR_GOOD as error:
        return cast(CensusReport, refused(error))
    line = census_line(found.report)
    if {"worse": found.worse, "unfit": found.unfit, "nothing": False}[fail_on]:
        return cast(CensusReport, Failed(name="Unfit" if found.unfit else "Worse", message=line))
    return cast(CensusReport, Completed(message=line, data=found.report))
