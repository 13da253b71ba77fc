"""kill -9 of the flow at random moments: a short form of `benchmarks/kill.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCH = ROOT.parent / "shared" / "bench"


@pytest.mark.slow
@pytest.mark.prefect
@pytest.mark.timeout(600)
@pytest.mark.skipif(not (BENCH / "mock_engine.py").exists(), reason="no scripted engine in ../shared/bench")
def test_killed_three_times_a_run_loses_doubles_and_mistakes_nothing() -> None:
    command = [sys.executable, "benchmarks/kill.py", "--kills", "3", "--rows", "600"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found = {line[:24].strip(): line[24:].strip() for line in answer.stdout.splitlines()}
    assert (found["lost"], found["doubled"], found["wrong"], found["left behind"]) == ("0", "0", "0", "0")
    assert found["exit code of the last"] == "0"
