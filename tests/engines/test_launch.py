"""Servers that are launched here: they come up, say why not, and leave nothing behind, whoever is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reflash.config.engine import ServedConfig, SglangConfig, VllmConfig
from reflash.engines.kept import KeptEngine
from reflash.engines.launched import LaunchedEngine
from reflash.engines.layout.gpus import Gpu
from reflash.engines.linux import descendants, process
from reflash.engines.serve.launch import launch_served, launch_server, prepare
from reflash.engines.serve.leftovers import end_leftovers, take_slot
from reflash.errors import ConfigError, EngineAbsent, EngineGone, EngineLost, EngineMisconfigured, EngineRefused
from tests.engines.server import prompt

PRETENDING = Path(__file__).with_name("pretending")
ROOT = Path(__file__).parents[2]
QWEN3 = {"model_type": "qwen3", "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64, "vocab_size": 100}
MODEL = {**QWEN3, "intermediate_size": 128, "max_position_embeddings": 4096}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="engines are launched on Linux")


class TwoCards:
    def gpus(self) -> Sequence[Gpu]:
        return [Gpu(i, f"GPU-{i}{i}{i}{i}", "NVIDIA H200", 141 * 2**30, 0) for i in range(2)]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """`ps` shows no process of ours after a test that was not there before it."""
    before = {p.pid for p in descendants(os.getpid())}
    yield
    assert {p.pid for p in descendants(os.getpid())} <= before


@pytest.fixture
def model(tmp_path: Path) -> str:
    folder = tmp_path / "a-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(MODEL))
    return str(folder)


def config(model: str, mode: str = "well", kind: type[ServedConfig] = VllmConfig, **more: Any) -> ServedConfig:
    env = {"PYTHONPATH": str(PRETENDING), "PRETEND": mode, **more.pop("env", {})}
    if kind is VllmConfig:
        more = {"device": "cpu", **more}
    return kind(model=model, python=sys.executable, width=4, env=env, **more)


async def launch(config: ServedConfig, folder: Path | None) -> list[LaunchedEngine]:
    return await launch_served(config, 512, folder, TwoCards())


@asynccontextmanager
async def launched(config: ServedConfig, folder: Path | None) -> AsyncIterator[LaunchedEngine]:
    [engine] = await launch(config, folder)
    try:
        yield engine
    finally:
        await engine.aclose()


def tree(pid: int) -> set[int]:
    """A process and all below it, in whatever session."""
    return {pid} | {p.pid for p in descendants(pid)}


def started_in(folder: Path) -> set[int]:
    """The processes of the one server whose record is in a folder, as soon as it has workers."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for file in folder.glob("engine-*.json"):
            pid = json.loads(file.read_text() or "{}").get("pid", 0)
            if pid and len(tree(pid)) == 4:
                return tree(pid)
        time.sleep(0.05)
    raise AssertionError("no server was started")


def living(pids: set[int]) -> set[int]:
    return {pid for pid in pids if (found := process(pid)) and not found.zombie}


def are_gone(pids: set[int], seconds: float = 12.0) -> bool:
    end = time.monotonic() + seconds
    while living(pids) and time.monotonic() < end:
        time.sleep(0.05)
    return not living(pids)


@pytest.mark.parametrize("kind", [VllmConfig, SglangConfig])
async def test_a_server_comes_up_answers_and_leaves_nothing(
    kind: type[ServedConfig], model: str, tmp_path: Path
) -> None:
    more = {} if kind is VllmConfig else {"replicas": 1}
    async with launched(config(model, kind=kind, **more), tmp_path / "logs") as engine:
        answer = await engine.generate(prompt(5, 6, 7, budget=2))
        assert answer.tokens == (5, 6)
        assert engine.version.endswith("9.9")
        assert engine.name.endswith(":a-model")
        pids = tree(engine.pid)
        assert len(pids) == 4  # guard, server, a worker, a worker in a session of its own
    assert not living(pids)
    assert [p.name for p in (tmp_path / "logs").iterdir()] == ["engine-0.log"]


@pytest.mark.parametrize("kind", [VllmConfig, SglangConfig])
async def test_its_key_is_on_no_command_line_nor_in_its_log(
    kind: type[ServedConfig], model: str, tmp_path: Path
) -> None:
    more = {} if kind is VllmConfig else {"replicas": 1}
    async with launched(config(model, kind=kind, **more), tmp_path) as engine:
        key = engine.http._api_key
        assert key
        for pid in tree(engine.pid):
            assert key.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert key not in (tmp_path / "engine-0.log").read_text()
        assert b"--port" in Path(f"/proc/{engine.pid}/cmdline").read_bytes()


async def test_each_replica_has_its_gpu_its_name_and_its_log(model: str, tmp_path: Path) -> None:
    engines = await launch(config(model, kind=SglangConfig), tmp_path)
    assert sorted(e.name for e in engines) == ["sglang:a-model/0", "sglang:a-model/1"]
    seen = set()
    for engine in engines:
        [server] = [p.pid for p in descendants(engine.pid) if p.parent == engine.pid]
        environ = Path(f"/proc/{server}/environ").read_bytes().split(b"\0")
        seen |= {line for line in environ if line.startswith(b"CUDA_VISIBLE_DEVICES=")}
    await asyncio.gather(*(e.aclose() for e in engines))
    assert seen == {b"CUDA_VISIBLE_DEVICES=GPU-0000", b"CUDA_VISIBLE_DEVICES=GPU-1111"}
    assert sorted(p.name for p in tmp_path.glob("engine-*")) == ["engine-0.log", "engine-1.log"]


async def test_a_crash_is_told_by_its_first_error_with_a_remedy(model: str, tmp_path: Path) -> None:
    with pytest.raises(EngineMisconfigured) as caught:
        await launch(config(model, "crash"), tmp_path)
    said = str(caught.value)
    assert "its process ended with 1" in said
    assert "Its first error: torch.OutOfMemoryError: CUDA out of memory" in said
    assert "lower `gpu_memory_utilization`" in said
    assert "Engine core initialization failed" in said  # the end of the log
    assert str(tmp_path / "engine-0.log") in said


async def test_one_that_says_it_is_healthy_and_dies_at_its_first_request_is_not_up(model: str) -> None:
    with pytest.raises(EngineMisconfigured, match=r"No module named 'flashinfer'.*reflash engines install"):
        await launch(config(model, "healthy"), None)


async def test_one_that_makes_no_token_in_time_is_ended(model: str, tmp_path: Path) -> None:
    with pytest.raises(EngineMisconfigured, match=r"made no token within 2 s \(start_s\)"):
        await launch(config(model, "silent", start_s=2), tmp_path)
    assert not list(tmp_path.glob("engine-*.json"))


async def test_a_port_that_was_taken_is_tried_again_with_another(model: str, tmp_path: Path) -> None:
    taking = config(model, "taken", env={"PRETEND_FOLDER": str(tmp_path)})
    async with launched(taking, tmp_path / "logs") as engine:
        assert str(engine.http._url.port) != (tmp_path / "was taken").read_text()


async def test_a_cancelled_launch_leaves_no_process(model: str, tmp_path: Path) -> None:
    task = asyncio.create_task(launch(config(model, "silent"), tmp_path))
    waiting = asyncio.create_task(asyncio.to_thread(started_in, tmp_path))
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    assert not task.done(), task.result()
    below = waiting.result()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not living(below)
    assert not list(tmp_path.glob("engine-*.json"))


async def test_one_replica_that_fails_takes_the_others_down(model: str, tmp_path: Path) -> None:
    taken = config(model, "taken", kind=SglangConfig, env={"PRETEND_FOLDER": str(tmp_path / "nowhere")})
    with pytest.raises(EngineMisconfigured):  # the pretended one cannot write its file
        await launch(taken, tmp_path)


async def test_a_server_that_dies_is_gone_with_the_end_of_its_log(model: str, tmp_path: Path) -> None:
    async with launched(config(model), tmp_path) as engine:
        pids = tree(engine.pid)
        [server] = [p.pid for p in descendants(engine.pid) if p.parent == engine.pid]
        os.kill(server, signal.SIGKILL)
        assert await asyncio.to_thread(are_gone, pids)  # the guard ends what the server left
        with pytest.raises((EngineGone, EngineLost)):
            await engine.generate(prompt(5))
        with pytest.raises(EngineGone, match=r"(?s)ended with 137.*pretending to be vllm"):
            await engine.generate(prompt(5))


async def test_an_id_that_the_model_does_not_have_is_never_sent(model: str, tmp_path: Path) -> None:
    async with launched(config(model), tmp_path) as engine:
        assert (await engine.generate(prompt(5, 99))).tokens
        with pytest.raises(EngineRefused, match=r"id 100, but the model has 100 ids: is model\.tokenizer"):
            await engine.generate(prompt(5, 100))


async def test_every_request_under_a_death_is_told_of_it_however_late_it_looks(model: str, tmp_path: Path) -> None:
    plan = await prepare(config(model), 512, tmp_path, TwoCards())
    first = await launch_server(plan, 0, tmp_path)
    engine = KeptEngine(first, partial(launch_server, plan, 0, tmp_path))

    async def ask(after_s: float) -> None:
        await asyncio.sleep(after_s)
        await engine.generate(prompt(5))

    try:
        [server] = [p.pid for p in descendants(first.pid) if p.parent == first.pid]
        os.kill(server, signal.SIGKILL)
        told = await asyncio.gather(*(ask(n / 200) for n in range(60)), return_exceptions=True)
    finally:
        await engine.aclose()
    assert any(isinstance(t, EngineLost) for t in told)
    assert all(t is None or isinstance(t, EngineLost | EngineAbsent) for t in told)


@pytest.mark.slow
async def test_a_server_that_does_not_heed_sigterm_is_killed(model: str, tmp_path: Path) -> None:
    async with launched(config(model, "deaf"), tmp_path) as engine:
        pids = tree(engine.pid)
        began = time.monotonic()
    assert not living(pids)
    assert time.monotonic() - began < 10


async def test_a_killed_guard_leaves_nothing_of_its_session(model: str, tmp_path: Path) -> None:
    async with launched(config(model), tmp_path) as engine:
        pids = {p for p in tree(engine.pid) if os.getsid(p) == engine.pid}
        assert len(pids) == 3
        os.kill(engine.pid, signal.SIGKILL)
        await asyncio.sleep(0.2)
    assert not living(pids)


STOPS = (signal.SIGINT, signal.SIGTERM)
FLOW = """
import asyncio, sys
sys.path.insert(0, {here!r})
from pathlib import Path
from tests.engines.test_launch import config, launch

async def main():
    [engine] = await launch(config({model!r}, {mode!r}), Path({folder!r}))
    print(engine.pid, flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        await engine.aclose()

asyncio.run(main())
"""


def flow(model: str, folder: Path, mode: str = "well") -> subprocess.Popen[bytes]:
    code = FLOW.format(here=str(Path(__file__).parent), model=model, mode=mode, folder=str(folder))
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environ)


@pytest.mark.parametrize("sent", [signal.SIGKILL, *(pytest.param(s, marks=pytest.mark.slow) for s in STOPS)])
def test_a_flow_that_is_killed_leaves_nothing(sent: signal.Signals, model: str, tmp_path: Path) -> None:
    with flow(model, tmp_path) as parent:
        assert parent.stdout
        pids = tree(int(parent.stdout.readline()))
        assert len(pids) == 4
        parent.send_signal(sent)
    assert are_gone(pids)


def test_what_a_dead_run_left_is_ended_and_nothing_else(model: str, tmp_path: Path) -> None:
    with flow(model, tmp_path) as parent:
        assert parent.stdout
        guard = int(parent.stdout.readline())
        os.kill(guard, signal.SIGSTOP)  # it will not notice that its parent is gone
        left = {p for p in tree(guard) if os.getsid(p) == guard}
        assert end_leftovers(tmp_path) == []  # the run lives
        parent.kill()
    assert living(left) == left
    mine = take_slot(tmp_path)
    os.kill(guard, signal.SIGKILL)
    [line] = end_leftovers(tmp_path)
    assert "a dead run left behind" in line
    assert not living(left)
    assert [p.name for p in tmp_path.glob("*.json")] == ["engine-1.json"]  # ours, which lives
    mine.free()


def test_a_pid_that_was_given_out_again_is_nobody_to_end(tmp_path: Path) -> None:
    sleeper = subprocess.Popen(["sleep", "60"], start_new_session=True)
    slot = take_slot(tmp_path)
    slot.started(sleeper.pid)
    [file] = tmp_path.glob("*.json")
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "parent_started": 1, "started": record["started"] - 100}))
    try:
        assert end_leftovers(tmp_path) == []
        assert living({sleeper.pid})
        assert not file.exists()
    finally:
        sleeper.kill()
        sleeper.wait()


def test_records_of_another_machine_are_left_alone(tmp_path: Path) -> None:
    other = {"place": "elsewhere", "parent": 1, "parent_started": 1, "pid": os.getpid(), "started": 1}
    (tmp_path / "engine-0.json").write_text(json.dumps(other))
    (tmp_path / "engine-1.json").write_text("half a rec")
    assert end_leftovers(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 2


async def test_an_environment_without_the_engine_is_a_config_error(model: str) -> None:
    wrong = config(model).model_copy(update={"env": {}})
    with pytest.raises(ConfigError, match="has no package vllm; `reflash engines install vllm`"):
        await launch(wrong, None)
    with pytest.raises(ConfigError, match="/nowhere/python does not run"):
        await launch(wrong.model_copy(update={"python": "/nowhere/python"}), None)


async def test_more_context_than_the_model_was_made_for_is_a_config_error(model: str) -> None:
    with pytest.raises(ConfigError, match="was made for 4096"):
        await launch_served(config(model), 4097, None, TwoCards())
