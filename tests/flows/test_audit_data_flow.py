"""The census as a flow on a real Prefect server: artifacts, drift, when it fails."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reflash.census.audit import run_audit
from reflash.config.audit import DataAudit
from tests.census.making import jsonl
from tests.inspect.auditing import GOOD, PLACEHOLDER

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.usefixtures("prefect_server"),
    # Prefect and the libraries under it warn of their own affairs.
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(300),
]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))


def artifacts(state: Any) -> dict[str, Any]:
    from prefect.client.orchestration import get_client

    async def read() -> dict[str, Any]:
        async with get_client() as client:
            found = await client.read_artifacts(limit=200)
            return {a.key: a for a in found if a.flow_run_id == state.state_details.flow_run_id}

    return asyncio.run(read())


def test_a_census_shows_what_it_found_and_what_changed(tmp_path: Path) -> None:
    from flows.audit_data import audit_data

    rows = jsonl(tmp_path / "rows.jsonl", [GOOD, GOOD])
    audit = DataAudit(path=str(rows), selection=str(tmp_path / "again.parquet"))
    first = audit_data(audit, return_state=True)
    assert first.message.startswith("FIT: each of its 2 rows")
    assert first.result().verdict == "fit"
    jsonl(rows, [GOOD, PLACEHOLDER, PLACEHOLDER])
    second = audit_data(audit, return_state=True)
    assert (second.name, second.is_failed()) == ("Unfit", True)
    assert "2 of 3 rows" in second.message
    assert (tmp_path / "again.parquet").is_file()
    found = artifacts(second)
    assert {"census", "census-findings"} <= set(found)
    page = found["census"].data
    assert "data:image/" in page
    assert "## Since the last census" in page
    assert len(page) < 1_000_000


def test_a_set_that_is_unfit_but_no_worse_fails_only_where_asked(tmp_path: Path) -> None:
    from flows.audit_data import audit_data

    audit = DataAudit(path=str(jsonl(tmp_path / "rows.jsonl", [PLACEHOLDER])))
    run_audit(audit)
    assert audit_data(audit, return_state=True).is_completed()
    assert audit_data(audit, "unfit", return_state=True).is_failed()


def test_a_census_that_no_further_attempt_would_mend_is_refused(tmp_path: Path) -> None:
    from flows.audit_data import audit_data

    state = audit_data(DataAudit(path=str(tmp_path / "none.parquet")), return_state=True)
    assert (state.name, state.is_failed()) == ("Refused", True)


def test_the_form_explains_every_setting() -> None:
    from prefect.utilities.callables import parameter_schema

    from flows.audit_data import audit_data

    definitions = parameter_schema(audit_data.fn).model_dump()["definitions"]
    for model in ("DataAudit", "AuditRules"):
        lacking = [name for name, field in definitions[model]["properties"].items() if not field.get("description")]
        assert lacking in ([], ["rules"])
