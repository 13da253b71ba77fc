"""Measure instead of estimating: compare points, answer a sample of the real rows, say what the whole will take."""

from __future__ import annotations

import time
from collections.abc import Sequence

from prefect import flow, runtime

from flows.logs import show_in_run
from reflash.benchmark.advice import choose
from reflash.benchmark.halving import Sweep
from reflash.benchmark.outcome import Outcome
from reflash.benchmark.points import Point
from reflash.benchmark.result import Result
from reflash.benchmark.run import SWEEP_SHARE, Benchmark
from reflash.config.run import RunConfig
from tasks.benchmark import conclude, measure, pilot, sample


def run_name() -> str:
    """Names a flow run by what it measures."""
    config = RunConfig.model_validate(runtime.flow_run.parameters["config"])
    return f"benchmark · {config.model.name}"


@flow(name="benchmark", flow_run_name=run_name, persist_result=False)
def benchmark(config: RunConfig, folder: str | None = None) -> Result:
    """Measure how fast this config answers its rows here, what would be faster, and how long the whole run takes.

    Raises EngineError or ConfigError where no point can be measured.

    Args:
        config: The run that is to be measured.
        folder: Keeps what was measured, by default `benchmark` in the run's folder; the same one goes on where it
            stopped.
    """
    show_in_run()
    begun = sample(config, folder)
    outcomes = _compared(begun)
    choice = choose(outcomes)
    seen = pilot(begun, choice.outcome.point if choice else Point())
    return conclude(begun, outcomes, seen)


def _compared(begun: Benchmark) -> list[Outcome]:
    """Points by successive halving; where there is one alone, the pilot says all there is to say."""
    if len(begun.points) < 2:
        return []

    def probe(points: Sequence[Point], number: int, seconds: float) -> list[Outcome]:
        return measure(begun, points, number, seconds)

    budget_s = 60 * SWEEP_SHARE * begun.config.benchmark.minutes
    return Sweep(begun.points, budget_s, probe, time.monotonic).run()
