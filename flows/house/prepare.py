"""What a server must know before runs are started from its UI: blocks, work pool, deployments, automations.

A program of its own, `python -m flows.house.prepare`, which speaks to the server that PREFECT_API_URL names. Each step
leaves alone what stands already.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import yaml
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound

from flows.house import automations, settings
from flows.house.place import Place, place
from flows.house.saved import alert_block, register
from reflash.config.run import RunConfig
from reflash.errors import ConfigError, ReflashError

ALERT = "REFLASH_ALERT_URL"  # not an argument: others could read it in the list of processes


def prepare(client: SyncPrefectClient, where: Place, folder: Path, alert_url: str) -> Iterator[str]:
    """Do every step; a line each that says what was made and what stood already."""
    yield f"work pool {settings.POOL}: {_pool(client)}"
    yield f"work queue {settings.QUEUE}: {_queue(client)}"
    yield f"blocks: {', '.join(register())}"
    yield f"deployments: {_deployments(client, where, folder)}"
    alert = alert_block(client, alert_url)
    if alert is None:
        yield "alerts: none; `reflash up --alert URL` sends them to a webhook or a mailbox"
    for line in automations.put(client, automations.wanted(automations.Patience(), alert)):
        yield f"automation {line}"


def _pool(client: SyncPrefectClient) -> str:
    try:
        client.create_work_pool(WorkPoolCreate(name=settings.POOL, type="process"))
    except ObjectAlreadyExists:  # the worker may have been quicker
        return "stands"
    return "made"


def _queue(client: SyncPrefectClient) -> str:
    """The queue of runs that want the GPUs, one at a time; a limit that a person has set stays."""
    try:
        client.read_work_queue_by_name(settings.QUEUE, work_pool_name=settings.POOL)
    except ObjectNotFound:
        client.create_work_queue(settings.QUEUE, concurrency_limit=1, work_pool_name=settings.POOL)
        return "made, one run at a time"
    return "stands"


def _deployments(client: SyncPrefectClient, where: Place, folder: Path) -> str:
    """Deploy prefect.yaml as `prefect deploy --all` does, unless it stands there just so."""
    file = settings.project() / "prefect.yaml"
    names = [one["name"] for one in yaml.safe_load(file.read_text())["deployments"]]
    digest = _digest(file, folder)
    if _last(where) == {"digest": digest, "ids": _ids(client, names)}:
        return f"{', '.join(names)} stand"
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", str(file)]
    with where.log("deploy").open("wb") as out:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False)
    if done.returncode:
        said = where.log("deploy").read_text(errors="replace")[-2000:]
        raise ConfigError(f"`prefect deploy --all` ended with exit code {done.returncode}:\n{said}")
    where.deployed.write_text(json.dumps({"digest": digest, "ids": _ids(client, names)}) + "\n")
    return f"{', '.join(names)} deployed"


def _digest(file: Path, folder: Path) -> str:
    """Of all that a deployment is made from; what a person has changed in the UI since then is theirs."""
    parts = (file.read_text(), json.dumps(RunConfig.model_json_schema()), str(folder), sys.executable)
    return sha256("\0".join(parts).encode()).hexdigest()


def _ids(client: SyncPrefectClient, names: list[str]) -> dict[str, str]:
    return {one.name: str(one.id) for one in client.read_deployments(limit=200) if one.name in names}


def _last(where: Place) -> Mapping[str, object] | None:
    try:
        told: Mapping[str, object] = json.loads(where.deployed.read_text())
    except (OSError, ValueError):
        return None
    return told


def main() -> None:
    """Prepare the server for runs in the folder where this is called."""
    where = place()
    where.make()
    try:
        with get_client(sync_client=True) as client:
            for line in prepare(client, where, Path.cwd(), os.environ.get(ALERT, "")):
                print(line, flush=True)  # noqa: T201
    except ReflashError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
