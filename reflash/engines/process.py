"""A process of our own and its log: started, read when it fails, ended with all that it started."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from reflash.engines.linux import process, processes
from reflash.printable import printable

GRACE_S = 5.0  # from SIGTERM to SIGKILL
TAIL = 2000  # bytes of the log that an error shows
LINE = 300  # characters of each line of it
PAUSE_S = 0.02


def open_log(log: Path | None) -> IO[bytes]:
    """The log, open to write at its end and to read; without a path a file that vanishes with its last user."""
    if log is None:
        return tempfile.TemporaryFile("a+b")
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("a+b")


def last(log: IO[bytes], size: int, since: int = 0) -> str:
    """The last `size` bytes of a log as text, from its byte `since` on."""
    log.seek(max(since, log.seek(0, os.SEEK_END) - size))
    return log.read().decode("utf-8", "replace").strip()


def tail(log: IO[bytes]) -> str:
    """The end of a log for an error's text, each line fit to print."""
    return "\n".join(printable(line, LINE) for line in last(log, TAIL).splitlines()) or "(empty)"


def end_of(log: IO[bytes]) -> str:
    """The same with its heading, behind a sentence."""
    return f" The end of its log:\n{tail(log)}"


async def end(started: subprocess.Popen[bytes], grace_s: float = GRACE_S) -> None:
    """SIGTERM to the group, SIGKILL after a grace, and wait; if this is cancelled too, SIGKILL at once.

    The process must lead a session of its own. What is left of the session when its leader is gone is killed too.
    """
    try:
        for sent, grace in ((signal.SIGTERM, grace_s), (signal.SIGKILL, GRACE_S)):
            if started.poll() is not None:
                break
            os.killpg(started.pid, sent)
            await asyncio.to_thread(_wait, started, grace)
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
        if started.stdin is not None:
            started.stdin.close()


def _wait(started: subprocess.Popen[bytes], seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        started.wait(seconds)


def kill_session(leader: int, started: int, seconds: float = GRACE_S) -> int:
    """Kill what is left of a session and wait until it is gone; how many processes that were.

    `started` is the start of its leader (`linux.process`). No pid is given out again while a session has its number: a
    leader with that number and another start is a stranger, and so is its session.
    """
    led = process(leader)
    if led is not None and led.started != started:
        return 0
    killed: set[int] = set()
    end_at = time.monotonic() + seconds
    while left := {p.pid for p in processes() if p.session == leader and p.started >= started and not p.zombie}:
        for pid in left - killed:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= left
        if time.monotonic() > end_at:
            break
        time.sleep(PAUSE_S)
    return len(killed)
