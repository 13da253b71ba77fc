"""A Prefect server for one command, where none is configured.

Prefect can start one by itself, but that one gets the terminal's Ctrl-C before the run does, which then waits minutes
for its answers, and a killed command leaves it behind.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import httpx
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker
from prefect.settings import PREFECT_API_URL, get_current_settings, temporary_settings

from reflash.errors import ConfigError

PATIENCE_S = 120.0  # its first start makes a database
GRACE_S = 5.0
_ENVIRONMENT = {
    "PREFECT_UI_ENABLED": "0",
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT__SERVER_FINAL": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
}


@contextmanager
def some_server() -> Iterator[str]:
    """The configured server's API, or that of one which lives as long as the block."""
    configured = PREFECT_API_URL.value()
    if configured:
        _check_there(str(configured))
        yield str(configured)
        return
    with tempfile.TemporaryFile("w+b") as printed:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            server = _start(listening, printed)
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/api"
        try:
            _wait(server, url, printed)
            with temporary_settings({PREFECT_API_URL: url}):
                yield url
        finally:
            for worker in (APILogWorker, EventsWorker):  # at Python's exit they would try a server that is gone
                worker.drain_all(timeout=GRACE_S)
            _stop(server)


def _check_there(url: str) -> None:
    """Raise ConfigError where nobody listens: Prefect itself would try for long, and say so in a traceback."""
    try:
        httpx.get(f"{url}/health", timeout=10.0)
    except httpx.TransportError as error:
        raise ConfigError(
            f"PREFECT_API_URL is {url}, but no Prefect server answers there ({error}). Start it (`uv run prefect server"
            " start`), or unset the variable to run without one"
        ) from error


def _start(listening: socket.socket, printed: IO[bytes]) -> subprocess.Popen[bytes]:
    """A child that serves on our socket and ends when its stdin does, which our end closes, however it comes.

    What it prints goes to a file: it complains at length of every client that goes away in the middle of a word.
    """
    settings = get_current_settings().to_environment_variables(exclude_unset=True)
    return subprocess.Popen(
        [sys.executable, "-m", "flows.server", str(listening.fileno())],
        env={**os.environ, **_ENVIRONMENT, **settings},
        stdin=subprocess.PIPE,
        stdout=printed,
        stderr=printed,
        pass_fds=(listening.fileno(),),
        start_new_session=True,  # the terminal's Ctrl-C is for the run
    )


def _wait(server: subprocess.Popen[bytes], url: str, printed: IO[bytes]) -> None:
    end = time.monotonic() + PATIENCE_S
    with httpx.Client(timeout=2.0) as client:
        while time.monotonic() < end and server.poll() is None:
            try:
                if client.get(f"{url}/health").is_success:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
    printed.seek(0)
    raise ConfigError(
        f"Prefect's server did not start (exit code {server.poll()}). Start one with `prefect server start` and set"
        f" PREFECT_API_URL to its address. It printed:\n{printed.read().decode(errors='replace')[-3000:]}"
    )


def _stop(server: subprocess.Popen[bytes]) -> None:
    if server.stdin:
        server.stdin.close()
    try:
        server.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _serve(descriptor: int) -> None:
    import uvicorn
    from prefect.server.api.server import create_app

    server = uvicorn.Server(uvicorn.Config(create_app(), log_level="error", lifespan="on"))

    def watch() -> None:
        sys.stdin.buffer.read()
        server.should_exit = True
        time.sleep(GRACE_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    server.run(sockets=[socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
