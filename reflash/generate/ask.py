"""One prompt asked until it is answered, refused, or given up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass

from reflash.config.engine import Patience
from reflash.engines.base import Engine
from reflash.errors import EngineBusy, EngineError
from reflash.types import Completion, Prompt


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of a prompt: a completion, or the last error."""

    completion: Completion | None
    attempts: int
    error: EngineError | None = None


async def ask(prompt: Prompt, engines: Sequence[Engine], home: int, patience: Patience, rng: random.Random) -> Asked:
    """Ask the home engine first, the others in turn after it; what may pass is tried again with jittered backoff."""
    error: EngineError | None = None
    for attempt in range(patience.attempts):
        if error is not None:
            await asyncio.sleep(_wait(error, attempt, patience, rng))
        try:
            completion = await engines[(home + attempt) % len(engines)].generate(prompt)
        except EngineError as fault:
            error = fault
            if not fault.retryable:
                return Asked(None, attempt + 1, fault)
        else:
            return Asked(completion, attempt + 1)
    return Asked(None, patience.attempts, error)


def _wait(error: EngineError, attempt: int, patience: Patience, rng: random.Random) -> float:
    """Seconds before the next attempt: doubling, jittered, never less than the engine asked for."""
    backoff = min(patience.backoff_max_s, patience.backoff_s * 2.0 ** (attempt - 1)) * rng.uniform(0.5, 1.0)
    wish = error.retry_after if isinstance(error, EngineBusy) else 0.0
    return max(backoff, min(wish, patience.backoff_max_s))
