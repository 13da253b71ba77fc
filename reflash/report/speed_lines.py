"""What a benchmark tells as it goes, one line an event."""

from __future__ import annotations

from reflash.benchmark.outcome import Outcome
from reflash.benchmark.pilot import Pilot
from reflash.benchmark.result import Result
from reflash.benchmark.run import Benchmark
from reflash.report.words import counted, duration


def sample_line(benchmark: Benchmark) -> str:
    """What was chosen, and from what."""
    chosen = benchmark.chosen
    return (
        f"Sample: {counted(len(benchmark.rows), 'row')} of {chosen.all_rows:,} ({len(chosen.strata):,} strata), "
        f"{chosen.pilot:,} of them for the pilot; {counted(len(benchmark.points), 'point')} to compare, at most "
        f"{benchmark.config.benchmark.minutes:g} min"
    )


def outcome_line(outcome: Outcome) -> str:
    """One point in one round."""
    if not outcome.ok:
        return f"{outcome.point.name}: {outcome.status}: {outcome.why}"
    held = "" if outcome.running is None else f", {outcome.running:,.0f} of {outcome.width:,} requests held"
    rate = f"{outcome.tokens_per_s:,.0f} tok/s ±{outcome.spread:.1%} over {outcome.seconds:.0f} s"
    return f"{outcome.point.name}: {rate}{held}"


def pilot_line(pilot: Pilot) -> str:
    """How the pilot went."""
    rows = pilot.sample.rows
    going = sum(row.under_way for row in rows)
    short = f"; {counted(going, 'row')} were still being answered when its time was over" if going else ""
    rate = f"{pilot.rate.tokens_per_s:,.0f} tok/s with all places taken"
    return f"Pilot: {counted(len(rows), 'row')} in {duration(pilot.seconds)}, {rate}{short}"


def result_line(result: Result) -> str:
    """The forecast in one line."""
    seconds = result.outlook.seconds
    return (
        f"{counted(result.rows, 'row')} take {duration(seconds.mid)} ({duration(seconds.low)} to "
        f"{duration(seconds.high)}, nine times in ten) at {result.outlook.tokens_per_s.mid:,.0f} tok/s, by "
        f"{result.pilot.point.name}"
    )
