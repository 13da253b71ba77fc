"""`reflash benchmark` whole: the flow on a Prefect server, and the command as it is called."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from reflash.report.held import FORECAST
from tests.flows.made import MODEL
from tests.making import config, conversations_file

START = "import sys; from flows.cli import main; sys.argv[0] = 'reflash'; main()"
ENGINE = {"kind": "scripted", "script": "paced", "width": 8}


def settings(tmp_path: Path, **benchmark: Any) -> dict[str, Any]:
    rows = conversations_file(tmp_path / "rows.jsonl", 60)
    model = {"source": {"path": str(rows)}, "model": MODEL, "engine": ENGINE, "thinking": {"mode": "off"}}
    return {"run": str(tmp_path / "run"), **model, "benchmark": benchmark}


def reflash(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", START, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.prefect
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("prefect_server")
@pytest.mark.filterwarnings("ignore")
def test_points_are_compared_a_pilot_is_answered_and_the_run_is_held_against_it(tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client

    from flows.benchmark import benchmark
    from flows.regenerate import regenerate

    told = settings(tmp_path, minutes=0.6, rows=40, points=["width=1", "kind=hf"])
    run = config(told.pop("run"), **told)
    state = benchmark(run, return_state=True)
    result = asyncio.run(state.result()) if asyncio.iscoroutine(state.result()) else state.result()
    outcomes = {o.point.name: o for o in result.outcomes}
    assert outcomes["as configured"].tokens_per_s > outcomes["width=1"].tokens_per_s
    assert outcomes["kind=hf"].status == "did not start"
    assert result.choice.outcome.point.name == "as configured"

    async def artifacts() -> dict[str, Any]:
        async with get_client() as client:
            found = await client.read_artifacts(limit=200)
            return {a.key: a for a in found if a.flow_run_id == state.state_details.flow_run_id}

    found = asyncio.run(artifacts())
    assert {"points", "benchmark"} <= set(found)
    assert len(found["benchmark"].data) < 1_000_000
    assert "data:image/png" in found["benchmark"].data
    forecast = json.loads((tmp_path / "run" / FORECAST).read_bytes())
    assert forecast["rows"] == 60
    assert regenerate(run).held["tokens per row"]["within"]


@pytest.mark.prefect
@pytest.mark.timeout(600)
def test_the_command_says_what_to_use_and_how_long_it_takes(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(settings(tmp_path)))
    answer = reflash("benchmark", str(path), "--point", "none", "--expect", "1-2", "--out", str(tmp_path / "out"))
    assert answer.returncode == 0, answer.stderr
    assert "60 rows take " in answer.stdout
    assert "No: " in answer.stdout
    assert (tmp_path / "out" / "benchmark.md").exists()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--expect", "fast"), "benchmark.expect: must be a range"),
        (("--point", "wide"), "write key=value"),
        (("--minutes", "0"), "benchmark.minutes: must be greater than 0"),
    ],
)
def test_what_cannot_be_measured_is_refused_at_once(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(settings(tmp_path)))
    answer = reflash("benchmark", str(path), *arguments)
    assert answer.returncode == 2
    assert words in answer.stderr
    assert "Traceback" not in answer.stderr
