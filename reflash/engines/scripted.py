"""An engine that answers by a script: no model, no server."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeAlias

from reflash.config.engine import ScriptedConfig
from reflash.engines.load import Load
from reflash.errors import ConfigError, EngineAbsent, EngineError, EngineGone, EngineLost, EngineRefused
from reflash.types import Completion, Prompt

Said: TypeAlias = Completion | EngineError
Script: TypeAlias = Callable[[Prompt], Said | Awaitable[Said]]

FIRST_ID, IDS = 1000, 8000  # echo answers with ids from 1000 to 8999: ordinary tokens in every large vocabulary


class ScriptedEngine:
    """Answers by `script`, each after `delay` seconds, and keeps what it was asked."""

    def __init__(
        self, script: Script, width: int = 64, delay: float = 0.0, *, name: str = "scripted", exact: bool = True
    ) -> None:
        self.name = name
        self.version = "scripted"
        self.exact = exact
        self.width = width
        self.context: int | None = None
        self.asked: list[Prompt] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.closed = False
        self._script = script
        self._delay = delay

    async def generate(self, prompt: Prompt) -> Completion:
        """Answer as the script says; raises the EngineError that it gives."""
        if self.closed:
            raise EngineAbsent(f"{self.name}: closed")
        if self.exact and not prompt.tokens:
            raise EngineRefused(f"{self.name}: {prompt.conversation}, turn {prompt.turn}: the prompt has no tokens")
        self.asked.append(prompt)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self._delay)
            said = self._script(prompt)
            if isawaitable(said):
                said = await said
        finally:
            self.in_flight -= 1
        if isinstance(said, EngineError):
            raise said
        return said

    async def load(self) -> Load | None:
        """It says nothing of itself."""
        return None

    def restart(self, why: str) -> bool:  # noqa: ARG002
        """Not by itself."""
        return False

    async def aclose(self) -> None:
        """Answer no more."""
        self.closed = True


def open_scripted(config: ScriptedConfig) -> ScriptedEngine:
    """The engine of a config; raises ConfigError where no script has that name."""
    if config.script not in SCRIPTS:
        raise ConfigError(f"engine.script: there is no script {config.script!r}; there are {', '.join(SCRIPTS)}")
    return ScriptedEngine(SCRIPTS[config.script](), config.width)


def echo(prompt: Prompt) -> Completion:
    """8 to 31 ids that follow from the prompt's ids and its seed, then its first stop id; cut to the budget."""
    digest = hashlib.blake2b(repr((prompt.tokens, prompt.sampling.seed)).encode()).digest()
    wanted = 8 + digest[0] % 24
    ids = [FIRST_ID + int.from_bytes(digest[2 * i : 2 * i + 2], "big") % IDS for i in range(wanted)]
    ids += prompt.stop_ids[:1]
    return completion(prompt, ids)


def refuse(prompt: Prompt) -> EngineError:
    """Refuse every prompt."""
    return EngineRefused(f"scripted: {prompt.conversation}, turn {prompt.turn}: refused by the script")


async def slow(prompt: Prompt) -> Completion:
    """Echo after half a second: a run that can be watched, stopped and killed."""
    await asyncio.sleep(0.5)
    return echo(prompt)


def flaky() -> Script:
    """Lose every prompt once, then echo it."""
    lost: set[tuple[str, int]] = set()

    def script(prompt: Prompt) -> Said:
        if (key := (prompt.conversation, prompt.turn)) not in lost:
            lost.add(key)
            return EngineLost(f"scripted: {prompt.conversation}, turn {prompt.turn}: lost by the script")
        return echo(prompt)

    return script


def paced(most: int = 10**6) -> Script:
    """Echo in the time of an engine: 1 ms a token, and 0.05 ms more for each request beside it; no more than `most`."""
    under_way = 0

    async def script(prompt: Prompt) -> Said:
        nonlocal under_way
        if under_way >= most:
            return EngineGone(f"scripted: out of memory with {most} requests, by the script")
        under_way += 1
        try:
            answer = echo(prompt)
            for _ in answer.tokens:
                await asyncio.sleep(0.001 + 0.00005 * under_way)
        finally:
            under_way -= 1
        return answer

    return script


def completion(prompt: Prompt, ids: list[int], *, engine: str = "scripted") -> Completion:
    """A completion of these ids: cut to the budget by `length`, else ended by `stop`. For writing scripts."""
    kept = tuple(ids[: prompt.max_new_tokens])
    return Completion(
        tokens=kept,
        finish_reason="stop" if len(kept) == len(ids) else "length",
        engine=engine,
        prompt_tokens=len(prompt.tokens),
        completion_tokens=len(kept),
        seconds=0.0,
    )


SCRIPTS: dict[str, Callable[[], Script]] = {
    "echo": lambda: echo,
    "slow": lambda: slow,
    "refuse": lambda: refuse,
    "flaky": flaky,
    "paced": paced,
    "cramped": lambda: paced(most=4),
}
