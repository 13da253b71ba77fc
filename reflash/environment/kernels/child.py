"""A program in a child process of its own: whether it crashes, hangs or eats memory, the caller is unharmed."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from reflash.environment.facts import Outcome

LOOK_S = 0.05  # between looks at its memory
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended. `passed` here means: exit code 0."""

    outcome: Outcome
    output: str  # the end of what it wrote
    errors: str
    seconds: float
    why: str = ""  # "signal SIGSEGV", "after 60 s"


def run_child(
    argv: Sequence[str], environment: Mapping[str, str], limit_s: float, memory: int = 32 * GIB, keep: int = 1 << 20
) -> Ended:
    """Run it to its end, or to its limit of time or of resident memory (bytes, its children's included).

    Its whole process group is killed then. Returns how it ended; a program that is not there is `absent`.
    """
    began = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            child = subprocess.Popen(
                argv, env=dict(environment), stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )
        except OSError as error:
            return Ended("absent", "", "", 0.0, f"{argv[0]} does not run ({error.strerror})")
        try:
            stopped = _watch(child, began + limit_s, memory)
        finally:
            _kill_group(child)
        seconds = time.monotonic() - began
        outcome, why = _judged(child.returncode, stopped, limit_s, memory)
        return Ended(outcome, _tail(out, keep), _tail(err, keep), seconds, why)


def _watch(child: subprocess.Popen[bytes], until: float, memory: int) -> Outcome | None:
    """Why it must be stopped; None where it ended by itself."""
    _first_to_go(child.pid)
    while True:
        try:
            child.wait(timeout=LOOK_S)
            return None
        except subprocess.TimeoutExpired:
            if time.monotonic() > until:
                return "hung"
            if _resident(child.pid) > memory:
                return "memory"


def _judged(code: int, stopped: Outcome | None, limit_s: float, memory: int) -> tuple[Outcome, str]:
    if stopped == "hung":
        return "hung", f"no end after {limit_s:g} s"
    if stopped == "memory":
        return "memory", f"more than {memory / GIB:.1f} GiB of memory"
    if code == -signal.SIGKILL:
        return "memory", "killed, most often for want of memory"
    if code < 0:
        return "crashed", f"signal {signal.Signals(-code).name}"
    return ("raised", f"exit code {code}") if code else ("passed", "")


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _first_to_go(pid: int) -> None:
    """Where the machine runs out of memory, the child goes and not the caller."""
    with suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


def _resident(group: int) -> int:
    """Bytes that the processes of a group hold; what vanishes meanwhile holds none."""
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                total += int(fields[21]) * os.sysconf("SC_PAGE_SIZE") if int(fields[2]) == group else 0
    return total


def _tail(file: IO[bytes], keep: int) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - keep))
    return file.read().decode("utf-8", "replace")
