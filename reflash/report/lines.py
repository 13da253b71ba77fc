"""What a run tells as it goes, one line an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reflash.publish.summary import ShardSummary
from reflash.report.report import Report
from reflash.report.words import ranked
from reflash.types import Shard
from reflash.validate.checks import REASONS


def plan_line(counts: Mapping[str, int], shards: Sequence[Shard]) -> str:
    """What the source gave, and how much there is to do."""
    others = [f"{name} {n:,}" for name, n in counts.items() if n and name not in ("rows", "accepted")]
    rows, turns = sum(s.rows for s in shards), sum(s.turns for s in shards)
    return (
        f"Plan: {counts.get('rows', 0):,} rows read{_in_brackets(others)}; "
        f"{rows:,} conversations, {turns:,} turns to generate, in {len(shards):,} shards"
    )


def commit_line(shard: Shard, resumed: int, *, fresh: bool) -> str:
    """A shard's turns lie safe; `resumed` of its conversations were there from an earlier attempt."""
    if not fresh:
        return f"Shard {shard.name} was committed earlier: {shard.rows:,} conversations"
    earlier = [f"{resumed:,} from an earlier attempt"] if resumed else []
    return f"Shard {shard.name} committed: {shard.rows:,} conversations{_in_brackets(earlier)}"


def shard_line(summary: ShardSummary) -> str:
    """A shard's verdicts and the reasons behind them."""
    verdicts = [f"{summary.verdicts[v]:,} {v}" for v in ("good", "flagged", "rejected") if summary.verdicts.get(v)]
    reasons = [f"{reason} {n:,}" for reason, n in ranked(summary.reasons).items()]
    return (
        f"Shard {', '.join(summary.shards)}: {summary.turns:,} turns, {summary.output_tokens:,} tokens; "
        f"{', '.join(verdicts)}{_in_brackets(reasons)}"
    )


def verdict_line(report: Report) -> str:
    """How a run came out, in one or two sentences."""
    if not report.complete:
        return (
            f"Not finished: {report.shards_done:,} of {report.shards:,} shards. "
            "The same command goes on with the rest; nothing of what is done is made again."
        )
    share = report.good / max(1, report.total.turns)
    return f"{report.good:,} of {report.total.turns:,} turns ({share:.1%}) are fit to train on."


def alarm_lines(alarms: Sequence[str], reasons: Mapping[str, int], turns: int) -> list[str]:
    """Reasons that hit too many turns: what to look at first."""
    return [f"{reason} on {reasons[reason]:,} of {turns:,} turns: {REASONS[reason]}" for reason in alarms]


def _in_brackets(parts: Sequence[str]) -> str:
    return f" ({', '.join(parts)})" if parts else ""
