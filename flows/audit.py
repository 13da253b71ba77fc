"""The nightly audit: this machine, and a set where one is named, each compared with the last time."""

from __future__ import annotations

import socket
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.audit_data import FailOn, audit_data
from flows.audit_env import audit_env
from flows.logs import show_in_run
from reflash.config.audit import DataAudit
from reflash.config.machine import MachineAudit

THIS_MACHINE = MachineAudit()


def run_name() -> str:
    """Names a flow run by its machine."""
    return f"audit {socket.gethostname()}"


@flow(name="audit", flow_run_name=run_name, persist_result=False)
def audit(
    machine: MachineAudit = THIS_MACHINE,
    data: DataAudit | None = None,
    fail_on: FailOn = "worse",
) -> State[str]:
    """Look at this machine and at a set. Ends as Failed, so that an alert is sent, where either has a fault.

    Args:
        machine: How this machine is looked at.
        data: A set to be counted; by default none.
        fail_on: When the set is a reason to fail: where it is worse than last time (or unfit at first), whenever it is
            unfit, or never.
    """
    show_in_run()
    ended: list[State[Any]] = [audit_env(machine, return_state=True)]
    if data is not None:
        ended.append(audit_data(data, fail_on, return_state=True))
    told = " · ".join(state.message or str(state.name) for state in ended)
    return Completed(message=told) if all(state.is_completed() for state in ended) else Failed(message=told)
