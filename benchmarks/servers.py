"""A Prefect server with its UI, and its database, for as long as a measurement takes."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def bare_environment() -> dict[str, str]:
    """This environment without Prefect's settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    return {**kept, "PYTHONPATH": str(HERE.parent), "DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}


@contextmanager
def database(kind: str, scratch: Path, *, host: str = "127.0.0.1") -> Iterator[str | None]:
    """A PostgreSQL of our own as an URL, None for SQLite."""
    if kind == "sqlite":
        yield None
        return
    if not all(map(shutil.which, ("initdb", "postgres"))):
        sys.exit("skipped: no PostgreSQL on this machine; initdb and postgres are not in the PATH")
    user = "nobody" if os.geteuid() == 0 else None  # it refuses to run as root
    name, port = user or pwd.getpwuid(os.geteuid()).pw_name, free_port()
    with tempfile.TemporaryDirectory(dir=_open_to(user, scratch)) as place:
        folder = Path(place)
        if user:
            shutil.chown(folder, user)
        quiet: dict[str, Any] = {"user": user, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
        subprocess.run(["initdb", "-D", folder / "data", "-A", "trust", "-U", name], check=True, **quiet)
        with (folder / "data" / "pg_hba.conf").open("a") as allowed:
            allowed.write(f"host all all {host}/32 trust\n")
        listen = ["-c", f"listen_addresses={host}", "-c", f"unix_socket_directories={folder}"]
        postgres = subprocess.Popen(["postgres", "-D", folder / "data", "-p", str(port), *listen], **quiet)
        try:
            until(lambda: socket.create_connection((host, port), 1).close())
            yield f"postgresql+asyncpg://{name}@{host}:{port}/postgres"
        finally:
            postgres.terminate()
            postgres.wait()


def _open_to(user: str | None, scratch: Path) -> Path | None:
    """Where that user can come in: none but its owner enters a scratch folder, so one beside it."""
    return None if user else scratch


class Server:
    """A Prefect server with its UI."""

    def __init__(self, url: str, env: Mapping[str, str], pid: int) -> None:
        self.url, self.env, self._pid = url, env, pid

    @property
    def cpu_seconds(self) -> float:
        """What it and its children have used."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """What the API answers."""
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


@contextmanager
def prefect_server(
    scratch: Path, database_url: str | None, *, host: str = "127.0.0.1", port: int = 0
) -> Iterator[Server]:
    """A server, on a free port where none is given, ended at the end."""
    port = port or free_port()
    url = f"http://{host}:{port}"
    env = {**bare_environment(), "PREFECT_HOME": str(scratch / "prefect"), "PREFECT_UI_API_URL": f"{url}/api"}
    env["PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT"] = "false"
    if database_url:
        env["PREFECT_API_DATABASE_CONNECTION_URL"] = database_url
    start = [sys.executable, "-m", "prefect", "server", "start", "--host", host, "--port", str(port)]
    with (scratch / "server.log").open("ab") as log:
        process = subprocess.Popen(start, env=env, stdout=log, stderr=log)

    def healthy() -> None:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: {(scratch / 'server.log').read_text()[-3000:]}")
        urllib.request.urlopen(f"{url}/api/health", timeout=2).close()

    try:
        until(healthy)
        yield Server(url, {**env, "PREFECT_API_URL": f"{url}/api"}, process.pid)
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    """A port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(look: Any, seconds: float = 120.0) -> None:
    """Wait until a look no longer fails with an OSError."""
    end = time.monotonic() + seconds
    while True:
        try:
            look()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
        else:
            return
