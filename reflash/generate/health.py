"""Which engines answer, and for how long none has: so that no row pays for an engine's outage."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from reflash.config.engine import Patience
from reflash.engines.base import Engine
from reflash.errors import EngineError, EngineGone, EngineLost, EngineStarting
from reflash.generate.gate import Gate
from reflash.generate.lateness import Lateness
from reflash.generate.progress import Progress
from reflash.generate.quarantine import Quarantine
from reflash.types import Completion, Prompt

log = logging.getLogger(__name__)

DOWN_S = 2.0  # an engine that could not be reached is passed over for so long, where there is another
QUIET_S = 5.0  # trouble that lasts longer is told
TELL_S = 60.0  # and told again so often
SERVING = 2.0  # a request that has lasted so many connection times is being worked on


@dataclass(slots=True, eq=False)
class Station:
    """An engine, the places at it, and whether it can be reached."""

    engine: Engine
    gate: Gate
    down_until: float = 0.0
    gone: bool = False  # for good


class Health:
    """The engines of a node as the requests see them. Lives in one event loop."""

    def __init__(
        self,
        engines: Sequence[Engine],
        canary: Prompt,
        patience: Patience,
        progress: Progress | None = None,
        *,
        quiet_s: float = QUIET_S,
    ) -> None:
        self.stations = [Station(engine, Gate(engine.width)) for engine in engines]
        self.canary, self._patience, self._quiet_s = canary, patience, quiet_s
        width = sum(engine.width for engine in engines)
        self.lateness = Lateness(width)
        self.quarantine = Quarantine(width, patience.attempts)
        self._progress = progress or Progress()
        self._begun: dict[int, float] = {}  # requests under way, by when they began
        self._requests = 0
        self._trouble_since: float | None = None
        self._told_at = 0.0

    async def ask(self, prompt: Prompt, place: int) -> Completion:
        """Ask the engine at `place`, or another where that is down or full; once more when the answer is late.

        Raises EngineError.
        """
        return await self.lateness.first_of(lambda again: self._ask(prompt, place + again))

    @property
    def hopeless(self) -> bool:
        """Whether there has been no answer for too long, and nothing is being worked on."""
        now = time.monotonic()
        if self._trouble_since is None or now - self._trouble_since < self._patience.absent_s:
            return False
        return not self._begun or now - min(self._begun.values()) < SERVING * self._patience.connect_s

    async def _ask(self, prompt: Prompt, place: int) -> Completion:
        station = self._pick(place)
        await station.gate.enter()
        number = self._requests = self._requests + 1
        self._begun[number] = time.monotonic()
        try:
            with self._progress.request(station.engine.name) as answer:
                completion = await station.engine.generate(prompt)
                if prompt is not self.canary:
                    answer.append(completion)
        except EngineGone as error:
            station.gone = True
            if all(s.gone for s in self.stations):
                raise
            raise EngineLost(str(error)) from error
        except EngineError as error:
            if error.retryable:
                self._failed(station, error)
            raise
        finally:
            del self._begun[number]
            station.gate.leave()
        self.lateness.answered(completion.seconds)
        self._answered(station)
        return completion

    def _pick(self, place: int) -> Station:
        """The station at home if it has room, else the one with most room of those that can be reached."""
        count = len(self.stations)
        home = self.stations[place % count]
        if count == 1 or (home.gate.room > 0 and not home.down_until and not home.gone):
            return home
        now = time.monotonic()
        order = [self.stations[(place + step) % count] for step in range(count)]
        there = [s for s in order if not s.gone]
        up = [s for s in there if s.down_until <= now] or there or order
        if up[0].gate.room > 0 or len(up) == 1:
            return up[0]
        roomy = max(up, key=lambda s: s.gate.room)
        return roomy if roomy.gate.room > 0 else up[0]

    def _answered(self, station: Station) -> None:
        station.down_until = 0.0
        if self._told_at and self._trouble_since:
            log.warning("Engines answer again, after %.0f s", time.monotonic() - self._trouble_since)
        self._trouble_since, self._told_at = None, 0.0

    def _failed(self, station: Station, error: EngineError) -> None:
        now = time.monotonic()
        if not error.spends:
            station.down_until = now + DOWN_S
        if isinstance(error, EngineStarting):  # it comes back or is given up: no reason to end the run meanwhile
            self._trouble_since = None
            return
        self._trouble_since = self._trouble_since or now
        if now - self._trouble_since > self._quiet_s and now - self._told_at > TELL_S:
            self._told_at = now
            lasted, limit = now - self._trouble_since, self._patience.absent_s
            log.warning("No answer for %.0f s, waiting (%.0f s at most): %s", lasted, limit, error)
