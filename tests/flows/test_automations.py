"""Which automations an event of a run wakes, by the server's own rules and without a server."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from tests.flows.test_prefect_yaml import DECLARED

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

GO_ON = "reflash: go on with a run that broke off"
FAILED = "reflash: tell that a run failed"
REFUSED = "reflash: tell that a run was refused"


def flow_of(deployment: str) -> str:
    """The name of the flow that a deployment runs."""
    module, _, name = DECLARED[deployment]["entrypoint"].partition(":")
    return str(getattr(importlib.import_module(module), name).name)


def woken(flow: str, state: str, kind: str, *, deployed: bool = True, message: str = "") -> set[str]:
    """Reactive automations that cover the event of a run of this flow that comes into a state."""
    from prefect.events.schemas.automations import Posture
    from prefect.server.events.schemas.automations import EventTrigger
    from prefect.server.events.schemas.events import ReceivedEvent

    from flows.house.automations import Patience, wanted

    related: list[dict[str, Any]] = [
        {
            "prefect.resource.id": f"prefect.flow.{uuid4()}",
            "prefect.resource.role": "flow",
            "prefect.resource.name": flow,
        }
    ]
    if deployed:
        related.append({"prefect.resource.id": f"prefect.deployment.{uuid4()}", "prefect.resource.role": "deployment"})
    resource = {
        "prefect.resource.id": f"prefect.flow-run.{uuid4()}",
        "prefect.state-name": state,
        "prefect.state-type": kind,
        "prefect.state-message": message,
    }
    event = ReceivedEvent(
        id=uuid4(), occurred=datetime.now(UTC), event=f"prefect.flow-run.{state}", resource=resource, related=related
    )
    found = set()
    for automation in wanted(Patience(), uuid4()):
        given = automation.trigger.model_dump(mode="json")
        trigger = EventTrigger.model_validate(given)
        if trigger.posture.value == Posture.Reactive.value and trigger.covers(event):
            found.add(automation.name)
    return found


@pytest.mark.parametrize("deployment", DECLARED)
def test_a_failed_run_of_any_deployment_goes_on_by_itself_or_is_told(deployment: str) -> None:
    flow = flow_of(deployment)
    if flow == "generate-node":  # its parent tells of it, and others take its shards
        assert woken(flow, "Failed", "FAILED") == set()
        return
    assert woken(flow, "Failed", "FAILED") == {GO_ON if flow == "regenerate" else FAILED}
    assert woken(flow, "Crashed", "CRASHED") == {GO_ON if flow == "regenerate" else FAILED}
    assert woken(flow, "Completed", "COMPLETED") == set()
    assert woken(flow, "Refused", "FAILED") == {REFUSED if flow == "regenerate" else FAILED}


@pytest.mark.parametrize("flow", ["audit-data", "audit-env"])
def test_an_audit_deployed_by_itself_is_told_and_a_part_of_the_nightly_one_not_twice(flow: str) -> None:
    assert woken(flow, "Unfit", "FAILED") == {FAILED}
    assert woken(flow, "Worse", "FAILED") == {FAILED}
    assert woken(flow, "Unfit", "FAILED", deployed=False) == set()


def test_parameters_that_a_form_let_through_and_the_flow_refuses_start_no_further_attempt() -> None:
    message = "Validation of flow parameters failed with error: …"
    assert GO_ON not in woken("regenerate", "Failed", "FAILED", message=message)
