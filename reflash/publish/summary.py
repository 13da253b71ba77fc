"""A shard in figures: small enough to pass between tasks, enough to make the run's report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, log2

from reflash.types import Judgement, Turn

BIN_S = 10  # seconds of a throughput bin
LENGTHS_PER_DOUBLING = 4  # bins of output lengths


@dataclass(frozen=True, slots=True)
class ShardSummary:
    """Counts of one shard, or of several added up."""

    shards: tuple[str, ...] = ()
    turns: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    good_tokens: int = 0  # supervised tokens of the good rows
    verdicts: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    finish_reasons: dict[str, int] = field(default_factory=dict)
    engines: dict[str, int] = field(default_factory=dict)  # turns by the engine that answered
    lengths: dict[int, int] = field(default_factory=dict)  # turns by bin, see `length_bin`
    tokens_by_time: dict[int, int] = field(default_factory=dict)  # by Unix time // BIN_S
    retried: int = 0  # turns that took more than one attempt
    inexact: int = 0  # turns whose ids are text encoded again


def length_bin(tokens: int) -> int:
    """The bin of an output length: four to a doubling."""
    return ceil(round(LENGTHS_PER_DOUBLING * log2(max(1, tokens)), 9))


def bin_edge(number: int) -> float:
    """The largest length in a bin, in tokens."""
    return float(2 ** (number / LENGTHS_PER_DOUBLING))


def summarize(shard: str, turns: Sequence[Turn], judgements: Sequence[Judgement]) -> ShardSummary:
    """Sum up a shard; judgements in any order."""
    good = {(j.conversation, j.turn) for j in judgements if j.verdict == "good"}
    made = [t for t in turns if t.output_ids]
    by_time: Counter[int] = Counter()
    for turn in made:
        by_time[int(turn.finished_at) // BIN_S] += len(turn.output_ids)
    return ShardSummary(
        shards=(shard,),
        turns=len(turns),
        prompt_tokens=sum(len(t.prompt_ids) for t in made),
        output_tokens=sum(len(t.output_ids) for t in made),
        good_tokens=sum(len(t.output_ids) for t in made if (t.conversation, t.turn) in good),
        verdicts=dict(Counter(j.verdict for j in judgements)),
        reasons=dict(Counter(reason for j in judgements for reason in j.reasons)),
        notes=dict(Counter(note for j in judgements for note in j.notes)),
        finish_reasons=dict(Counter(t.finish_reason for t in turns)),
        engines=dict(Counter(t.engine for t in made)),
        lengths=dict(Counter(length_bin(len(t.output_ids)) for t in made)),
        tokens_by_time=dict(by_time),
        retried=sum(t.attempts > 1 for t in turns),
        inexact=sum(not t.exact for t in made),
    )


_SUMS = ("turns", "prompt_tokens", "output_tokens", "good_tokens", "retried", "inexact")
_COUNTS = ("verdicts", "reasons", "notes", "finish_reasons", "engines", "lengths", "tokens_by_time")


def add_up(summaries: Iterable[ShardSummary]) -> ShardSummary:
    """Several shards as one."""
    all_of = list(summaries)
    counts: dict[str, dict[object, int]] = {}
    for name in _COUNTS:
        total: Counter[object] = Counter()
        for one in all_of:
            total.update(getattr(one, name))
        counts[name] = dict(total)
    sums = {name: sum(getattr(one, name) for one in all_of) for name in _SUMS}
    return ShardSummary(shards=tuple(s for one in all_of for s in one.shards), **sums, **counts)  # type: ignore[arg-type]
