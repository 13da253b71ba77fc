"""A benchmark's steps: the sample, points of one launch, the pilot, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE

from reflash.benchmark.outcome import Outcome
from reflash.benchmark.pilot import Pilot
from reflash.benchmark.points import Point
from reflash.benchmark.result import Result
from reflash.benchmark.run import Benchmark, begin
from reflash.config.run import RunConfig
from reflash.report.speed import benchmark_markdown, points_table
from reflash.report.speed_lines import outcome_line, pilot_line, result_line, sample_line

listeners: list[Callable[[str], None]] = []  # the command line, in the same process


def _tell(line: str) -> None:
    get_run_logger().info(line)
    for listener in listeners:
        listener(line)


@task(name="sample", task_run_name="sample", cache_policy=NO_CACHE, persist_result=False)
def sample(config: RunConfig, folder: str | None) -> Benchmark:
    """Read the source once and choose rows of it, each stratum in proportion."""
    benchmark = begin(config, folder)
    _tell(sample_line(benchmark))
    return benchmark


@task(
    name="measure",
    task_run_name="measure {points[0].name}, round {number}",
    cache_policy=NO_CACHE,
    persist_result=False,
)
def measure(benchmark: Benchmark, points: Sequence[Point], number: int, seconds: float) -> list[Outcome]:
    """Launch what these points share and measure each; one that cannot start is a finding."""
    found = benchmark.measure(points, number, seconds)
    for outcome in found:
        _tell(outcome_line(outcome))
    return found


@task(name="pilot", task_run_name="pilot by {point.name}", cache_policy=NO_CACHE, persist_result=False)
def pilot(benchmark: Benchmark, point: Point) -> Pilot:
    """Answer the sample to its end."""
    seen = benchmark.pilot(point)
    _tell(pilot_line(seen))
    return seen


@task(name="conclude", task_run_name="conclude", cache_policy=NO_CACHE, persist_result=False)
def conclude(benchmark: Benchmark, outcomes: Sequence[Outcome], seen: Pilot) -> Result:
    """The forecast and the advice, into the folder and into the UI."""
    result = benchmark.conclude(outcomes, seen)
    text, line = benchmark_markdown(result), result_line(result)
    benchmark.notes.write(result.to_json(), text)
    _tell(line)
    create_table_artifact(key="points", table=points_table(outcomes), description="Points, the last round first")
    create_markdown_artifact(key="benchmark", markdown=text, description=line)
    return result
