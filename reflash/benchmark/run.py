"""A benchmark from its beginning to its end; each step may be a task of its own, and none is done twice."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from typing import Any

from reflash.about import our_version
from reflash.benchmark.bench import Bench
from reflash.benchmark.facts import ModelSize, bandwidth, installed_kinds, model_size
from reflash.benchmark.gpus import look
from reflash.benchmark.loop import run_async
from reflash.benchmark.notes import PILOT, Notes
from reflash.benchmark.outcome import Outcome
from reflash.benchmark.pilot import Pilot, read_pilot, run_pilot
from reflash.benchmark.points import Point
from reflash.benchmark.result import Result, Whole, conclude
from reflash.benchmark.sampling import Chosen, choose
from reflash.benchmark.suggest import points_of
from reflash.config.run import RunConfig
from reflash.errors import SourceError
from reflash.plan.prepare import prepare
from reflash.render.shared import shared_renderer
from reflash.store.objects import open_store
from reflash.types import Planned

log = logging.getLogger(__name__)

SWEEP_SHARE = 0.5  # of the minutes, for comparing points
FOLDER = "benchmark"  # in the run's, where nothing else is said


class Benchmark:
    """What is measured, and where it is noted. No dataclass: Prefect walks into those, and this holds many rows."""

    def __init__(
        self,
        config: RunConfig,
        notes: Notes,
        chosen: Chosen,
        rows: tuple[Planned, ...],
        points: tuple[Point, ...],
        model: ModelSize,
        began: float,
    ) -> None:
        """`rows` are those of the sample, rendered, in its order; `began` by the monotonic clock."""
        self.config, self.notes, self.chosen, self.rows = config, notes, chosen, rows
        self.points, self.model, self.began = points, model, began

    @property
    def deadline(self) -> float:
        """When its minutes are over, by the monotonic clock."""
        return self.began + 60 * self.config.benchmark.minutes

    def measure(self, points: Sequence[Point], number: int, seconds: float) -> list[Outcome]:
        """Points of one launch, each for so many seconds; blocks."""
        return run_async(self._bench(self.rows).group(points, number, seconds))

    def pilot(self, point: Point) -> Pilot:
        """The pilot by this point, or what it saw before; blocks. Raises EngineError or ConfigError."""
        if known := self._known_pilot():
            return known
        first = {p.conversation.id for p in self.chosen.rows[: self.chosen.pilot]}
        rows = tuple(row for row in self.rows if row.conversation.id in first)
        strata = {picked.conversation.id: picked.stratum for picked in self.chosen.rows}
        limit = 60 * self.config.benchmark.minutes * (1 - SWEEP_SHARE)
        seen = run_async(run_pilot(self._bench(rows), point, strata, self.chosen.strata, limit))
        self.notes.keep_pilot(seen.to_json())
        return seen

    def conclude(self, outcomes: Sequence[Outcome], pilot: Pilot) -> Result:
        """What follows from all that was measured."""
        fit = len(self.rows) / len(self.chosen.rows)  # the others are never asked
        rows, turns = (round(fit * count) for count in (self.chosen.all_rows, self.chosen.turns))
        whole = Whole(rows, turns, bandwidth(look(), (), pilot.gpus), time.time())
        return conclude(self.config, outcomes, pilot, self.model, whole)

    def _known_pilot(self) -> Pilot | None:
        """What an earlier try saw; None where that did not end, or was written by another version."""
        known = self.notes.pilot()
        try:
            return None if known is None else read_pilot(known)
        except (KeyError, TypeError, ValueError) as error:
            log.warning("%s cannot be read (%r): the pilot is answered again", self.notes.store.where(PILOT), error)
            return None

    def _bench(self, rows: Sequence[Planned]) -> Bench:
        return Bench(self.config, self.notes, rows, self.deadline)


def begin(config: RunConfig, folder: str | None = None) -> Benchmark:
    """Read the source, choose the sample, render it, open the folder; blocks. Raises what a run's plan would."""
    began = time.monotonic()
    chosen = choose(config)
    renderer = shared_renderer(config.model, config.thinking)
    prepared = prepare([(picked.origin, picked.conversation) for picked in chosen.rows], config, renderer)
    rows = tuple(one for one in prepared if isinstance(one, Planned))
    if not rows:
        raise SourceError(f"{config.source.path}: none of {len(prepared)} rows of the sample can be asked")
    notes = Notes(open_store(folder or f"{config.run.rstrip('/')}/{FOLDER}", create=True))
    notes.start(_asked(config, chosen, renderer.digest))
    size = model_size(config.engine)
    points = points_of(config, len(look()), installed_kinds(), size)
    return Benchmark(config, notes, chosen, rows, tuple(points), size, began)


def _asked(config: RunConfig, chosen: Chosen, rendering: str) -> dict[str, Any]:
    """What decides the measurements: the same folder goes on with the same of it."""
    names = "\n".join(picked.conversation.id for picked in chosen.rows)
    engine = config.engine.model_dump(mode="json", exclude={"api_key", "urls", "patience", "start_s", "python"})
    return {
        "reflash": our_version(),
        "model": {"name": config.model.name, "context": config.model.context, "rendering": rendering},
        "engine": engine,
        "thinking": config.thinking.model_dump(mode="json"),
        "sampling": config.sampling.model_dump(mode="json"),
        "length": config.length.model_dump(mode="json"),
        "source": chosen.digest,
        "sample": hashlib.blake2b(names.encode(errors="surrogatepass"), digest_size=8).hexdigest(),
        "pilot_rows": chosen.pilot,
    }
