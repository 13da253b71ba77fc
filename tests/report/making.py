"""Reports of runs that never were."""

from __future__ import annotations

from typing import Any

from reflash.publish.summary import ShardSummary
from reflash.report.attempt import Attempt
from reflash.report.report import Report


def summary(shard: str = "00000", **changes: Any) -> ShardSummary:
    """A shard of ten turns, all good."""
    facts: dict[str, Any] = {"turns": 10, "output_tokens": 1500, "verdicts": {"good": 10}}
    return ShardSummary(shards=(shard,), **(facts | changes))


def report(total: ShardSummary, **changes: Any) -> Report:
    """A finished run of one shard."""
    facts: dict[str, Any] = {
        "title": "rows answered by a model",
        "run": "/runs/one",
        "model": "owner/model",
        "source": "/data/rows.jsonl",
        "source_counts": {"rows": 12, "accepted": 10, "rejected": 2},
        "shards": 1,
        "shards_done": 1,
        "conversations": 10,
        "planned_turns": total.turns,
        "total": total,
        "alarms": (),
        "exact": True,
        "attempt": Attempt(10, 1500, 5.0, ("2 × vLLM 1.0",)),
        "examples": (),
    }
    return Report(**(facts | changes))
