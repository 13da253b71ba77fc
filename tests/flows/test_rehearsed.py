"""A run on three machines with accidents: a short form of `benchmarks/nodes.py`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.flows.test_killed import BENCH, ROOT

NEEDED = ("ip", "unshare", "initdb", "postgres")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.prefect
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not (BENCH / "mock_engine.py").exists(), reason="no scripted engine in ../shared/bench")
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
@pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason=f"one of {', '.join(NEEDED)} is not on this machine")
def test_with_a_node_killed_one_cut_off_and_one_late_nothing_is_lost_doubled_or_wrong() -> None:
    pytest.importorskip("moto", reason="moto is in the dependency group `stores`")
    command = [sys.executable, "benchmarks/nodes.py", "--rehearsals", "1", "--lanes", "1", "--seed", "3"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert re.search(r"lost 0, doubled 0, wrong 0, left behind 0, answered twice \d+", answer.stdout), answer.stdout
