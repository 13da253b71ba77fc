"""The scripted engine of `../shared/bench`, started on a free loopback port."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
END = 2  # SmolLM2's <|im_end|>


def shared_bench() -> Path:
    """Where the scripted engine and the floors are, if they are here."""
    return HERE.parent.parent / "shared" / "bench"


@contextmanager
def mock_engine(folder: Path, flags: Sequence[str]) -> Iterator[str]:
    """The engine's URL; it answers in SmolLM2's ids, without thinking, and ends when the block does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, folder / "mock_engine.py", "--port", str(port), *flags]
    engine = subprocess.Popen([*command, "--reasoning", "0", "--last-id", str(END), "--no-text"])
    try:
        _until_healthy(f"http://127.0.0.1:{port}/health")
        yield f"http://127.0.0.1:{port}"
    finally:
        engine.kill()
        engine.wait()


def _until_healthy(url: str, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(url)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
