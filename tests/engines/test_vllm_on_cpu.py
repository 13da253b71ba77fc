"""vLLM itself: it thinks, it dies, and nothing of it is left. The contract tests ask it everything else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reflash.engines.launched import LaunchedEngine
from reflash.engines.linux import Process, descendants, process
from reflash.engines.serve.launch import launch_served
from reflash.errors import EngineError, EngineGone
from tests.engines.real_vllm import vllm_on_cpu
from tests.engines.server import prompt
from tests.small_qwen3 import END, END_OF_THOUGHT, NEWLINE, THINK

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]
DYING_S = 30.0


def living(pids: set[int]) -> set[int]:
    return {pid for pid in pids if (found := process(pid)) and not found.zombie}


def are_gone(pids: set[int], seconds: float = 15.0) -> bool:
    end = time.monotonic() + seconds
    while living(pids) and time.monotonic() < end:
        time.sleep(0.1)
    return not living(pids)


def core(guard: int) -> Process:
    """The process that computes, which is not the one that answers."""
    [found] = [p for p in descendants(guard) if "EngineCore" in Path(f"/proc/{p.pid}/cmdline").read_text()]
    return found


async def ask_until_gone(engine: LaunchedEngine) -> None:
    """It takes vLLM some seconds to end when one of its processes has."""
    end = time.monotonic() + DYING_S
    while time.monotonic() < end:
        try:
            await engine.generate(prompt(NEWLINE))
        except EngineGone:
            raise
        except EngineError:
            await asyncio.sleep(0.2)


async def test_it_thinks_by_seed_and_its_death_is_told_with_nothing_left(models: Path, tmp_path: Path) -> None:
    [engine] = await launch_served(vllm_on_cpu(models), 512, tmp_path)
    pids = {engine.pid} | {p.pid for p in descendants(engine.pid)}
    try:
        one, two, again = [(await engine.generate(prompt(NEWLINE, budget=400, seed=s))).tokens for s in (1, 2, 1)]
        assert one == again != two
        assert one[0] == THINK
        assert one[-1] == END
        assert one.count(END_OF_THOUGHT) == 1
        os.kill(core(engine.pid).pid, signal.SIGKILL)
        with pytest.raises(EngineGone, match=r"(?s)its process ended with.*The end of its log"):
            await ask_until_gone(engine)
    finally:
        await engine.aclose()
    assert not living(pids)
    assert [p.name for p in tmp_path.iterdir()] == ["engine-0.log"]


FLOW = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {here!r})
from tests.engines.real_vllm import vllm_on_cpu
from reflash.engines.serve.launch import launch_served

async def main():
    [engine] = await launch_served(vllm_on_cpu(Path({models!r})), 512, Path({folder!r}))
    print(engine.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_kill_9_of_the_flow_leaves_nothing_of_it(models: Path, tmp_path: Path) -> None:
    vllm_on_cpu(models)
    here = Path(__file__).parent
    code = FLOW.format(here=str(here), models=str(models), folder=str(tmp_path))
    environ = {**os.environ, "PYTHONPATH": str(here.parents[1])}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environ) as flow:
        assert flow.stdout
        guard = int(flow.stdout.readline())
        pids = {guard} | {p.pid for p in descendants(guard)}
        assert core(guard).pid in pids
        flow.kill()
    assert are_gone(pids)
