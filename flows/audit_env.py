"""This machine audited, from the UI or every night: `reflash audit env` as a flow."""

from __future__ import annotations

import socket

from prefect import flow, runtime
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.logs import show_in_run
from reflash.config.machine import MachineAudit
from reflash.environment.audit import Audit
from reflash.environment.text import refusal, verdict_line
from tasks.look import look

AS_IT_IS = MachineAudit()


def run_name() -> str:
    """Names a flow run by its machine and engine."""
    given = runtime.flow_run.parameters.get("audit") or {}
    engine = given.engine if isinstance(given, MachineAudit) else given.get("engine", "llamacpp")
    return f"audit {socket.gethostname()} · {engine}"


@flow(name="audit-env", flow_run_name=run_name, persist_result=False)
def audit_env(audit: MachineAudit = AS_IT_IS) -> State[str]:
    """Look at driver, cards, environment, model and machine, and compare with the last audit of this machine.

    Ends as Failed where a check fails, and says which.
    """
    show_in_run()
    found = look(audit, kept=True)
    return ending(found)


def ending(found: Audit) -> State[str]:
    """A failed check is a failed run, so that automations tell of it; warnings and what is unknown are not."""
    if found.verdict == "fail":
        return Failed(message=refusal(found))
    return Completed(message=verdict_line(found), data=found.verdict)
