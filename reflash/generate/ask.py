"""One prompt asked until it is answered, refused, or found to be what breaks the engines."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import Literal

from reflash.config.engine import Patience
from reflash.errors import EngineBusy, EngineError, EngineStarting
from reflash.generate.health import Health
from reflash.types import Completion, Prompt


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of a prompt: a completion, or the last error and whose fault it is.

    `refused` the engine's word; `given-up` the engine failed on it again and again and answered others;
    `engine` no engine answers anything.
    """

    completion: Completion | None
    attempts: int
    error: EngineError | None = None
    fault: Literal["refused", "given-up", "engine"] | None = None


async def ask(prompt: Prompt, health: Health, home: int, patience: Patience, rng: random.Random) -> Asked:
    """Ask the home engine, then the others; what may pass is tried again with jittered backoff.

    Only failures that the prompt itself may cause use up attempts. When they are used up, a small prompt tells whether
    the engine is sound; where it is not, the prompt waits on with the others.
    """
    attempts = spent = failures = 0
    while True:
        attempts += 1
        try:
            completion = await _ask(prompt, health, home, spent)
        except EngineError as error:
            if not error.retryable:
                return Asked(None, attempts, error, "refused")
            spent += error.spends
            failures += 1
            used_up = error.spends and spent % patience.attempts == 0
            if used_up and await _sound(health, home + spent, patience, rng):
                return Asked(None, attempts, error, "given-up")
            if health.hopeless:
                return Asked(None, attempts, error, "engine")
            await asyncio.sleep(_wait(error, failures, patience, rng))
        else:
            return Asked(completion, attempts)


async def _sound(health: Health, place: int, patience: Patience, rng: random.Random) -> bool:
    """Whether an engine answers a small prompt: then what it failed on is to blame. One that is away is waited for."""
    failures = 0
    while True:
        try:
            await health.ask(health.canary, place)
        except EngineError as error:
            failures += 1
            if error.spends or not error.retryable or health.hopeless:
                return False
            await asyncio.sleep(_wait(error, failures, patience, rng))
        else:
            return True


async def _ask(prompt: Prompt, health: Health, home: int, spent: int) -> Completion:
    if not spent:
        return await health.ask(prompt, home)
    await health.quarantine.enter(spent)
    try:
        return await health.ask(prompt, home + spent)
    finally:
        await health.quarantine.leave(spent)


def _wait(error: EngineError, failures: int, patience: Patience, rng: random.Random) -> float:
    """Seconds before the next attempt: doubling, jittered, never less than the engine asked for.

    An engine that is being launched again is looked for often, so that it is full soon after.
    """
    if isinstance(error, EngineStarting):
        return patience.backoff_s * rng.uniform(1.0, 3.0)
    doubled = patience.backoff_s * 2.0 ** min(failures - 1, 20)
    backoff = min(patience.backoff_max_s, doubled) * rng.uniform(0.5, 1.0)
    wish = error.retry_after if isinstance(error, EngineBusy) else 0.0
    return max(backoff, min(wish, patience.backoff_max_s))
