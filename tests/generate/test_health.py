"""What a person hears while no engine answers."""

from __future__ import annotations

import asyncio

import pytest

from reflash.config.engine import Patience
from reflash.engines.scripted import Said, ScriptedEngine, echo
from reflash.errors import EngineAbsent
from reflash.generate.health import Health
from reflash.types import Prompt, Sampling

PROMPT = Prompt("a", 0, (3, 20, 0, 4), 4, Sampling())


def test_an_outage_is_told_once_with_its_cause_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    asked = 0

    def script(prompt: Prompt) -> Said:
        nonlocal asked
        asked += 1
        return EngineAbsent("http://engine: connection refused") if asked <= 5 else echo(prompt)

    async def scenario() -> None:
        health = Health([ScriptedEngine(script, width=1)], PROMPT, Patience(absent_s=60), quiet_s=0.0)
        for _ in range(5):
            with pytest.raises(EngineAbsent):
                await health.ask(PROMPT, 0)
            await asyncio.sleep(0.01)
        for _ in range(3):
            await health.ask(PROMPT, 0)

    asyncio.run(scenario())
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2, told
    assert "waiting (60 s at most): http://engine: connection refused" in told[0]
    assert "answer again" in told[1]
