"""The engine that other tests stand on."""

from __future__ import annotations

import asyncio

import pytest

from reflash.config.engine import ScriptedConfig
from reflash.engines.scripted import SCRIPTS, ScriptedEngine, completion, echo, open_scripted
from reflash.errors import ConfigError, EngineLost, EngineRefused
from reflash.types import Completion, Prompt
from tests.engines.server import prompt


async def test_echo_follows_from_the_prompt_and_its_seed_alone() -> None:
    engine = open_scripted(ScriptedConfig())
    first, again, other_seed, other_ids = [
        await engine.generate(p) for p in (prompt(1, 3), prompt(1, 3), prompt(1, 3, seed=8), prompt(1, 4))
    ]
    assert first == again
    assert len({first.tokens, other_seed.tokens, other_ids.tokens}) == 3
    assert first.tokens[-1] == 2


def test_echo_is_the_same_in_every_process() -> None:
    assert echo(prompt(1, 3)).tokens[:3] == (6971, 2519, 4722)


async def test_it_keeps_what_it_was_asked_and_counts_what_is_in_flight() -> None:
    engine = ScriptedEngine(echo, delay=0.01)
    await asyncio.gather(*(engine.generate(prompt(i)) for i in range(5)))
    assert [p.tokens for p in engine.asked] == [(i,) for i in range(5)]
    assert (engine.in_flight, engine.most_in_flight) == (0, 5)


async def test_a_script_may_wait_and_may_fail() -> None:
    async def script(asked: Prompt) -> Completion | EngineLost:
        await asyncio.sleep(0)
        return EngineLost("gone") if asked.tokens == (9,) else completion(asked, [4, 5])

    engine = ScriptedEngine(script)
    assert (await engine.generate(prompt(1))).tokens == (4, 5)
    with pytest.raises(EngineLost, match="gone"):
        await engine.generate(prompt(9))
    assert engine.in_flight == 0


async def test_the_named_scripts_do_what_they_say() -> None:
    with pytest.raises(EngineRefused):
        await open_scripted(ScriptedConfig(script="refuse")).generate(prompt(1))
    flaky = open_scripted(ScriptedConfig(script="flaky"))
    with pytest.raises(EngineLost):
        await flaky.generate(prompt(1))
    assert (await flaky.generate(prompt(1))).finish_reason == "stop"


def test_an_unknown_script_is_a_config_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=", ".join(SCRIPTS)):
        open_scripted(ScriptedConfig(script="nonsense"))
