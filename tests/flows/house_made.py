"""A house of its own for tests: `reflash up` under a folder, what it says, and a webhook that hears its alerts."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any
from urllib.error import HTTPError

from tests.flows.made import MODEL
from tests.making import config, conversations_file

START = "import sys; from flows.cli import main; sys.argv[0] = 'reflash'; main()"
MARK = "REFLASH_TEST_MARK"


@dataclass(frozen=True, slots=True)
class House:
    """Where it stands and the environment in which its commands are given."""

    folder: Path
    port: int
    env: Mapping[str, str]

    @property
    def place(self) -> Path:
        return self.folder / "state" / "reflash" / "house"

    def reflash(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command as a user gives it."""
        command = [sys.executable, "-c", START, *words]
        return subprocess.run(command, env=self.env, cwd=self.folder, capture_output=True, text=True, check=False)

    def client_env(self) -> dict[str, str]:
        """The environment of a terminal that speaks to the house."""
        lines = (self.place / "client.env").read_text().splitlines()
        return {**self.env, **dict(line.split("=", 1) for line in lines)}

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._ask("POST", path, body)

    def get(self, path: str) -> Any:
        return self._ask("GET", path, None)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.port}/api/{path}"
        headers = {"Content-Type": "application/json"}
        if password := self.env.get("PREFECT_SERVER_API_AUTH_STRING"):
            headers["Authorization"] = f"Basic {b64encode(password.encode()).decode()}"
        asked = urllib.request.Request(url, data, headers, method=method)
        for left in range(10, -1, -1):
            try:
                with urllib.request.urlopen(asked, timeout=60) as answer:
                    return json.loads(answer.read() or b"null")
            except HTTPError as error:
                if error.code != 503 or not left:  # SQLite is busy: Prefect's own clients try again too
                    raise
                time.sleep(1)
        return None

    def start(self, deployment: str, parameters: Mapping[str, Any]) -> str:
        """A run of a deployment, as the UI starts one; its id."""
        [found] = [d["id"] for d in self.post("deployments/filter", {}) if d["name"] == deployment]
        body = {"parameters": parameters, "state": {"type": "SCHEDULED"}}
        return str(self.post(f"deployments/{found}/create_flow_run", body)["id"])

    def run(self, run: str) -> dict[str, Any]:
        return dict(self.get(f"flow_runs/{run}"))

    def runs_of(self, folder: Path) -> list[dict[str, Any]]:
        """The runs of one folder, the first attempt first."""
        found = self.post("flow_runs/filter", {})
        mine = [r for r in found if r["parameters"].get("config", {}).get("run") == str(folder)]
        return sorted(mine, key=lambda r: int(r["parameters"].get("attempt", 1)))

    def states(self, folder: Path) -> list[str]:
        return [run["state_name"] for run in self.runs_of(folder)]

    def processes(self) -> dict[str, int]:
        """Pid by name of those that are kept."""
        told = json.loads((self.place / "processes.json").read_text())["processes"]
        return {name: one["pid"] for name, one in told.items()}


@dataclass(slots=True)
class Hook:
    """A webhook on this machine, and what it heard."""

    url: str
    heard: list[dict[str, Any]] = field(default_factory=list)

    def subjects(self) -> list[str]:
        return [one["subject"] for one in self.heard]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def house_in(folder: Path, mark: str, **more: str) -> House:
    """A house that is not up yet, with more in its environment; nothing of the user's is read or written."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")} | more
    env |= {"XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "config"), MARK: mark}
    return House(folder, free_port(), env)


def settings(folder: Path, rows: int = 4, **changes: Any) -> dict[str, Any]:
    """A run config as the form gives it; `script` names the scripted engine's."""
    folder.mkdir(exist_ok=True)
    engine = {"kind": "scripted", "script": changes.pop("script", "echo"), "width": 2}
    source = changes.pop("source", {"path": str(conversations_file(folder / "rows.jsonl", rows))})
    plan = {"shard_rows": 10, "workers": 1}
    made = config(folder / "run", source=source, model=MODEL, engine=engine, plan=plan, **changes)
    return dict(made.model_dump(mode="json"))


def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """What the condition gives once it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.5)
    return found


def started_by(mark: str) -> list[str]:
    """Command lines of all processes of this mark that still run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes():
                found.append(f"{process.name} {(process / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()}")
        except OSError:  # ended meanwhile
            continue
    return found


@contextmanager
def mailbox() -> Iterator[tuple[str, list[str]]]:
    """A mail server on this machine: the address that alerts go to, and the letters that came, as they were sent."""
    letters: list[str] = []

    class Taking(StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline():
                verb = line[:4].strip().upper()
                self.wfile.write({b"DATA": b"354 go on\r\n", b"QUIT": b"221 bye\r\n"}.get(verb, b"250 well\r\n"))
                if verb == b"DATA":
                    taken = iter(self.rfile.readline, b".\r\n")
                    letters.append(b"".join(taken).decode())
                    self.wfile.write(b"250 taken\r\n")

    with ThreadingTCPServer(("127.0.0.1", 0), Taking) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        at = f"127.0.0.1:{server.server_address[1]}"
        yield f"mailto://{at}?from=gpus@example.org&to=me@example.org", letters
        server.shutdown()


@contextmanager
def webhook() -> Iterator[Hook]:
    """A server that takes a POST and keeps it."""

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hook.heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Taking) as server:
        hook = Hook(f"http://127.0.0.1:{server.server_address[1]}/hook?key=secret")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield hook
        server.shutdown()
