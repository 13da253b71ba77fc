"""The machine audited on a real Prefect server: by its own flow, and before a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reflash.config.machine import MachineAudit
from reflash.errors import ConfigError
from tests.flows.made import MODEL, settings

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.usefixtures("prefect_server"),
    pytest.mark.filterwarnings("ignore"),  # Prefect and the libraries under it warn of their own affairs
]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's data folder without audits and without environments of engines."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))


def artifact(key: str) -> Any:
    from prefect.artifacts import Artifact

    return Artifact.get(key)


def test_this_machine_passes_with_the_embedded_engine_and_the_next_audit_shows_no_change() -> None:
    from flows.audit_env import audit_env

    asked = MachineAudit(runs="s3://bucket/runs")  # the disk of a machine at work may be slow for a moment
    assert audit_env(asked) in ("pass", "warn")
    audit_env(asked)
    page, table = artifact("machine"), artifact("machine-findings")
    assert "Nothing that should stay has changed." in page.data
    rows = json.loads(table.data)
    assert {"status", "check", "found", "needs", "remedy"} == set(rows[0])
    assert not [row for row in rows if row["status"] == "fail"]


def test_a_machine_that_lacks_the_engine_ends_as_failed_with_the_remedy_first(tmp_path: Path) -> None:
    from flows.audit_env import audit_env

    state = audit_env(MachineAudit(engine="vllm", runs=str(tmp_path)), return_state=True)
    assert state.is_failed()
    assert "no environment with vllm was made here (remedy: reflash engines install vllm" in (state.message or "")
    page = artifact("machine").data
    assert page.index("reflash engines install vllm") < page.index("## The machine")


def test_a_run_on_a_machine_that_is_not_ready_is_refused_unless_it_is_told_otherwise(tmp_path: Path) -> None:
    from flows.regenerate import regenerate

    engine = {"kind": "vllm", "model": str(tmp_path)}
    refused = regenerate(settings(tmp_path, model=MODEL, engine=engine), return_state=True)
    assert (refused.name, refused.is_failed()) == ("Refused", True)
    assert "this machine is not ready: " in (refused.message or "")
    assert "reflash engines install vllm" in (refused.message or "")
    assert not (tmp_path / "run" / "manifest.json").exists()
    told = regenerate(settings(tmp_path, model=MODEL, engine=engine, audit={"refuse": "never"}), return_state=True)
    assert "this machine is not ready" not in (told.message or "")
    with pytest.raises(ConfigError):
        told.result()
