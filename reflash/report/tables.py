"""Tables for the UI: lists of flat dicts, plain text in each cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from reflash.generate.progress import ShardNow
from reflash.printable import printable
from reflash.publish.summary import ShardSummary
from reflash.report.report import Report
from reflash.report.words import counted, ranked, share
from reflash.types import Shard
from reflash.validate.checks import REASONS, WEIGHTS

Table = list[dict[str, Any]]

STATES = ("failed", "generating", "judging", "done", "waiting")
ENGINE = 20  # characters of an engine's name, from its end

VERDICTS = {
    "good": "in the dataset",
    "flagged": "set aside: doubtful",
    "rejected": "set aside: unfit",
}


def plan_table(counts: Mapping[str, int], shards: Sequence[Shard]) -> Table:
    """What became of the source's rows."""
    rows = [
        {"what": f"source rows: {name}" if name != "rows" else "source rows", "count": f"{n:,}"}
        for name, n in counts.items()
    ]
    planned = [
        {"what": "conversations planned", "count": f"{sum(s.rows for s in shards):,}"},
        {"what": "turns to generate", "count": f"{sum(s.turns for s in shards):,}"},
        {"what": "shards", "count": f"{len(shards):,}"},
    ]
    return rows + planned


def shards_table(now: Sequence[ShardNow], done: Mapping[str, ShardSummary], failed: Collection[str]) -> Table:
    """One row a shard: those that failed, those under way, then the done ones, the worst first, and who waits."""
    states = {shard.name: _state(shard, done, failed) for shard in now}
    order = sorted(now, key=lambda s: (STATES.index(states[s.name]), _good_share(done.get(s.name)), s.name))
    return [_shard_row(shard, states[shard.name], done.get(shard.name)) for shard in order]


def shards_line(now: Sequence[ShardNow], done: Mapping[str, ShardSummary], failed: Collection[str]) -> str:
    """How many shards are in which state."""
    counts = Counter(_state(shard, done, failed) for shard in now)
    told = [f"{counts[state]:,} {state}" for state in STATES if counts[state]]
    return f"{counted(len(now), 'shard')}: {', '.join(told)}. What failed or is under way first, then the worst"


def _state(shard: ShardNow, done: Mapping[str, ShardSummary], failed: Collection[str]) -> str:
    if shard.name in done:
        return "done"
    if shard.name in failed:
        return "failed"
    return "judging" if shard.state == "generated" else shard.state


def _shard_row(shard: ShardNow, state: str, summary: ShardSummary | None) -> dict[str, str]:
    tokens = summary.output_tokens if summary else shard.output_tokens
    return {
        "shard": shard.name,
        "state": state,
        "rows": f"{shard.rows:,}" if state == "done" else f"{shard.rows:,} of {shard.rows_all:,}",
        "good": share(summary.verdicts.get("good", 0), summary.turns) if summary else "",
        "mostly": next(iter(ranked(summary.reasons)), "") if summary else "",
        "tokens": f"{tokens:,}" if tokens else "",
        "tok/s": f"{shard.tokens_per_s:,.0f}" if shard.output_tokens else "",
        "tries": str(shard.tries or ""),
        "retried": f"{summary.retried:,}" if summary else "",
        "engine": _engines(shard.engines),
    }


def _engines(names: Sequence[str]) -> str:
    """The engine that answered most, and how many others did; of an address what differs between engines."""
    if not names:
        return ""
    first = printable(names[0].rpartition("://")[2].rstrip("/"), 400)
    first = f"…{first[-ENGINE:]}" if len(first) > ENGINE else first
    return f"{first} +{len(names) - 1}" if len(names) > 1 else first


def verdicts_table(report: Report) -> Table:
    """Turns by verdict, under each the reasons for it with their meanings, then the notes."""
    turns = report.total.turns
    return [
        {"kind": kind, "name": name, "turns": f"{n:,}", "share": share(n, turns), "meaning": meaning}
        for kind, name, n, meaning in verdict_lines(report.total)
    ]


def verdict_lines(total: ShardSummary) -> list[tuple[str, str, int, str]]:
    """Kind, name, turns and meaning: each verdict, under it the reasons that lead to it, then the notes.

    A reason counts every turn that has it: a flagged one may stand on turns that are rejected for another.
    """
    lines: list[tuple[str, str, int, str]] = []
    for verdict, meaning in VERDICTS.items():
        lines.append(("verdict", verdict, total.verdicts.get(verdict, 0), meaning))
        lines += [("reason", name, n, REASONS.get(name, "")) for name, n in _leading_to(verdict, total.reasons)]
    return lines + [("note", name, n, REASONS.get(name, "")) for name, n in ranked(total.notes).items()]


def counted_twice(total: ShardSummary) -> str:
    """Why the reasons do not add up to the verdicts above them; "" where they do."""
    for verdict in ("flagged", "rejected"):
        if sum(n for _, n in _leading_to(verdict, total.reasons)) != total.verdicts.get(verdict, 0):
            return (
                "A turn counts under each of its reasons; one that has a reason to reject it is rejected, whatever else"
                " it has."
            )
    return ""


def _leading_to(verdict: str, reasons: Mapping[str, int]) -> list[tuple[str, int]]:
    """Reasons of that weight, the most frequent first; one that is no longer known is of those that reject."""
    return [(name, n) for name, n in ranked(reasons).items() if WEIGHTS.get(name, "rejected") == verdict]


def _good_share(summary: ShardSummary | None) -> float:
    return summary.verdicts.get("good", 0) / max(1, summary.turns) if summary else 0.0
