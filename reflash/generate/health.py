"""Which engines answer, and for how long none has: so that no row pays for an engine's outage."""

from __future__ import annotations

import time
from collections.abc import Sequence

from reflash.config.engine import Patience
from reflash.engines.base import Engine
from reflash.errors import EngineError
from reflash.types import Completion, Prompt

DOWN_S = 2.0  # an engine that could not be reached is passed over for so long, where there is another
SERVING = 2.0  # a request that has lasted so many connection times is being worked on


class Health:
    """The engines of a node as the requests see them. Lives in one event loop."""

    def __init__(self, engines: Sequence[Engine], canary: Prompt, patience: Patience) -> None:
        self._engines, self._canary, self._patience = engines, canary, patience
        self._down_until = [0.0] * len(engines)
        self._begun: dict[int, float] = {}  # requests under way, by when they began
        self._requests = 0
        self._trouble_since: float | None = None

    async def ask(self, prompt: Prompt, place: int) -> Completion:
        """Ask the engine at `place`, or the next that is not down. Raises EngineError."""
        at = self._pick(place)
        number = self._requests = self._requests + 1
        self._begun[number] = time.monotonic()
        try:
            completion = await self._engines[at].generate(prompt)
        except EngineError as error:
            if error.retryable:
                self._failed(at, error)
            raise
        finally:
            del self._begun[number]
        self._down_until[at] = 0.0
        self._trouble_since = None
        return completion

    async def sound(self, place: int) -> bool:
        """Whether an engine answers a small prompt now: then what it failed on before is to blame."""
        try:
            await self.ask(self._canary, place)
        except EngineError:
            return False
        return True

    @property
    def hopeless(self) -> bool:
        """Whether there has been no answer for too long, and nothing is being worked on."""
        now = time.monotonic()
        if self._trouble_since is None or now - self._trouble_since < self._patience.absent_s:
            return False
        return not self._begun or now - min(self._begun.values()) < SERVING * self._patience.connect_s

    def _pick(self, place: int) -> int:
        now, count = time.monotonic(), len(self._engines)
        order = [(place + step) % count for step in range(count)]
        return next((at for at in order if self._down_until[at] <= now), order[0])

    def _failed(self, at: int, error: EngineError) -> None:
        now = time.monotonic()
        self._trouble_since = self._trouble_since or now
        if not error.spends:
            self._down_until[at] = now + DOWN_S
