"""A Prefect server with its UI, a run on it, and a tab that shows them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[2]
START_S = 120.0

SPITEFUL = (
    "![x](http://example.org/x.png) <img src=http://example.org/y.png> | cell | <script>alert(1)</script> **loud** "
    "www.example.org me@example.org"
)


@dataclass(frozen=True, slots=True)
class Server:
    """A server of its own, and the environment in which a command speaks to it."""

    url: str
    env: Mapping[str, str]

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """What the API answers."""
        request = urllib.request.Request(
            f"{self.url}/api/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def reflash(self, *arguments: str, timeout: float) -> None:
        """Run a command of the project against this server."""
        code = "from flows.cli import main; main()"
        subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=ROOT,
            env={**self.env, "PREFECT_API_URL": f"{self.url}/api"},
            timeout=timeout,
            check=True,
        )


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: where it lies, and where the UI shows it."""

    folder: Path
    name: str
    page: str
    artifacts: Mapping[str, str] = field(default_factory=dict)  # page by key

    @property
    def report(self) -> dict[str, Any]:
        """What the run says of itself."""
        return json.loads((self.folder / "report.json").read_text())


@dataclass(slots=True)
class Tab:
    """A browser tab, and what went wrong in it."""

    page: Any  # playwright.sync_api.Page
    complaints: list[str] = field(default_factory=list)  # console errors and exceptions
    asked_elsewhere: list[str] = field(default_factory=list)  # requests to other machines; none gets out


Opener: TypeAlias = Callable[..., Tab]  # opens a URL in a tab of its own


@contextmanager
def prefect_server(home: Path) -> Iterator[Server]:
    """A server with its UI on a free port of this machine, ended at the end."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    env = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")} | {
        "PREFECT_HOME": str(home),
        "PREFECT_UI_API_URL": f"{url}/api",  # without it the pages ask port 4200
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "DO_NOT_TRACK": "1",
    }
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    log = home.parent / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=env, stdout=out, stderr=out, start_new_session=True)
    try:
        _wait_for(process, url, log)
        yield Server(url, env)
    finally:
        _end(process)


def run_named(server: Server, folder: Path, name: str) -> Run:
    """The run of that name, once the server has written down all of its tasks, which it does a little later."""
    report = json.loads((folder / "report.json").read_text())
    wanted = (
        3 + 3 * report["shards"]
    )  # a look at the machine, plan and report; generate, validate and publish of each shard
    deadline = time.monotonic() + 60
    while True:
        [run] = server.post("flow_runs/filter", {"flow_runs": {"name": {"any_": [name]}}})
        of_it = {"flow_runs": {"id": {"any_": [run["id"]]}}}
        tasks = server.post("task_runs/filter", of_it)
        if run["state_type"] == "COMPLETED" and [t["state_type"] for t in tasks] == ["COMPLETED"] * wanted:
            break
        if time.monotonic() > deadline:
            raise AssertionError(f"{name}: {run['state_type']}, tasks {[(t['name'], t['state_type']) for t in tasks]}")
        time.sleep(0.5)
    artifacts = {a["key"]: a["id"] for a in server.post("artifacts/filter", of_it) if a["key"]}
    ui = f"{server.url}/v2"
    return Run(
        folder,
        name,
        page=f"{ui}/runs/flow-run/{run['id']}",
        artifacts={key: f"{ui}/artifacts/artifact/{found}" for key, found in artifacts.items()},
    )


def _wait_for(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/api/health", timeout=2):
                return
        except OSError:
            time.sleep(0.3)
    raise RuntimeError(f"no Prefect server: {log.read_text()[-2000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its own session, see above
        process.wait()
