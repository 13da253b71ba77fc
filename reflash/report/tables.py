"""Tables for the UI: lists of flat dicts, plain text in each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reflash.publish.summary import ShardSummary
from reflash.report.report import Report
from reflash.types import Shard
from reflash.validate.checks import REASONS

Table = list[dict[str, Any]]


def plan_table(counts: Mapping[str, int], shards: Sequence[Shard]) -> Table:
    """What became of the source's rows."""
    rows = [
        {"what": f"source rows {name}" if name != "rows" else "source rows", "count": n} for name, n in counts.items()
    ]
    planned = [
        {"what": "conversations planned", "count": sum(s.rows for s in shards)},
        {"what": "turns to generate", "count": sum(s.turns for s in shards)},
        {"what": "shards", "count": len(shards)},
    ]
    return rows + planned


def shards_table(summaries: Sequence[ShardSummary]) -> Table:
    """One row a shard."""
    return [
        {
            "shard": ", ".join(s.shards),
            "turns": s.turns,
            "good": s.verdicts.get("good", 0),
            "flagged": s.verdicts.get("flagged", 0),
            "rejected": s.verdicts.get("rejected", 0),
            "output tokens": s.output_tokens,
            "retried": s.retried,
        }
        for s in summaries
    ]


def verdicts_table(report: Report) -> Table:
    """Turns by verdict, then by reason, with what each reason means."""
    turns = max(1, report.total.turns)
    verdicts: Table = [
        {"what": name, "turns": report.total.verdicts.get(name, 0), "meaning": meaning}
        for name, meaning in (
            ("good", "in the dataset"),
            ("flagged", "set aside: doubtful"),
            ("rejected", "set aside: unfit"),
        )
    ]
    counted = {**report.total.reasons, **report.total.notes}
    reasons: Table = [{"what": name, "turns": n, "meaning": REASONS.get(name, "")} for name, n in counted.items()]
    return [row | {"share": f"{int(row['turns']) / turns:.1%}"} for row in verdicts + reasons]
