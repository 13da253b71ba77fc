"""An engine of our own that dies is launched again, and given up only with a clear word."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from reflash.engines.kept import RESTARTS, KeptEngine
from reflash.engines.scripted import Said, ScriptedEngine, echo
from reflash.errors import ConfigError, EngineGone, EngineLost, EngineMisconfigured, EngineStarting
from reflash.types import Prompt, Sampling

PROMPT = Prompt("a", 0, (3, 20, 0, 4), 4, Sampling())


def dead(_prompt: Prompt) -> Said:
    return EngineGone("its process ended with -9")


class Launcher:
    """Launches engines by their scripts, in turn; the last one again and again."""

    def __init__(self, *scripts: Callable[[Prompt], Said] | Exception) -> None:
        self.scripts = list(scripts)
        self.launched = 0

    async def __call__(self) -> ScriptedEngine:
        script = self.scripts[min(self.launched, len(self.scripts) - 1)]
        self.launched += 1
        await asyncio.sleep(0.02)
        if isinstance(script, Exception):
            raise script
        return ScriptedEngine(script, width=4)


def run(launcher: Launcher, scenario: Callable[[KeptEngine], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        engine = KeptEngine(await launcher(), launcher, backoff_s=0.01)
        try:
            await asyncio.wait_for(scenario(engine), 10)
        finally:
            await engine.aclose()

    asyncio.run(whole())


async def until_there(engine: KeptEngine) -> None:
    while True:
        try:
            await engine.generate(PROMPT)
        except (EngineStarting, EngineLost):
            await asyncio.sleep(0.01)
        else:
            return


def test_a_death_under_many_requests_is_one_launch() -> None:
    launcher = Launcher(dead, echo)

    async def scenario(engine: KeptEngine) -> None:
        answers = await asyncio.gather(*(engine.generate(PROMPT) for _ in range(20)), return_exceptions=True)
        assert {type(a) for a in answers} == {EngineLost, EngineStarting} or {type(a) for a in answers} == {EngineLost}
        await until_there(engine)

    run(launcher, scenario)
    assert launcher.launched == 2


def test_an_engine_that_dies_again_and_again_is_given_up_with_its_last_words() -> None:
    launcher = Launcher(dead)

    async def scenario(engine: KeptEngine) -> None:
        with pytest.raises(EngineGone, match=f"{RESTARTS} times in a row.*ended with -9"):
            await until_there(engine)

    run(launcher, scenario)
    assert launcher.launched == 1 + RESTARTS


def test_a_launch_that_fails_counts_and_is_tried_again() -> None:
    launcher = Launcher(dead, EngineMisconfigured("no memory"), EngineMisconfigured("no memory"), echo)

    async def scenario(engine: KeptEngine) -> None:
        with pytest.raises(EngineLost):
            await engine.generate(PROMPT)
        await until_there(engine)

    run(launcher, scenario)
    assert launcher.launched == 4


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), ConfigError("no GPU"), ValueError("ours")])
def test_a_launch_that_fails_for_any_reason_ends_in_a_clear_word(fault: Exception) -> None:
    launcher = Launcher(dead, fault)

    async def scenario(engine: KeptEngine) -> None:
        with pytest.raises(EngineGone, match=str(fault.args[-1])):
            await until_there(engine)

    run(launcher, scenario)


def test_one_that_stands_still_is_launched_again_on_request() -> None:
    launcher = Launcher(echo, echo)

    async def scenario(engine: KeptEngine) -> None:
        assert engine.restart("no token for 180 s")
        with pytest.raises(EngineStarting):
            await engine.generate(PROMPT)
        await until_there(engine)

    run(launcher, scenario)
    assert launcher.launched == 2


def test_closing_while_it_is_being_launched_ends_that_too() -> None:
    launcher = Launcher(echo, echo)

    async def scenario(engine: KeptEngine) -> None:
        engine.restart("stands still")
        await engine.aclose()
        with pytest.raises(EngineGone, match="closed"):
            await engine.generate(PROMPT)

    run(launcher, scenario)
