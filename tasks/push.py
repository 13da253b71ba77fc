"""A run's dataset sent to the Hub."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.artifacts import create_link_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task

from reflash.errors import StoreError
from reflash.push.hub import Pushed, push_run


def broke_off(_task: Task[..., object], _run: TaskRun, state: State[object]) -> bool:
    """Whether the next try would send the rest; what the Hub refuses it refuses again."""
    return isinstance(state.result(raise_on_failure=False), StoreError)


@task(
    name="push",
    task_run_name="push to {repo}",
    cache_policy=NO_CACHE,
    result_serializer="json",
    retries=3,
    retry_delay_seconds=[10, 60, 300],
    retry_condition_fn=broke_off,
)
def push(run: str, repo: str, public: bool, partial: bool) -> Pushed:
    """Upload what is not there yet, and link to the set's page."""
    pushed = push_run(run, repo, public=public, partial=partial)
    who = "only you and your organization see it" if pushed.private else "public"
    line = f"{pushed.rows:,} rows in {pushed.files:,} files ({who})"
    get_run_logger().info(f"{line} are at {pushed.url}")
    create_link_artifact(key="set", link=pushed.url, link_text=repo, description=line)
    return pushed
