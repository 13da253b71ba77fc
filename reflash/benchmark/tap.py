"""An engine with a width of its own, every request at it noted: when it was sent, when it ended, its tokens."""

from __future__ import annotations

import time
from dataclasses import dataclass

from reflash.engines.base import Engine
from reflash.engines.load import Load
from reflash.errors import EngineError, EngineGone, EngineStarting
from reflash.types import Completion, Prompt


@dataclass(slots=True)
class Call:
    """One request."""

    conversation: str
    turn: int
    sent: float  # by the monotonic clock
    ended: float | None = None
    tokens: int = 0


class Tap:
    """Passes everything on to an engine; requests of several taps at one engine never mix."""

    def __init__(self, engine: Engine, width: int) -> None:
        self.name = engine.name
        self.version = engine.version
        self.exact = engine.exact
        self.width = width
        self.calls: list[Call] = []
        self.failed = 0  # requests that broke it, or were answered with garbage
        self.broke = ""  # its word when it died
        self._last = ""  # error: of an engine that is being launched again it says why
        self._engine = engine

    async def generate(self, prompt: Prompt) -> Completion:
        """Answer one prompt, and note it; raises what the engine raises."""
        call = Call(prompt.conversation, prompt.turn, time.monotonic())
        self.calls.append(call)
        try:
            done = await self._engine.generate(prompt)
        except EngineError as error:
            self.failed += error.spends
            if isinstance(error, EngineGone | EngineStarting):
                self.broke = self.broke or self._last or str(error)
            self._last = str(error)
            raise
        call.ended, call.tokens = time.monotonic(), done.completion_tokens
        return done

    async def load(self) -> Load | None:
        """What the engine says of itself."""
        return await self._engine.load()

    def restart(self, why: str) -> bool:
        """A measurement ends with its engine: what was frozen is found broken, and is not launched again."""
        self.broke = self.broke or why
        return True

    async def aclose(self) -> None:
        """Leave the engine as it is: another tap may follow."""
