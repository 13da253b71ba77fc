"""The report of a run: counts that add up, or a word that they do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from reflash.config.run import RunConfig
from reflash.errors import RunIncomplete
from reflash.ledger.ledger import Ledger
from reflash.publish.summary import ShardSummary, add_up
from reflash.report.attempt import Attempt


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
    attempt: Attempt
    examples: tuple[dict[str, str], ...]

    @property
    def good(self) -> int:
        """Rows in the dataset."""
        return self.total.verdicts.get("good", 0)

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


def make_report(config: RunConfig, ledger: Ledger, summaries: Sequence[ShardSummary], attempt: Attempt) -> Report:
    """Add up what the shards say. Raises RunIncomplete where done shards do not hold what was planned for them."""
    shards = ledger.shards() or []
    total = add_up(summaries)
    done = set(total.shards)
    planned = sum(s.turns for s in shards if s.name in done)
    if planned != total.turns:
        raise RunIncomplete(
            f"{ledger.where}: {planned} turns were planned in the finished shards, {total.turns} are there"
        )
    share = config.validation.alarm_share
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
        attempt=attempt if attempt.output_tokens else _last_attempt(ledger) or attempt,
        examples=tuple(_examples(ledger, sorted(done))),
    )


def _last_attempt(ledger: Ledger) -> Attempt | None:
    """The attempt that the last report tells of: a run found finished keeps its figures."""
    last = ledger.report()
    if last is None:
        return None
    facts = last["attempt"]
    return Attempt(facts["turns"], facts["output_tokens"], facts["seconds"], tuple(facts["engines"]))


def _examples(ledger: Ledger, shards: Sequence[str], wanted: int = 10) -> list[dict[str, str]]:
    """The first good rows: the last question, the thinking, the answer."""
    found: list[dict[str, str]] = []
    for shard in shards:
        table = ledger.good_rows(shard)
        if table is None:
            continue
        for row in table.select(["id", "messages"]).slice(0, wanted - len(found)).to_pylist():
            *before, answer = row["messages"]
            question = next((m["content"] for m in reversed(before) if m["role"] == "user"), "")
            found.append({"id": row["id"], "question": question, "answer": answer["content"]})
        if len(found) >= wanted:
            break
    return found
