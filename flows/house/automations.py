"""What the server does by itself: a run that broke off goes on, one that fell silent is called crashed, people hear.

A run that crashed or failed is started again by its own deployment, with its own parameters and a higher attempt; the
flow refuses one attempt too many (`flows.attempts`). A state named Refused starts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import StateType
from prefect.events.actions import ChangeFlowRunState, RunDeployment, SendNotification
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification

RESUMED = ("regenerate",)  # flows that go on where they stopped
NODE = "generate-node"
ALERTING = ("audit*", "benchmark", "validate", "export", "push")  # flows whose failure nobody mends by itself
PROGRESS = "reflash.run.progress"  # of flows.pulse
BEAT = "prefect.flow-run.heartbeat"
BROKEN = ("Crashed", "Failed", "TimedOut")
ENDS = (*BROKEN, "Completed", "Cancelled", "Refused", "Superseded", "Unfit", "Worse", "Paused", "Suspended")
BAD_PARAMETERS = "!Validation of flow parameters failed*"  # the same ones would fail again, before the flow counts
TAG = "reflash"
_BAD: list[str] = ["FAILED", "CRASHED"]
_RUN: dict[str, str | list[str]] = {"prefect.resource.id": "prefect.flow-run.*"}


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a run may be silent or stand still."""

    silent_s: float = 180.0  # without a heartbeat: six of them missed
    stalled_s: float = 1200.0  # with work in hand and no new row
    wait_s: float = 20.0  # before a run that broke off is started again


def wanted(patience: Patience, alert: UUID | None) -> list[AutomationCore]:
    """All automations; those that tell people only where there is a block to tell them through."""
    found = [_resume(patience), _silent(patience)]
    return found + _alerts(alert, patience) if alert else found


def put(client: SyncPrefectClient, some: Iterable[AutomationCore]) -> list[str]:
    """Make each, or renew one that was made from another version of itself; returns a line each.

    One that a person has changed or switched off stays as it is while ours stays the same.
    """
    return [f"{one.name}: {_put(client, one)}" for one in some]


def _put(client: SyncPrefectClient, one: AutomationCore) -> str:
    marked = one.model_copy(update={"tags": [TAG, _digest(one)]})
    there = client.read_automations_by_name(one.name)
    if not there:
        client.create_automation(marked)
        return "made"
    if set(marked.tags) <= set(there[0].tags):
        return "stands"
    client.update_automation(there[0].id, marked.model_copy(update={"enabled": there[0].enabled}))
    return "renewed"


def _digest(one: AutomationCore) -> str:
    told = _plain(one.model_dump(mode="json"))
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]


def _plain(value: Any) -> Any:
    """Without ids that are made anew each time, and with sets in order."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items() if key != "id"}
    if isinstance(value, list):
        return sorted((_plain(inner) for inner in value), key=str)
    return value


def _of_flows(*names: str) -> list[ResourceSpecification]:
    """Events of runs of these flows that a deployment started."""
    return [
        ResourceSpecification({"prefect.resource.role": "flow", "prefect.resource.name": list(names)}),
        ResourceSpecification({"prefect.resource.role": "deployment"}),
    ]


def _json(template: str) -> dict[str, Any]:
    """A parameter that keeps its type: Prefect renders the template and reads the text as JSON."""
    return {"__prefect_kind": "json", "value": {"__prefect_kind": "jinja", "template": template}}


def _resume(patience: Patience) -> AutomationCore:
    given = ("config", "engine", "store", "hub")
    kept = {name: _json(f"{{{{ flow_run.parameters.{name} | default(none) | tojson }}}}") for name in given}
    attempt = _json("{{ (flow_run.parameters.attempt | default(1)) + 1 }}")
    again = RunDeployment(
        source="inferred",
        parameters={**kept, "attempt": attempt},
        schedule_after=timedelta(seconds=patience.wait_s),
    )
    return AutomationCore(
        name="reflash: go on with a run that broke off",
        description="A regenerate run that crashed or failed is started again: same folder, same parameters, one "
        "attempt more. `generate.resumes` in the config is the limit.",
        trigger=EventTrigger(
            expect={f"prefect.flow-run.{name}" for name in BROKEN},
            match=ResourceSpecification({**_RUN, "prefect.state-message": BAD_PARAMETERS}),
            match_related=_of_flows(*RESUMED),
            posture=Posture.Reactive,
            threshold=1,
            within=timedelta(0),
        ),
        actions=[again],
    )


def _silent(patience: Patience) -> AutomationCore:
    return AutomationCore(
        name="reflash: a run without a heartbeat has crashed",
        description="Its machine or its process is gone: the run is called crashed, so that another one goes on.",
        trigger=_absence(BEAT, _of_flows(*RESUMED, NODE, *ALERTING), patience.silent_s),
        actions=[
            ChangeFlowRunState(
                state=StateType.CRASHED,
                message=f"No heartbeat for {patience.silent_s:.0f} s: its process or its machine is gone.",
            )
        ],
    )


def _absence(event: str, related: list[ResourceSpecification], seconds: float) -> EventTrigger:
    """After one such event and no end, no other one for so long, of each run by itself."""
    return EventTrigger(
        after={event},
        expect={event, *(f"prefect.flow-run.{name}" for name in ENDS)},
        match=ResourceSpecification(_RUN),
        match_related=related,
        for_each={"prefect.resource.id"},
        posture=Posture.Proactive,
        threshold=1,
        within=timedelta(seconds=seconds),
    )


def _alerts(block: UUID, patience: Patience) -> list[AutomationCore]:
    def telling(name: str, why: str, trigger: EventTrigger) -> AutomationCore:
        body = f"{why}\n{{{{ flow_run.state.message }}}}\n{{{{ flow_run | ui_url }}}}"
        subject = f"Reflash: {{{{ flow_run.name }}}} {name}"
        notify = SendNotification(block_document_id=block, subject=subject, body=body)
        return AutomationCore(
            name=f"reflash: tell that a run {name}", description=why, trigger=trigger, actions=[notify]
        )

    return [
        telling(
            "failed", "It will not go on by itself.", _end({"prefect.state-type": ["FAILED", "CRASHED"]}, ALERTING)
        ),
        telling("was refused", "It will not go on by itself.", _end({"prefect.state-name": "Refused"}, RESUMED)),
        telling(
            "stalled",
            f"No new row for {patience.stalled_s / 60:.0f} minutes, though it runs.",
            _absence(PROGRESS, _of_flows(*RESUMED), patience.stalled_s),
        ),
    ]


def _end(state: dict[str, str | list[str]], flows: Iterable[str]) -> EventTrigger:
    """A run of these flows comes into such a state; states of one type may have names of their own."""
    return EventTrigger(
        expect={"prefect.flow-run.*"},
        match=ResourceSpecification({**_RUN, **state}),
        match_related=_of_flows(*flows),
        posture=Posture.Reactive,
        threshold=1,
        within=timedelta(0),
    )
