"""A run while it goes, as one page of markdown: what the engines do, and how the answers are so far. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reflash.generate.progress import EngineNow, Progress
from reflash.publish.summary import ShardSummary
from reflash.report.charts import binned_lengths_chart, engines_chart
from reflash.report.text import ended_text, verdicts_text
from reflash.report.words import code, describe, foreign, table

HERE = "**Under way.** This page is brought up to date every minute or so; the report takes its place at the end."


@dataclass(frozen=True, slots=True)
class View:
    """What a page is made of, fit to be sent to another process."""

    run: str
    line: str
    engines: tuple[EngineNow, ...]
    bin_s: float
    course: Mapping[str, list[float]]  # tokens a second by engine
    lengths: Mapping[float, int]  # answers by the largest length of their bin
    finish_reasons: Mapping[str, int]
    judged: ShardSummary


def view_of(run: str, progress: Progress, judged: ShardSummary) -> View:
    """The run as it stands."""
    snapshot = progress.snapshot()
    course = progress.rates.course()
    ended = dict(progress.finish_reasons.copy())
    line = describe(snapshot, judged)
    return View(run, line, snapshot.engines, progress.rates.bin_s, course, progress.lengths, ended, judged)


def live_markdown(view: View) -> str:
    """The page, pictures included as data URIs; under 1 MB."""
    parts = [
        f"**{view.line}**",
        HERE,
        "## Engines",
        _engines(view),
        f"![Output tokens a second over time]({engines_chart(view.bin_s, view.course)})",
        "## Answers of this attempt",
        f"![Answers by length in tokens]({binned_lengths_chart(view.lengths)})",
        ended_text(view.finish_reasons),
        "## Verdicts so far",
        verdicts_text(view.judged) if view.judged.turns else "No shard has its verdicts yet.",
        "## Where it lies",
        _where(view.run),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _engines(view: View) -> str:
    rows: list[tuple[object, ...]] = [
        (
            foreign(engine.name, 60),
            f"{engine.in_flight:,}",
            f"{engine.tokens_per_s:,.0f}",
            f"{engine.output_tokens:,}",
            f"{engine.answers:,}",
        )
        for engine in view.engines
    ]
    return table(("engine", "requests in flight", "tok/s, last minute", "output tokens", "answers"), rows)


def _where(run: str) -> str:
    rows: list[tuple[object, ...]] = [
        ("good rows, shard by shard", code(f"{run}/dataset")),
        ("set aside, with reasons", code(f"{run}/rejects")),
        ("what the engines wrote", code(f"{run}/logs")),
    ]
    return table(("what", "where"), rows)
