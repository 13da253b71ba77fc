"""A run's dataset in the format of a trainer, from the UI: `reflash export` as a flow."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, cast

from prefect import flow, runtime

from blocks.store import Store
from flows.attempts import FOR_GOOD, refused
from flows.logs import show_in_run
from flows.saved import use_keys
from flows.validate import Run
from reflash.errors import RunIncomplete
from tasks.export import export as write

Format = Literal["specforge", "specforge-conversations", "speculators", "deepspec", "automodel", "messages"]


def run_name() -> str:
    """Names a flow run by its folder and format."""
    given = runtime.flow_run.parameters
    return f"export {str(given['run']).rstrip('/').rsplit('/', 1)[-1]} · {given['form']}"


@flow(name="export", flow_run_name=run_name, result_serializer="json")
def export(
    run: Run,
    form: Format,
    out: str | None = None,
    store: Store | None = None,
) -> str:
    """Write the good rows of a run as one JSON Lines file that a trainer reads unconverted; its path.

    Args:
        run: The run's folder: a path or a URL.
        form: The trainer that is to read the file.
        out: File to write; by default RUN/export/FORMAT.jsonl.
        store: Saved keys of an object store, where the run's folder is a URL.
    """
    show_in_run()
    try:
        use_keys(store)
        return str(write(run, form, Path(out) if out else None))
    except (*FOR_GOOD, RunIncomplete) as error:
        return cast(str, refused(error))
