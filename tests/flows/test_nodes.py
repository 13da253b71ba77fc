"""A run shared out over a work pool: the parent starts nodes, waits for their shards, judges and publishes."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reflash.config.run import RunConfig
from reflash.report.status import run_status
from tests.browser.served import ROOT, Server, prefect_server
from tests.flows.made import MODEL
from tests.flows.test_cancelled import PREFECT
from tests.flows.test_stopped import MARK, children, safe_rows, waited
from tests.making import config, conversations_file

pytestmark = [pytest.mark.prefect, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with prefect_server(tmp_path / "prefect") as found:
        yield found


def shared_run(folder: Path, rows: int) -> RunConfig:
    return config(
        folder / "run",
        source={"path": str(conversations_file(folder / "rows.jsonl", rows))},
        model=MODEL,
        engine={"kind": "scripted", "script": "slow", "width": 4},
        plan={"shard_rows": 64, "workers": 1},
        generate={"heartbeat_s": 1.0, "expiry_s": 5.0},
        nodes={"count": 2},
    )


@contextmanager
def worker(server: Server, mark: str) -> Iterator[None]:
    """A process worker of the pool, with everything deployed."""
    environment = {**server.env, MARK: mark, "PREFECT_API_URL": f"{server.url}/api"}
    for words in ("work-pool create reflash --type process", "--no-prompt deploy -n regenerate -n generate-node"):
        subprocess.run([*PREFECT, *words.split()], env=environment, cwd=ROOT, check=True)
    start = [*PREFECT, "worker", "start", "--pool", "reflash"]
    runner = subprocess.Popen(start, env=environment, cwd=ROOT, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(runner.pid, signal.SIGTERM)
        runner.wait(60)


def begin(server: Server, run: RunConfig) -> str:
    [deployment] = [found["id"] for found in server.post("deployments/filter", {}) if found["name"] == "regenerate"]
    body = {"parameters": {"config": run.model_dump(mode="json")}, "state": {"type": "SCHEDULED"}}
    return str(server.post(f"deployments/{deployment}/create_flow_run", body)["id"])


def states(server: Server) -> dict[str, list[str]]:
    """States of the runs that have begun; others are scheduled for the night."""
    found: dict[str, list[str]] = {"node": [], "parent": []}
    for each in server.post("flow_runs/filter", {}):
        for kind, name in (("node", "node of "), ("parent", "run · ")):
            if each["name"].startswith(name):
                found[kind].append(each["state"]["type"])
    return found


def told(server: Server) -> Any:
    return [
        (each["name"], each["state"]["type"], each["state"]["message"]) for each in server.post("flow_runs/filter", {})
    ]


def test_nodes_of_a_work_pool_share_a_run_and_their_parent_publishes_it(server: Server, tmp_path: Path) -> None:
    run = shared_run(tmp_path, 256)
    with worker(server, uuid.uuid4().hex):
        begin(server, run)
        assert waited(lambda: states(server)["parent"] in (["COMPLETED"], ["FAILED"], ["CRASHED"]), 400), told(server)
        assert states(server)["parent"] == ["COMPLETED"], told(server)
        assert waited(lambda: states(server)["node"] == ["COMPLETED", "COMPLETED"], 60), told(server)
    found = run_status(run.run)
    assert (found["complete"], found["rows_done"]) == (True, 256)
    assert len(list(Path(run.run, "nodes").glob("*.json"))) == 3  # the parent watches


def test_cancelling_the_parent_ends_its_nodes(server: Server, tmp_path: Path) -> None:
    run, mark = shared_run(tmp_path, 1024), uuid.uuid4().hex
    with worker(server, mark):
        parent = begin(server, run)
        assert waited(lambda: safe_rows(Path(run.run)) > 0, 400), told(server)
        assert waited(lambda: states(server)["node"] == ["RUNNING", "RUNNING"], 120), told(server)
        server.post(f"flow_runs/{parent}/set_state", {"state": {"type": "CANCELLING"}, "force": False})
        assert waited(lambda: states(server)["node"] == ["CANCELLED", "CANCELLED"], 120), told(server)
        assert waited(lambda: len(children(mark)) == 1, 60), children(mark)
    assert safe_rows(Path(run.run)) > 0
