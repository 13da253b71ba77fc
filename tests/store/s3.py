"""A real S3 API server on this machine (moto's), and a proxy before it that loses what networks lose."""

from __future__ import annotations

import http.client
import logging
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

BUCKET = "bucket"
_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive"}


@contextmanager
def s3_server() -> Iterator[str]:
    """Serve an empty bucket on the loopback; yields the endpoint's URL."""
    pytest.importorskip("moto", reason="moto is in the dependency group `stores`: uv sync --group stores")
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        _put_bucket(server.port)
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)


def _put_bucket(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)):
        pass
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for method, path in (("POST", "/moto-api/reset"), ("PUT", f"/{BUCKET}")):
        connection.request(method, path)
        assert connection.getresponse().read() is not None
    connection.close()


def environment(endpoint: str) -> dict[str, str]:
    """What a program needs in its environment to use the server."""
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    return {"AWS_ENDPOINT_URL": endpoint, **keys}


class FaultyProxy:
    """Passes requests on, but for the shares of them that meet a fault; counts requests by method and faults by kind.

    Kinds: `refused` 500, nothing done; `lost` done, then 500; `cut` closed, nothing done; `gone` done, then closed;
    `half` closed in the middle of the answer; `slow` late.
    """

    def __init__(self, target: str, shares: Mapping[str, float], seed: int = 0, slow_s: float = 0.3) -> None:
        self.target = target.removeprefix("http://")
        self.shares, self.slow_s = dict(shares), slow_s
        self.requests: Counter[str] = Counter()
        self.conditional = 0  # puts that must not overwrite
        self.met: Counter[str] = Counter()
        self._rng, self._lock = random.Random(seed), threading.Lock()
        proxy = self

        class Handler(_Handler):
            faults = proxy

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Its endpoint."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FaultyProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=10)

    def next_fault(self, method: str, conditional: bool) -> str | None:
        """The fault of the next request, if any."""
        with self._lock:
            self.requests[method] += 1
            self.conditional += conditional
            at = self._rng.random()
            for kind, share in self.shares.items():
                at -= share
                if at < 0:
                    self.met[kind] += 1
                    return kind
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body in one packet: the client's kernel would wait for the second
    disable_nagle_algorithm = True
    faults: FaultyProxy

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.faults.next_fault(self.command, "If-None-Match" in self.headers)
        if fault == "slow":
            time.sleep(self.faults.slow_s)
        if fault == "cut":
            return self._cut()
        if fault == "refused":
            return self._answer(500, [], b"<Error><Code>InternalError</Code></Error>")
        status, headers, answer = self._ask(body)
        if fault == "gone":
            return self._cut()
        if fault == "lost":
            return self._answer(500, [], b"<Error><Code>InternalError</Code></Error>")
        return self._answer(status, headers, answer, half=fault == "half" and len(answer) > 1)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.faults.target, timeout=30)
        try:
            kept = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
            connection.request(self.command, self.path, body, kept)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes, *, half: bool = False) -> None:
        self.send_response_only(status)
        length = next((v for k, v in headers if k.lower() == "content-length"), str(len(body)))
        for name, value in headers:
            if name.lower() not in _HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if half else body)
        if half:
            self._cut()

    def _cut(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""
