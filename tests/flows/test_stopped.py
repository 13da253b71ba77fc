"""A run told to stop, by whoever: it says so, nothing of it stays behind, and the same command goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
START = "import sys; from flows.cli import main; sys.argv[0] = 'reflash'; main()"
MARK = "REFLASH_TEST_MARK"

pytestmark = [pytest.mark.prefect, pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]


def children(mark: str) -> list[str]:
    """Command lines of all processes that a command of this mark started, and that still run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # ended meanwhile
            continue
    return found


def waited(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.2)
    return condition()


def safe_rows(run: Path) -> int:
    return sum(1 for folder in ("segments", "parts") for _ in (run / folder).rglob("*.parquet"))


def ctrl_c(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all of the group


STOPS: list[tuple[Callable[[subprocess.Popen[str]], None], int, str]] = [
    (ctrl_c, 130, "the same command goes on"),
    (subprocess.Popen.terminate, -signal.SIGTERM, ""),
    (subprocess.Popen.kill, -signal.SIGKILL, ""),
]


def test_ctrl_c_sigterm_and_kill_leave_no_process_and_the_same_command_goes_on(tmp_path: Path) -> None:
    run, mark = tmp_path / "run", uuid.uuid4().hex
    command = [sys.executable, "-c", START, "demo", "--run", str(run)]
    command += ["--set", "source.limit=60", "--set", "plan.shard_rows=20"]
    environment = {**os.environ, MARK: mark, "PREFECT_HOME": str(tmp_path / "prefect")}
    for stop, code, words in STOPS:
        before = safe_rows(run)
        process = subprocess.Popen(
            command, env=environment, cwd=ROOT, start_new_session=True, text=True, stderr=subprocess.PIPE
        )
        assert waited(lambda known=before: safe_rows(run) > known, 120), "no row was finished"  # type: ignore[misc]
        assert len(children(mark)) >= 3, "the run, its Prefect server and its engine"
        stop(process)
        told = process.communicate(timeout=60)[1]
        assert process.returncode == code, told
        assert words in told
        assert "Traceback" not in told
        assert waited(lambda: children(mark) == [], 20), children(mark)
    assert subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode == 0
    assert waited(lambda: children(mark) == [], 20), children(mark)
