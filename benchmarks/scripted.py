"""The scripted engine of `../shared/bench`, started on a free loopback port."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
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
    port = _free_port()
    engine = _start(folder, port, flags)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        engine.kill()
        engine.wait()


@contextmanager
def mortal_engine(folder: Path, flags: Sequence[str], back_after_s: float, then: Sequence[str]) -> Iterator[str]:
    """An engine that dies by its own flags and is started again at the same port, some seconds after."""
    port = _free_port()
    engines = [_start(folder, port, flags)]

    def revive() -> None:
        engines[0].wait()
        time.sleep(back_after_s)
        engines.append(_start(folder, port, then))

    threading.Thread(target=revive, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        for engine in engines:
            engine.kill()
            engine.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start(folder: Path, port: int, flags: Sequence[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, folder / "mock_engine.py", "--port", str(port), *flags]
    engine = subprocess.Popen([*command, "--reasoning", "0", "--last-id", str(END), "--no-text"])
    _until_healthy(f"http://127.0.0.1:{port}/health")
    return engine


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
