"""Tables for the UI: lists of flat dicts, plain text in each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reflash.publish.summary import ShardSummary
from reflash.report.report import Report
from reflash.report.words import ranked, share
from reflash.types import Shard
from reflash.validate.checks import REASONS, WEIGHTS

Table = list[dict[str, Any]]


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


def shards_table(summaries: Sequence[ShardSummary]) -> Table:
    """One row a shard, the one with the smallest share of good turns first."""
    return [
        {
            "shard": ", ".join(s.shards),
            "good share": share(s.verdicts.get("good", 0), s.turns),
            "turns": f"{s.turns:,}",
            **{verdict: f"{s.verdicts.get(verdict, 0):,}" for verdict in VERDICTS},
            "mostly": next(iter(ranked(s.reasons)), ""),
            "tokens": f"{s.output_tokens:,}",
            "per turn": f"{s.output_tokens / max(1, s.turns):,.0f}",
            "retried": f"{s.retried:,}",
        }
        for s in sorted(summaries, key=lambda s: (_good_share(s), s.shards))
    ]


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


def _good_share(summary: ShardSummary) -> float:
    return summary.verdicts.get("good", 0) / max(1, summary.turns)
