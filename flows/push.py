"""A run's dataset put on the Hugging Face Hub, from the UI: `reflash push` as a flow."""

from __future__ import annotations

from typing import Annotated, cast

from prefect import flow, runtime
from pydantic import Field

from blocks.hub import HubToken
from blocks.store import Store
from flows.attempts import FOR_GOOD, refused
from flows.logs import show_in_run
from flows.saved import use_keys
from flows.validate import Run
from reflash.errors import RunIncomplete
from reflash.push.hub import Pushed
from tasks.push import push as send

Repo = Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$", description="The set's name on the Hub: OWNER/NAME.")]


def run_name() -> str:
    """Names a flow run by its folder and the set."""
    given = runtime.flow_run.parameters
    return f"push {str(given['run']).rstrip('/').rsplit('/', 1)[-1]} · {given['repo']}"


@flow(name="push", flow_run_name=run_name, result_serializer="json")
def push(
    run: Run,
    repo: Repo,
    hub: HubToken | None = None,
    public: bool = False,
    partial: bool = False,
    store: Store | None = None,
) -> Pushed:
    """Put a run's dataset on the Hub, with its card and charts; run again it sends only what is not there.

    Args:
        run: The run's folder: a path or a URL.
        repo: The set's name on the Hub, OWNER/NAME; made where it is not there.
        hub: A saved token that may write there; by default the one that this machine is logged in with.
        public: Let everybody read it; by default it is private.
        partial: Push a run in which rows are still missing.
        store: Saved keys of an object store, where the run's folder is a URL.
    """
    show_in_run()
    try:
        use_keys(store, hub)
        return send(run, repo, public, partial)
    except (*FOR_GOOD, RunIncomplete) as error:
        return cast(Pushed, refused(error))
