"""An S3 API server on this machine, in a process of its own: moto's (uv sync --group stores)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def s3_server(host: str = "127.0.0.1") -> Iterator[str]:
    """Serve an empty bucket named `bucket`, on the loopback if nothing else is said, and name it in our environment.

    Yields its URL.
    """
    with socket.socket() as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", host, "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    endpoint = f"http://{host}:{port}"
    try:
        _make_bucket(endpoint)
        os.environ.update(AWS_ENDPOINT_URL=endpoint, AWS_REGION="us-east-1")
        os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test")
        yield "s3://bucket"
    finally:
        server.terminate()
        server.wait()


def _make_bucket(endpoint: str) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(urllib.request.Request(f"{endpoint}/bucket", method="PUT"))
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
