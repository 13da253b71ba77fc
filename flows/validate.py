"""A run judged again, from the UI: `reflash validate` as a flow."""

from __future__ import annotations

import json
from typing import Annotated, cast

from prefect import flow, runtime
from pydantic import Field

from blocks.store import Store
from flows.attempts import FOR_GOOD, refused
from flows.logs import show_in_run
from flows.saved import use_keys
from flows.validating import validate_run
from reflash.config.run import ValidateConfig
from reflash.errors import RunIncomplete
from reflash.report.report import Report
from tasks.show import show

Run = Annotated[str, Field(min_length=1)]


def run_name() -> str:
    """Names a flow run by its folder."""
    return f"validate {str(runtime.flow_run.parameters['run']).rstrip('/').rsplit('/', 1)[-1]}"


@flow(name="validate", flow_run_name=run_name, result_serializer="json")
def validate(
    run: Run,
    rules: ValidateConfig | None = None,
    store: Store | None = None,
) -> Report:
    """Judge every finished shard of a run again, and write its dataset, rejects and report anew; needs no engine.

    Args:
        run: The run's folder: a path or a URL.
        rules: Other rules; by default those of the run.
        store: Saved keys of an object store, where the run's folder is a URL.
    """
    show_in_run()
    try:
        use_keys(store)
        overrides = [f"validation={json.dumps(rules.model_dump(mode='json'))}"] if rules else []
        result = validate_run(run, overrides)
    except (*FOR_GOOD, RunIncomplete) as error:
        return cast(Report, refused(error))
    show(result)
    return result
