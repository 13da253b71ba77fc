"""The report of a run: counts that add up, or a word that they do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from reflash.config.run import RunConfig
from reflash.errors import RunIncomplete
from reflash.ledger import names
from reflash.ledger.index import REPLAN
from reflash.ledger.ledger import Ledger
from reflash.publish.summary import ShardSummary, add_up
from reflash.report.attempt import Attempt, attempts_in
from reflash.report.examples import good_examples, set_aside_examples
from reflash.report.held import held
from reflash.report.words import without_secrets
from reflash.types import Shard


@dataclass(frozen=True, slots=True)
class Report:
    """What happened to every row that came in."""

    title: str
    run: str
    model: str
    source: str
    source_counts: dict[str, int]
    shards: int
    shards_done: int
    conversations: int
    planned_turns: int
    total: ShardSummary
    alarms: tuple[str, ...]  # reasons whose share of the turns passes the configured one
    exact: bool
    attempt: Attempt  # the last that generated something
    examples: tuple[dict[str, str], ...]  # good rows
    set_aside: tuple[dict[str, str], ...] = ()  # others, with why
    attempts: tuple[Attempt, ...] = ()  # all that generated something and left a report, the oldest first
    held: dict[str, Any] | None = None  # its forecast against what it took, see `held.py`
    stopped: str = ""  # what ended a run that is not complete, the end of an engine's log included

    @property
    def good(self) -> int:
        """Rows in the dataset."""
        return self.total.verdicts.get("good", 0)

    @property
    def sets_aside(self) -> bool:
        """Whether there are rejects: turns that are not good, or source rows that were never asked."""
        never_asked = (self.source_counts.get(name, 0) for name in ("rejected", "unfit"))
        return self.good < self.total.turns or any(never_asked)

    @property
    def engines(self) -> tuple[str, ...]:
        """The engines of all attempts, each group of them once."""
        return tuple(dict.fromkeys(", ".join(a.engines) for a in self.attempts or (self.attempt,) if a.engines))

    @property
    def untold_turns(self) -> int:
        """Turns that lie here from attempts that were ended too hard to leave a report."""
        return max(0, sum(self.total.engines.values()) - sum(a.turns for a in self.attempts))

    @property
    def complete(self) -> bool:
        """Whether every planned turn has a verdict."""
        return self.shards_done == self.shards and self.total.turns == self.planned_turns

    def to_json(self) -> dict[str, Any]:
        """The report as JSON-able data; keys of counts are text."""
        body = asdict(self)
        body["total"]["lengths"] = {str(k): v for k, v in self.total.lengths.items()}
        body["total"]["tokens_by_time"] = {str(k): v for k, v in self.total.tokens_by_time.items()}
        return {"complete": self.complete, "good": self.good, **body, "tokens_per_s": self.attempt.tokens_per_s}


def _check_turns(ledger: Ledger, shards: Sequence[Shard], summaries: Sequence[ShardSummary]) -> None:
    """Turns were held against their plan when they were judged: where counts differ, the index is wrong."""
    turns = {shard.name: shard.turns for shard in shards}
    for summary in summaries:
        planned = sum(turns.get(name, 0) for name in summary.shards)
        if planned != summary.turns:
            raise RunIncomplete(
                f"{ledger.store.where(names.INDEX)}: {planned:,} turns were planned in {', '.join(summary.shards)},"
                f" {summary.turns:,} are there; {REPLAN}"
            )


def make_report(
    config: RunConfig, ledger: Ledger, summaries: Sequence[ShardSummary], attempt: Attempt, stopped: str = ""
) -> Report:
    """Add up what the shards say. Raises RunIncomplete where done shards do not hold what was planned for them."""
    shards = ledger.shards() or []
    total = add_up(summaries)
    done = set(total.shards)
    _check_turns(ledger, shards, summaries)
    share = config.validation.alarm_share
    attempts = attempts_in(ledger.report())
    if attempt.output_tokens and attempt not in attempts:  # there already where this report is written once more
        attempts = (*(replace(a, course={}) for a in attempts), attempt)  # one course is enough to keep
    return Report(
        title=f"{config.source.path} answered by {config.model.name}",
        run=ledger.where,
        model=config.model.name,
        source=config.source.path,
        source_counts=ledger.source_counts(),
        shards=len(shards),
        shards_done=len(done),
        conversations=sum(s.rows for s in shards),
        planned_turns=sum(s.turns for s in shards),
        total=total,
        alarms=tuple(r for r, n in total.reasons.items() if n > share * total.turns),
        exact=total.inexact == 0,
        attempt=attempts[-1] if attempts else attempt,
        examples=tuple(good_examples(ledger, sorted(done))),
        set_aside=tuple(set_aside_examples(ledger, sorted(done))),
        attempts=attempts,
        held=held(config, ledger, total, sum(s.rows for s in shards), attempts) if len(done) == len(shards) else None,
        stopped=without_secrets(stopped),
    )
