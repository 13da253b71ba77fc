"""Points launched and measured, and the pilot: everything that touches an engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from reflash.benchmark import gpus
from reflash.benchmark.notes import ENGINES, Notes
from reflash.benchmark.outcome import Outcome, Status
from reflash.benchmark.points import Point, apply
from reflash.benchmark.press import Pressed, Work, press_for
from reflash.benchmark.steady import all_taken, steady
from reflash.config.engine import SglangConfig, VllmConfig
from reflash.config.run import RunConfig
from reflash.engines.base import Engine
from reflash.engines.layout.gpus import NvmlCards
from reflash.engines.open import open_engines
from reflash.engines.serve.plan import make_plan
from reflash.errors import ConfigError, EngineError
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.plan.manifest import make_manifest
from reflash.printable import printable
from reflash.render.shared import shared_renderer
from reflash.types import Planned

WARM_SHARE = 1 / 3  # of a measurement is left out at its beginning
LEAST_START_S = 60.0
WHY = 1500  # characters of a reason that are kept


@dataclass(slots=True)
class Launched:
    """Engines that answer, and what they run on."""

    config: RunConfig
    engines: Sequence[Engine]
    uuids: tuple[str, ...]  # of the GPUs, none on a CPU
    took_s: float
    asked: int = 0  # rows so far: the next measurement takes others, which no cache of prompts knows


@dataclass(frozen=True, slots=True)
class Bench:
    """What every measurement needs."""

    config: RunConfig
    notes: Notes
    rows: Sequence[Planned]
    deadline: float  # by the monotonic clock: no start of a server is waited for much longer

    async def group(self, points: Sequence[Point], number: int, seconds: float) -> list[Outcome]:
        """Points of one launch, each measured for so long; what was measured before is only read.

        One that cannot start, or breaks under work, is a finding. Where the widest cannot start, the others are tried.
        """
        known = [self.notes.outcome(point, number) for point in points]
        found = {o.point: o for o in known if o is not None}
        todo = [point for point in points if point not in found]
        while todo:
            for outcome in await self._some(todo, number, seconds):
                found[outcome.point] = outcome
                self.notes.keep(outcome)
            todo = [point for point in points if point not in found]
        return [found[point] for point in points]

    async def _some(self, points: Sequence[Point], number: int, seconds: float) -> list[Outcome]:
        """One launch: outcomes of at least one of the points, fewer than all where an engine breaks."""
        configs: dict[Point, RunConfig] = {}
        for point in points:
            try:
                configs[point] = apply(self.config, point)
            except ConfigError as error:
                return [Outcome(point, number, "did not start", printable(str(error), WHY))]
        widest = max(points, key=lambda p: configs[p].engine.width)
        outcomes: list[Outcome] = []
        try:
            async with self.launched(configs[widest]) as launched:
                for point in points:
                    outcome = await self._measured(point, configs[point], launched, number, seconds)
                    outcomes.append(outcome)
                    self.notes.keep(outcome)  # at once: the next may not end
                    if outcome.status == "broke":
                        break
        except (ConfigError, EngineError) as error:
            if not outcomes:
                return [Outcome(widest, number, "did not start", printable(str(error), WHY))]
        except TimeoutError:
            return [Outcome(widest, number, "not reached", "its start was not over when the benchmark's time was")]
        return outcomes

    @asynccontextmanager
    async def launched(self, config: RunConfig) -> AsyncIterator[Launched]:
        """Engines open for as long as the block lasts. Raises ConfigError, EngineError, TimeoutError."""
        uuids = await asyncio.to_thread(_uuids, config)
        began = time.monotonic()
        async with asyncio.timeout(max(LEAST_START_S, self.deadline - began)):
            engines = await open_engines(
                config.engine, context=config.model.context, log_folder=self._logs(), model=config.model.name
            )
        try:
            yield Launched(config, engines, uuids, time.monotonic() - began)
        finally:
            await asyncio.gather(*(engine.aclose() for engine in engines))

    def ledger(self, config: RunConfig, folder: str) -> Ledger:
        """A run's folder inside the benchmark's."""
        ledger = open_ledger(f"{self.notes.store.url.rstrip('/')}/{folder}", create=True)
        renderer = shared_renderer(config.model, config.thinking)
        if not ledger.is_started():
            ledger.start(make_manifest(config, "benchmark", renderer.digest))
        return ledger

    def work(self, config: RunConfig, ledger: Ledger) -> Work:
        """What the driver needs; an engine that dies is not waited for."""
        patience = config.engine.patience.model_copy(update={"absent_s": 10.0})
        engine = config.engine.model_copy(update={"patience": patience})
        bound = config.model_copy(update={"engine": engine})
        return Work(bound, ledger, shared_renderer(config.model, config.thinking))

    async def _measured(
        self, point: Point, config: RunConfig, launched: Launched, number: int, seconds: float
    ) -> Outcome:
        ledger = self.ledger(config, f"{ENGINES}/speed-{config.engine.kind}")
        before, began = gpus.look(), time.monotonic()
        width, at = config.engine.width, launched.asked % len(self.rows)
        rows = [*self.rows[at:], *self.rows[:at]]
        pressed = await press_for(seconds, launched.engines, width, self.work(config, ledger), rows)
        after = gpus.look()
        launched.asked += len({call.conversation for call in pressed.calls})
        ledger.sweep()
        blank = _blank(point, number, width, launched, pressed)
        if pressed.broke:
            return replace(blank, status="broke", why=printable(pressed.broke, WHY))
        joules = gpus.used_between(before, after, launched.uuids)
        watts = None if joules is None else joules / max(1e-9, pressed.ended - began)
        memory = max((gpu.used for gpu in after if gpu.uuid in launched.uuids), default=None)
        return replace(_rated(blank, pressed, began), watts=watts, memory=memory)

    def _logs(self) -> Path | None:
        root = self.notes.store.root
        return None if root is None else root / ENGINES


def _rated(blank: Outcome, pressed: Pressed, began: float) -> Outcome:
    """The outcome with its rate: without the first third, and without the time until all places were taken."""
    places = blank.width
    full = all_taken(pressed.calls, places) or began
    begin = max(full, began + WARM_SHARE * (pressed.ended - began))
    found = steady(pressed.calls, pressed.looks, begin, pressed.ended)
    if found is None:
        why = f"no answer ended within {pressed.ended - began:.0f} s, and the engine does not say what it makes"
        return replace(blank, status="not reached", why=why)
    return replace(
        blank,
        tokens_per_s=found.tokens_per_s,
        spread=found.spread,
        windows=found.windows,
        seconds=found.seconds,
        running=found.running,
        waiting=found.waiting,
        cache=found.cache,
        preempted=found.preempted,
    )


def _blank(point: Point, number: int, width: int, launched: Launched, pressed: Pressed) -> Outcome:
    status: Status = "measured"
    return Outcome(
        point,
        number,
        status,
        launch_s=launched.took_s,
        engines=len(launched.engines),
        gpus=len(launched.uuids),
        width=width * len(launched.engines),
        failed=pressed.failed,
        version=printable(launched.engines[0].version) if launched.engines else "",
    )


def _uuids(config: RunConfig) -> tuple[str, ...]:
    """The GPUs that will serve. Asked before the launch: afterwards they are in use. Raises ConfigError."""
    if not isinstance(config.engine, VllmConfig | SglangConfig):
        return ()
    plan = make_plan(config.engine, config.model.context, NvmlCards())
    return tuple(gpu.uuid for server in plan.servers for gpu in server.gpus)
