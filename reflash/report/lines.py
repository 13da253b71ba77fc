"""What a run tells as it goes, one line an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reflash.publish.summary import ShardSummary
from reflash.report.report import Report
from reflash.report.words import counted, ranked, share
from reflash.types import Shard
from reflash.validate.checks import DRIFT, REASONS


def plan_line(counts: Mapping[str, int], shards: Sequence[Shard]) -> str:
    """What the source gave, and how much there is to do."""
    others = [f"{name} {n:,}" for name, n in counts.items() if n and name not in ("rows", "accepted")]
    rows, turns = sum(s.rows for s in shards), sum(s.turns for s in shards)
    return (
        f"Plan: {counted(counts.get('rows', 0), 'row')} read{_in_brackets(others)}; "
        f"{counted(rows, 'conversation')}, {counted(turns, 'turn')} to generate, in {counted(len(shards), 'shard')}"
    )


def commit_line(shard: Shard, resumed: int, *, fresh: bool) -> str:
    """A shard's turns lie safe; `resumed` of its conversations were there from an earlier attempt."""
    if not fresh:
        return f"Shard {shard.name} was committed earlier: {counted(shard.rows, 'conversation')}"
    earlier = [f"{resumed:,} from an earlier attempt"] if resumed else []
    return f"Shard {shard.name} committed: {counted(shard.rows, 'conversation')}{_in_brackets(earlier)}"


def shard_line(summary: ShardSummary) -> str:
    """A shard's verdicts and the reasons behind them."""
    verdicts = [f"{summary.verdicts[v]:,} {v}" for v in ("good", "flagged", "rejected") if summary.verdicts.get(v)]
    reasons = [f"{reason} {n:,}" for reason, n in ranked(summary.reasons).items()]
    return (
        f"Shard {', '.join(summary.shards)}: {counted(summary.turns, 'turn')}, "
        f"{counted(summary.output_tokens, 'token')}; {', '.join(verdicts) or 'no verdict'}{_in_brackets(reasons)}"
    )


def verdict_line(report: Report) -> str:
    """How a run came out, in one or two sentences."""
    if not report.complete:
        return (
            f"Not finished: {report.shards_done:,} of {counted(report.shards, 'shard')}. "
            "The same command goes on with the rest; nothing of what is done is made again."
        )
    turns = report.total.turns
    if not turns:
        return "There was no turn to generate."
    verb = "is" if turns == 1 else "are"
    return f"{report.good:,} of {counted(turns, 'turn')} ({share(report.good, turns)}) {verb} fit to train on."


def alarm_lines(alarms: Sequence[str], reasons: Mapping[str, int], turns: int) -> list[str]:
    """Reasons that hit too many turns: what to look at first."""
    return [f"{reason} on {reasons[reason]:,} of {counted(turns, 'turn')}: {REASONS[reason]}" for reason in alarms]


def drift_line(total: ShardSummary) -> str:
    """What came of decoding every turn and encoding it again."""
    counts = {
        kind: sum(total.reasons.get(r, 0) + total.notes.get(r, 0) for r in found) for kind, found in DRIFT.items()
    }
    if not any(counts.values()):
        return f"Tokens, text and template agree on every turn ({', '.join(counts)}: none)."
    told = (f"{kind} {n:,} ({share(n, total.turns)})" for kind, n in counts.items())
    return f"Tokens, text and template held against each other: {', '.join(told)}."


def _in_brackets(parts: Sequence[str]) -> str:
    return f" ({', '.join(parts)})" if parts else ""
