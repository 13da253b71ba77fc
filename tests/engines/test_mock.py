"""Against the scripted server of the benchmarks, where it lies beside the repository."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reflash.config.engine import Dialect, EndpointConfig, Patience
from reflash.engines.endpoint import open_endpoints
from reflash.errors import EngineBusy, EngineGarbage, EngineLost
from tests.engines.server import prompt

MOCK = Path(__file__).parents[3] / "shared" / "bench" / "mock_engine.py"
PATIENCE = Patience(connect_s=15, request_s=20)

pytestmark = pytest.mark.skipif(not MOCK.exists(), reason="bench/mock_engine.py is not beside the repository")

Start = Callable[..., str]


@pytest.fixture
def start(unused_tcp_port_factory: Callable[[], int]) -> Iterator[Start]:
    """Starts the mock with these arguments; gives its URL."""
    running = []

    def start(*arguments: str, port: int | None = None) -> str:
        port = port or unused_tcp_port_factory()
        running.append(subprocess.Popen([sys.executable, str(MOCK), "--port", str(port), "--rate", "0", *arguments]))
        return f"http://127.0.0.1:{port}"

    yield start
    for process in running:
        process.terminate()
        process.wait()


def head(ids: tuple[int, ...]) -> tuple[int, ...]:
    """The first 8 ids of its answer to a prompt of ids: the bytes of the prompt's hash, each plus 2000."""
    return tuple(2000 + byte for byte in hashlib.blake2b(str(list(ids)).encode(), digest_size=8).digest())


@pytest.mark.parametrize("dialect", ["auto", "vllm", "sglang"])
async def test_each_of_many_prompts_gets_its_own_answer(start: Start, dialect: Dialect) -> None:
    config = EndpointConfig(urls=(start("--fixed-tokens", "40"),), dialect=dialect, patience=PATIENCE)
    [engine] = await open_endpoints(config)
    asked = [prompt(i, 2 * i, 3) for i in range(500)]
    answers = await asyncio.gather(*(engine.generate(p) for p in asked))
    assert [a.tokens[:8] for a in answers] == [head(p.tokens) for p in asked]
    assert {(a.finish_reason, a.completion_tokens) for a in answers} == {("stop", 40)}
    assert engine.exact
    assert engine.context == 65536
    await engine.aclose()


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("--p500", EngineLost), ("--p429", EngineBusy), ("--pdrop", EngineLost), ("--pgarbage", EngineGarbage)],
)
async def test_its_faults_are_told_apart(start: Start, fault: str, kind: type[Exception]) -> None:
    [engine] = await open_endpoints(EndpointConfig(urls=(start(fault, "1"),), patience=PATIENCE))
    with pytest.raises(kind) as caught:
        await engine.generate(prompt(1, 2, 3))
    assert not isinstance(caught.value, EngineBusy) or caught.value.retry_after == 1.0
    await engine.aclose()


async def test_an_engine_that_dies_and_comes_back_is_lost_and_then_answers(start: Start) -> None:
    url = start("--fixed-tokens", "20", "--die-after", "5")
    [engine] = await open_endpoints(EndpointConfig(urls=(url,), patience=PATIENCE))
    answers = await asyncio.gather(*(engine.generate(prompt(i)) for i in range(20)), return_exceptions=True)
    assert any(isinstance(a, EngineLost) for a in answers)
    start("--fixed-tokens", "20", port=int(url.rpartition(":")[2]))
    [reached] = await open_endpoints(EndpointConfig(urls=(url,), patience=PATIENCE))  # waits until it is back
    assert (await engine.generate(prompt(1))).completion_tokens == 20
    await reached.aclose()
    await engine.aclose()
