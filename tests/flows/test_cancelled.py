"""A run cancelled in the UI: within 20 seconds nothing of it is left, and what was finished is safe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from reflash.config.load import load_config
from tests.browser.served import ROOT, Server, prefect_server
from tests.flows.test_stopped import MARK, children, safe_rows, waited

pytestmark = [pytest.mark.prefect, pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]

PREFECT = (sys.executable, "-m", "prefect")
PREPARED = ("work-pool create reflash --type process", "--no-prompt deploy --all")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with prefect_server(tmp_path / "prefect") as found:
        yield found


def test_a_cancelled_run_is_gone_within_20_seconds(server: Server, tmp_path: Path) -> None:
    mark, run = uuid.uuid4().hex, tmp_path / "run"
    environment = {**server.env, MARK: mark, "PREFECT_API_URL": f"{server.url}/api"}
    config = load_config(ROOT / "reflash" / "demo" / "demo.yaml").model_copy(update={"run": str(run)})
    for words in PREPARED:
        subprocess.run([*PREFECT, *words.split()], env=environment, cwd=ROOT, check=True)
    [deployment] = [found["id"] for found in server.post("deployments/filter", {}) if found["name"] == "regenerate"]
    worker = [*PREFECT, "worker", "start", "--pool", "reflash"]
    runner = subprocess.Popen(worker, env=environment, cwd=ROOT, start_new_session=True)
    try:
        body = {"parameters": {"config": config.model_dump(mode="json")}, "state": {"type": "SCHEDULED"}}
        started = server.post(f"deployments/{deployment}/create_flow_run", body)
        assert waited(lambda: safe_rows(run) > 0, 180), "no row was finished"
        assert len(children(mark)) >= 3, "the worker, the run and its engine"
        cancel = {"state": {"type": "CANCELLING"}, "force": False}
        assert server.post(f"flow_runs/{started['id']}/set_state", cancel)["status"] == "ACCEPT"
        assert waited(lambda: len(children(mark)) == 1, 20), children(mark)
        assert runner.poll() is None
        assert safe_rows(run) > 0
    finally:
        os.killpg(runner.pid, signal.SIGTERM)
        runner.wait(30)
    assert waited(lambda: children(mark) == [], 20), children(mark)
