"""`reflash up` as a user gives it: runs that break off go on by themselves, people hear of it, and down ends it all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email import message_from_string
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from reflash.engines import linux
from tests.flows.house_made import Hook, House, house_in, mailbox, settings, started_by, until, webhook
from tests.flows.made import made_run
from tests.flows.made import settings as made_settings
from tests.push.upload_hub import TOKEN, Kept, serving

pytestmark = [pytest.mark.prefect, pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]

LONG_S = 240.0  # patience with a busy machine


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    with webhook() as found:
        yield found


@pytest.fixture(scope="module")
def hub() -> Iterator[tuple[Kept, str]]:
    with serving() as found:
        yield found


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, hook: Hook, hub: tuple[Kept, str]) -> Iterator[House]:
    """A house that is up, with less patience than usual; at the end it is down, and nothing of it is left."""
    mark = uuid.uuid4().hex
    made = house_in(tmp_path_factory.mktemp("house"), mark, HF_ENDPOINT=hub[1], HF_HUB_DISABLE_XET="1")
    try:
        up = made.reflash("up", "--port", str(made.port), "--alert", hook.url)
        assert up.returncode == 0, up.stdout + up.stderr
        assert f"http://127.0.0.1:{made.port}" in up.stdout
        patient(made)
        yield made
    finally:
        down = made.reflash("down")
    assert down.returncode == 0, down.stdout + down.stderr
    assert started_by(mark) == []
    assert "nothing of a house runs" in made.reflash("down").stdout


def patient(house: House, **seconds: float) -> None:
    """Put the automations on the server with another patience."""
    code = (
        "import sys, json; from prefect.client.orchestration import get_client;"
        "from flows.house import automations as a; from flows.house.saved import alert_block;"
        "c = get_client(sync_client=True).__enter__();"
        "a.put(c, a.wanted(a.Patience(**json.loads(sys.argv[1])), alert_block(c, '')))"
    )
    given = json.dumps({"wait_s": 0.0, **seconds})
    subprocess.run([sys.executable, "-c", code, given], env=house.client_env(), check=True)


def ids(folder: Path) -> list[str]:
    files = sorted((folder / "dataset" / "data").glob("*.parquet"))
    rejected = sorted((folder / "rejects").glob("*.parquet"))
    return sorted(row["conversation"] for f in [*files, *rejected] for row in pq.read_table(f).to_pylist())


def test_up_again_changes_nothing(house: House) -> None:
    before = house.processes()
    again = house.reflash("up")
    assert again.returncode == 0, again.stderr
    assert "server and worker stand" in again.stdout
    assert "regenerate" in again.stdout
    assert "made" not in again.stdout
    assert house.processes() == before
    patient(house)


def test_a_killed_keeper_leaves_a_house_that_up_keeps_on_without_ending_its_runs(house: House, tmp_path: Path) -> None:
    run = house.start("regenerate", {"config": settings(tmp_path, rows=60, script="slow")})
    until(lambda: list((tmp_path / "run" / "segments").rglob("*.parquet")), LONG_S, "a row is safe")
    before = house.processes()
    os.kill(before["keeper"], signal.SIGKILL)
    until(lambda: not (Path("/proc") / str(before["keeper"])).exists(), 30, "the keeper is gone")
    again = house.reflash("up")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "what it left is kept on as it runs: server, worker" in again.stdout
    after = until(lambda: len(house.processes()) == 3 and house.processes(), 60, "all three are kept")
    assert {**after, "keeper": 0} == {**before, "keeper": 0}
    assert after["keeper"] != before["keeper"]
    patient(house)
    until(lambda: house.run(run)["state_type"] == "COMPLETED", LONG_S, "completed")
    assert house.states(tmp_path / "run") == ["Completed"]  # the first attempt
    os.kill(after["worker"], signal.SIGKILL)
    until(lambda: house.processes().get("worker", after["worker"]) != after["worker"], 60, "a new worker")


def test_a_run_started_from_the_ui_completes(house: House, tmp_path: Path) -> None:
    run = house.start("regenerate", {"config": settings(tmp_path, rows=5)})
    until(lambda: house.run(run)["state_type"] == "COMPLETED", LONG_S, "completed")
    assert len(ids(tmp_path / "run")) == 5


def test_a_killed_run_is_finished_by_another_without_a_hand(house: House, tmp_path: Path) -> None:
    run = house.start("regenerate", {"config": settings(tmp_path, rows=60, script="slow")})
    segments = tmp_path / "run" / "segments"
    until(lambda: list(segments.rglob("*.parquet")), LONG_S, "a row is safe")
    os.kill(process_of(house, run), signal.SIGKILL)
    until(lambda: house.states(tmp_path / "run") == ["Crashed", "Completed"], LONG_S, "crashed, then completed")
    first, second = house.runs_of(tmp_path / "run")
    assert (first["id"], second["parameters"]["attempt"]) == (run, 2)
    assert second["parameters"]["config"] == first["parameters"]["config"]
    assert len(ids(tmp_path / "run")) == len(set(ids(tmp_path / "run"))) == 60


def test_one_attempt_too_many_is_refused_told_and_not_followed(house: House, hook: Hook, tmp_path: Path) -> None:
    run = house.start("regenerate", {"config": settings(tmp_path, generate={"resumes": 1}), "attempt": 3})
    until(lambda: house.run(run)["state_type"] == "FAILED", LONG_S, "failed")
    state = house.run(run)["state"]
    assert state["name"] == "Refused"
    assert "broke off 2 times, and generate.resumes allows 1" in state["message"]
    told = until(lambda: [h for h in hook.heard if run in h["body"]], 60, "the webhook heard of it")
    assert "was refused" in told[0]["subject"]
    assert "broke off 2 times" in told[0]["body"]
    time.sleep(5)
    assert len(house.runs_of(tmp_path / "run")) == 1


def test_a_run_whose_source_was_missing_is_retried_in_the_ui(house: House, tmp_path: Path) -> None:
    wanted = settings(tmp_path, rows=3)
    source = tmp_path / "rows.jsonl"
    aside = source.rename(tmp_path / "aside.jsonl")
    run = house.start("regenerate", {"config": wanted})
    until(lambda: house.run(run)["state_name"] == "Refused", LONG_S, "refused")
    assert "rows.jsonl" in house.run(run)["state"]["message"]
    aside.rename(source)
    retry = {"state": {"type": "SCHEDULED", "name": "AwaitingRetry", "message": "Retry from the UI"}, "force": True}
    assert house.post(f"flow_runs/{run}/set_state", retry)["status"] == "ACCEPT"
    until(lambda: house.run(run)["state_type"] == "COMPLETED", LONG_S, "completed")
    assert len(ids(tmp_path / "run")) == 3


def test_a_block_is_used_in_place_of_the_config(house: House, tmp_path: Path) -> None:
    code = "from blocks.engine import Engine; print(Engine(engine={'kind': 'scripted'}).save('mine', overwrite=True))"
    made = subprocess.run(
        [sys.executable, "-c", code], env=house.client_env(), check=True, capture_output=True, text=True
    )
    wanted = settings(tmp_path, rows=2)
    wanted["engine"] = {"kind": "llamacpp", "model": "/nowhere.gguf"}
    block = {"$ref": {"block_document_id": made.stdout.strip()}}
    run = house.start("regenerate", {"config": wanted, "engine": block})
    until(lambda: house.run(run)["state_type"] in ("COMPLETED", "FAILED"), LONG_S, "ended")
    assert house.run(run)["state_name"] == "Completed", house.run(run)["state"]["message"]


BAD_BLOCK = """
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import BlockDocumentCreate as New
with get_client(sync_client=True) as client:
    kind = client.read_block_type_by_slug("reflash-engine")
    schema = client.get_most_recent_block_schema_for_block_type(kind.id)
    data = {"engine": {"kind": "vllm", "model": "m", "tp": 0}}  # the page saves it
    new = New(name="bad", data=data, block_schema_id=schema.id, block_type_id=kind.id)
    print(client.create_block_document(new).id)
"""


def test_a_bad_block_names_its_field_and_the_run_is_not_started_again(house: House, tmp_path: Path) -> None:
    command = [sys.executable, "-c", BAD_BLOCK]
    made = subprocess.run(command, env=house.client_env(), check=True, capture_output=True, text=True)
    block = {"$ref": {"block_document_id": made.stdout.strip()}}
    run = house.start("regenerate", {"config": settings(tmp_path), "engine": block})
    until(lambda: house.run(run)["state_type"] == "FAILED", LONG_S, "failed")
    assert "block Reflash Engine" in house.run(run)["state"]["message"]
    assert "engine.tp: must be at least 1" in house.run(run)["state"]["message"]
    time.sleep(5)
    assert len(house.runs_of(tmp_path / "run")) == 1


def test_a_run_is_pushed_with_a_saved_token_that_nobody_sees(
    house: House, hub: tuple[Kept, str], tmp_path: Path
) -> None:
    made_run(made_settings(tmp_path))
    code = f"from blocks.hub import HubToken; print(HubToken(token='{TOKEN}').save('mine', overwrite=True))"
    saved = subprocess.run([sys.executable, "-c", code], env=house.client_env(), check=True, stdout=subprocess.PIPE)
    block = {"$ref": {"block_document_id": saved.stdout.decode().strip()}}
    run = house.start("push", {"run": str(tmp_path / "run"), "repo": "own/set", "hub": block})
    until(lambda: house.run(run)["state_type"] in ("COMPLETED", "FAILED"), LONG_S, "ended")
    assert house.run(run)["state_type"] == "COMPLETED", house.run(run)["state"]["message"]
    assert "README.md" in hub[0].sets["own/set"]
    assert hub[0].private["own/set"] is True
    shown = house.post("artifacts/filter", {"flow_runs": {"id": {"any_": [run]}}})
    assert [a["data"] for a in shown if a["key"] == "set"] == [f"[own/set]({hub[1]}/datasets/own/set)"]
    told = [*house.post("logs/filter", {"logs": {"flow_run_id": {"any_": [run]}}}), house.run(run), *shown]
    assert TOKEN not in json.dumps(told)
    again = house.start("push", {"run": str(tmp_path / "run"), "repo": "own/set"})  # no token: refused, and told
    until(lambda: house.run(again)["state_type"] == "FAILED", LONG_S, "failed")
    assert "HF_TOKEN to a token that may write" in house.run(again)["state"]["message"]


def test_a_run_that_falls_silent_is_called_crashed_and_a_healthy_one_is_not(house: House, tmp_path: Path) -> None:
    patient(house, silent_s=12.0, wait_s=60.0)
    try:
        run = beating(house, settings(tmp_path, rows=2), beats=20, every_s=2.0)
        assert house.run(run)["state_name"] == "Running"  # 20 beats, over three times the limit
        until(lambda: house.run(run)["state_name"] == "Crashed", 60, "called crashed")
        assert "No heartbeat for 12 s" in house.run(run)["state"]["message"]
    finally:
        patient(house)  # before the next attempt, which beats every 30 s
    until(lambda: house.states(tmp_path / "run") == ["Crashed", "Completed"], LONG_S, "another went on")


def test_the_audit_comes_at_its_time_and_fails_for_a_planted_change(house: House, tmp_path: Path) -> None:
    source = tmp_path / "set.jsonl"
    answered(source, "It is {n}, since {n} and nothing make {n}.")
    [audit] = [d for d in house.post("deployments/filter", {}) if d["name"] == "audit"]
    given = {"machine": {"kernels": False}, "data": {"path": str(source)}}
    first = house.start("audit", given)
    until(lambda: house.run(first)["state_type"] in ("COMPLETED", "FAILED"), LONG_S, "ended")
    assert house.run(first)["state_type"] == "COMPLETED", house.run(first)["state"]["message"]
    answered(source, "OK.")
    due = datetime.now(UTC) + timedelta(seconds=100)
    near = {"cron": f"{due.minute} {due.hour} * * *", "timezone": "UTC"}
    nightly = {"active": True, "schedule": near, "parameters": given}
    [made] = house.post(f"deployments/{audit['id']}/schedules", [nightly])  # type: ignore[arg-type]
    try:
        by_itself = {"flow_runs": {"deployment_id": {"any_": [audit["id"]]}, "state": {"type": {"any_": ["FAILED"]}}}}
        [run] = until(lambda: house.post("flow_runs/filter", by_itself), LONG_S, "the nightly run has failed")
        assert run["auto_scheduled"]
        assert run["expected_start_time"][:16] == due.strftime("%Y-%m-%dT%H:%M")
        assert "100.0% of all answers are the same" in run["state"]["message"]
    finally:
        house._ask("DELETE", f"deployments/{audit['id']}/schedules/{made['id']}", None)


def test_a_failed_audit_is_told(house: House, hook: Hook, tmp_path: Path) -> None:
    """Not of the run above: Prefect holds the events of one that is scheduled only minutes ahead for a quarter hour,
    since they follow one that its scheduler never sends. A nightly run is scheduled days ahead."""
    answered(tmp_path / "set.jsonl", "OK.")
    data = {"path": str(tmp_path / "set.jsonl"), "history": False}
    run = house.start("audit", {"machine": {"kernels": False}, "data": data})
    told = until(lambda: [h for h in hook.heard if run in h["body"]], LONG_S, "the webhook heard of it")
    assert "failed" in told[0]["subject"]
    assert "UNFIT: 40 of 40 rows" in told[0]["body"]


def test_a_run_without_progress_is_told(house: House, hook: Hook, tmp_path: Path) -> None:
    patient(house, stalled_s=12.0)
    try:
        run = beating(house, settings(tmp_path), beats=8, every_s=2.0, event="reflash.run.progress")
        assert not [h for h in hook.heard if run in h["body"]]
        told = until(lambda: [h for h in hook.heard if run in h["body"]], 60, "the webhook heard of it")
        assert "stalled" in told[0]["subject"]
    finally:
        house.post(f"flow_runs/{run}/set_state", {"state": {"type": "CANCELLED"}, "force": True})
        patient(house)


def test_a_run_that_is_falsely_called_crashed_stops_and_leaves_its_folder_to_the_next(
    house: House, tmp_path: Path
) -> None:
    run = house.start("regenerate", {"config": settings(tmp_path, rows=200, script="slow")})
    until(lambda: list((tmp_path / "run" / "segments").rglob("*.parquet")), LONG_S, "a row is safe")
    process = process_of(house, run)
    house.post(f"flow_runs/{run}/set_state", {"state": {"type": "CRASHED"}, "force": True})
    until(lambda: not (Path("/proc") / str(process)).exists(), 90, "the first has stopped by itself")
    until(lambda: house.states(tmp_path / "run")[-1] == "Completed", LONG_S, "the second has completed")
    assert len(house.runs_of(tmp_path / "run")) == 2
    assert len(ids(tmp_path / "run")) == len(set(ids(tmp_path / "run"))) == 200


def test_a_killed_server_and_worker_are_started_again_under_a_run(house: House, tmp_path: Path) -> None:
    run = house.start("regenerate", {"config": settings(tmp_path, rows=100, script="slow")})
    until(lambda: list((tmp_path / "run" / "segments").rglob("*.parquet")), LONG_S, "a row is safe")
    before = house.processes()
    for name in ("server", "worker"):
        os.kill(before[name], signal.SIGKILL)
    until(lambda: others(house, before), LONG_S, "both were started again")
    until(lambda: safe_get(house, tmp_path / "run")[-1:] == ["Completed"], LONG_S, "completed")
    assert len(ids(tmp_path / "run")) == len(set(ids(tmp_path / "run"))) == 100
    assert run


def test_alerts_go_to_a_mailbox_where_up_names_one(house: House, hook: Hook, tmp_path: Path) -> None:
    """The last one: the webhook hears nothing any more."""
    with mailbox() as (address, letters):
        up = house.reflash("up", "--alert", address)
        assert up.returncode == 0, up.stdout + up.stderr
        again = house.reflash("up")  # without the option the mailbox stays
        assert "renewed" not in again.stdout
        answered(tmp_path / "set.jsonl", "OK.")
        data = {"path": str(tmp_path / "set.jsonl"), "history": False}
        run = house.start("audit", {"machine": {"kernels": False}, "data": data})
        until(lambda: letters, LONG_S, "a letter came")
    [letter] = letters
    read = message_from_string(letter)
    assert (read["To"], " failed" in str(read["Subject"])) == ("me@example.org", True)
    told = "".join(str(part.get_payload(decode=True)) for part in read.walk() if not part.is_multipart())
    assert "UNFIT: 40 of 40 rows" in told
    assert run in told
    assert not [h for h in hook.heard if run in h["body"]]


def answered(path: Path, answer: str) -> None:
    """A set of 40 conversations with such answers."""
    rows = [{"role": "user", "content": f"What is {n} and nothing?"} for n in range(40)]
    said = [[row, {"role": "assistant", "content": answer.format(n=n)}] for n, row in enumerate(rows)]
    path.write_text("".join(json.dumps({"id": str(n), "messages": talk}) + "\n" for n, talk in enumerate(said)))


def others(house: House, before: dict[str, int]) -> bool:
    now = house.processes()
    return all(now.get(name, pid) != pid for name, pid in before.items() if name != "keeper")


def safe_get(house: House, folder: Path) -> list[str]:
    try:
        return house.states(folder)
    except OSError:  # the server is being started again
        return []


def process_of(house: House, run: str) -> int:
    """The process in which a flow run runs: the worker's own child."""
    for child in linux.descendants(house.processes()["worker"]):
        try:
            if run in (Path("/proc") / str(child.pid) / "environ").read_text():
                return child.pid
        except OSError:
            continue
    raise AssertionError("the run has no process")


def beating(house: House, config: dict[str, Any], *, beats: int, every_s: float, event: str = "") -> str:
    """A run that nobody works on but that gives signs of life for a while; its id."""
    [deployment] = [d for d in house.post("deployments/filter", {}) if d["name"] == "regenerate"]
    body = {
        "parameters": {"config": config},
        "state": {"type": "SCHEDULED", "state_details": {"scheduled_time": "2999-01-01T00:00:00Z"}},
    }
    run = house.post(f"deployments/{deployment['id']}/create_flow_run", body)["id"]
    house.post(f"flow_runs/{run}/set_state", {"state": {"type": "RUNNING"}, "force": True})
    related = [
        {
            "prefect.resource.id": f"prefect.flow.{deployment['flow_id']}",
            "prefect.resource.role": "flow",
            "prefect.resource.name": "regenerate",
        },
        {"prefect.resource.id": f"prefect.deployment.{deployment['id']}", "prefect.resource.role": "deployment"},
    ]
    for _ in range(beats):
        sign = {
            "id": str(uuid.uuid4()),
            "occurred": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "event": event or "prefect.flow-run.heartbeat",
            "resource": {"prefect.resource.id": f"prefect.flow-run.{run}"},
            "related": related,
            "payload": {},
        }
        house._ask("POST", "events", [sign])  # type: ignore[arg-type]
        time.sleep(every_s)
    return str(run)
