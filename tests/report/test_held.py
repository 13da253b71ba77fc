"""A run held against its forecast, in its own report."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from reflash.report.held import FORECAST
from tests.flows.made import made_run, settings

OUTLOOK = {
    "rows": 10,
    "seconds": {"low": 0.0, "mid": 5.0, "high": 1000.0},
    "tail_s": 0.1,
    "output_tokens": {"low": 1.0, "mid": 2.0, "high": 3.0},
    "tokens_per_s": {"low": 1.0, "mid": 2.0, "high": 3.0},
    "tokens_per_row": {"low": 5.0, "mid": 20.0, "high": 40.0},
}


def forecast(path: Path, **changes: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"made": 1.8e9, "point": "as configured", "outlook": OUTLOOK} | changes))
    return str(path)


def report_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run" / "report.json").read_bytes())
    return found


def test_a_forecast_in_the_runs_folder_is_found_and_told_in_both_reports(tmp_path: Path) -> None:
    forecast(tmp_path / "run" / FORECAST)
    made_run(settings(tmp_path))
    held = report_of(tmp_path)["held"]
    assert held["seconds"]["mid"] == 2.5  # five rows of the ten that were forecast
    assert held["seconds"]["within"]
    assert not held["output tokens"]["within"]
    assert held["tokens per row"]["actual"] == held["output tokens"]["actual"] / 5
    text = (tmp_path / "run" / "report.md").read_text()
    assert "## Against its forecast" in text
    assert "| tokens per row | 20 (5 to 40) |" in text


def test_a_forecast_named_in_the_config_is_taken(tmp_path: Path) -> None:
    named = forecast(tmp_path / "elsewhere" / "forecast.json", point="width=4")
    made_run(settings(tmp_path, benchmark={"forecast": named}))
    assert report_of(tmp_path)["held"]["point"] == "width=4"


def test_without_a_forecast_nothing_is_said(tmp_path: Path) -> None:
    made_run(settings(tmp_path))
    assert report_of(tmp_path)["held"] is None
    assert "Against its forecast" not in (tmp_path / "run" / "report.md").read_text()


@pytest.mark.parametrize("content", ["{", '{"outlook": {}}', '{"made": 1, "point": "x"}', "[]"])
def test_a_broken_forecast_does_not_spoil_a_run(tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "run" / FORECAST
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with caplog.at_level(logging.WARNING):
        made_run(settings(tmp_path, count=2))
    assert report_of(tmp_path)["held"] is None
    assert report_of(tmp_path)["complete"]
    assert "the forecast cannot be read" in caplog.text


def test_a_named_forecast_that_is_gone_does_not_either(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        made_run(settings(tmp_path, count=2, benchmark={"forecast": str(tmp_path / "gone.json")}))
    assert report_of(tmp_path)["complete"]
    assert "the forecast cannot be read" in caplog.text
