"""Engines watched by their own figures: how much they hold, and whether tokens still come."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reflash.engines.held import WIDEN
from reflash.engines.load import Load
from reflash.generate.health import Station
from reflash.generate.width import Width

log = logging.getLogger(__name__)

LOOK_S = 2.0
NARROW = 0.8  # of the width: an engine that holds less is worth a word


@dataclass(slots=True)
class Watched:
    """What is known of one engine."""

    width: Width
    tokens: int = -1
    since: float = 0.0  # when they last grew, or nothing was under way
    told: bool = False  # that it holds less than asked for
    speaks: bool = False  # whether it has ever given its figures


class Watch:
    """Looks at every engine of a node, every two seconds, for as long as it runs."""

    def __init__(
        self,
        stations: Sequence[Station],
        stall_s: float,
        *,
        look_s: float = LOOK_S,
        told: Callable[[str, int], object] = lambda _name, _generated: None,
    ) -> None:
        """`told` gets an engine's name and the tokens that it says it has generated, at each look."""
        self._watched = [(s, Watched(Width(s.engine.width))) for s in stations]
        self._stall_s, self._look_s, self._tell = stall_s, look_s, told

    async def run(self) -> None:
        """Until cancelled. An engine that says nothing of itself is left alone."""
        while True:
            await asyncio.sleep(self._look_s)
            loads = await asyncio.gather(*(station.engine.load() for station, _ in self._watched))
            for (station, watched), load in zip(self._watched, loads, strict=True):
                if load is not None:
                    self._fit(station, watched, load)
                    if load.generated is not None:
                        self._tell(station.engine.name, load.generated)
                self._check_progress(station, watched, load)

    def _fit(self, station: Station, watched: Watched, load: Load) -> None:
        station.gate.resize(watched.width.see(load))
        if watched.width.now < NARROW * watched.width.most and not watched.told:
            watched.told = True
            asked, holds = watched.width.most, load.running
            log.warning("%s holds %s of the %d requests asked for: %s", station.engine.name, holds, asked, WIDEN)

    def _check_progress(self, station: Station, watched: Watched, load: Load | None) -> None:
        """No figures are no progress either, from an engine that gave some before: it may be frozen whole."""
        now = time.monotonic()
        watched.speaks = watched.speaks or (load is not None and load.generated is not None)
        tokens = watched.tokens if load is None or load.generated is None else load.generated
        if not watched.speaks or tokens != watched.tokens or not station.gate.taken:
            watched.tokens, watched.since = tokens, now
            return
        if now - watched.since < self._stall_s:
            return
        watched.since = now
        why = f"no token for {self._stall_s:.0f} s with {station.gate.taken} requests under way"
        if not station.engine.restart(why):
            log.warning("%s: %s. It was not launched here, so it is for you to restart", station.engine.name, why)
