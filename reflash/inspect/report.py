"""What an inspection found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from typing import Any

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """The verdict on one row of conversations."""

    row: int  # 1-based; the physical line of a single JSON Lines file
    id: str | None  # unique; as given in the source where the row is rejected
    verdict: str
    reason: str
    turns: int  # assistant turns to regenerate; 0 where rejected
    file: str | None = None  # where there are several files


@dataclass(frozen=True, slots=True)
class ConversationReport:
    """A set of conversations: `accepted`, `repaired` and `rejected` add up to `rows`."""

    source: str
    rows: int
    accepted: int
    repaired: int
    rejected: int
    turns: int  # assistant turns to regenerate, in all
    duplicate_ids: int
    duplicate_prompts: int
    verdicts: tuple[RowVerdict, ...]
    reasons: dict[str, int]  # how often each reason was seen, most frequent first
    notes: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether any row can be used."""
        return self.rows > self.rejected

    def to_json(self) -> dict[str, Any]:
        """One JSON object."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        verdicts = [{f.name: getattr(v, f.name) for f in fields(v)} for v in self.verdicts]
        for verdict in verdicts:
            if verdict["file"] is None:
                del verdict["file"]
        return {"kind": "conversations", **plain, "verdicts": verdicts, "notes": list(self.notes)}

    def to_text(self) -> str:
        """Some lines for a person."""
        lines = [
            f"{self.source}: {self.rows:,} rows of conversations",
            f"  accepted {self.accepted:,}, repaired {self.repaired:,}, rejected {self.rejected:,}",
            f"  {self.turns:,} assistant turns to regenerate",
            f"  duplicate ids {self.duplicate_ids:,}, duplicate prompts {self.duplicate_prompts:,}",
            *(f"  note: {note}" for note in self.notes),
            *(f"  {count:,} x {reason}" for reason, count in list(self.reasons.items())[:_SHOWN]),
        ]
        rejected = [v for v in self.verdicts if v.verdict == "rejected"]
        shown = [f"  {v.file + ' ' if v.file else ''}row {v.row}: {v.reason}" for v in rejected[:_SHOWN]]
        return "\n".join([*lines, *shown])


@dataclass(frozen=True, slots=True)
class RowReason:
    """Why a tokenized row was rejected or is suspicious."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class TokenizedReport:
    """A tokenized set. Rows are 1-based; lists with an entry a row hold null where the row was rejected."""

    source: str
    rows: int
    accepted: int  # neither rejected nor repaired
    repaired: int
    rejected: int
    threshold: int
    vocabulary: int | None
    family: str | None
    sums: tuple[int | None, ...]  # supervised tokens of each row
    spans: tuple[int | None, ...]  # supervised spans of each row: its turns
    shortest_spans: tuple[int | None, ...]  # tokens
    flagged_rows: tuple[int, ...]  # sum at or under the threshold
    suspicious_rows: tuple[int, ...]
    short_span_rows: tuple[int, ...]  # not flagged, but one of its spans is at or under the threshold
    repaired_rows: tuple[int, ...]
    rejected_rows: tuple[int, ...]
    reasons: tuple[RowReason, ...]
    repairs: dict[str, int]
    columns: tuple[str, ...]  # beside input_ids and loss_mask
    notes: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether any row could be audited."""
        return self.rows > self.rejected

    def to_json(self) -> dict[str, Any]:
        """One JSON object."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        lists = {name: list(value) for name, value in plain.items() if isinstance(value, tuple)}
        reasons = [{"row": reason.row, "reason": reason.reason} for reason in self.reasons]
        return {"kind": "tokenized", **plain, **lists, "reasons": reasons}

    def to_text(self) -> str:
        """Some lines for a person."""
        share = f" ({len(self.flagged_rows) / self.rows:.1%})" if self.rows else ""
        kinds = Counter(reason.reason.partition(":")[0] for reason in self.reasons)
        return "\n".join(
            [
                f"{self.source}: {self.rows:,} tokenized rows ({self.family or 'unknown vocabulary'})",
                f"  {len(self.flagged_rows):,}{share} supervise at most {self.threshold} tokens",
                f"  {len(self.suspicious_rows):,} suspicious, {self.rejected:,} rejected, {self.repaired:,} repaired",
                f"  {len(self.short_span_rows):,} more hold a turn of at most {self.threshold} tokens",
                *(f"  note: {note}" for note in self.notes),
                *(f"  {count:,} x {text}" for text, count in self.repairs.items()),
                *(f"  {count:,} x {text}" for text, count in kinds.most_common(_SHOWN)),
                *(f"  row {reason.row}: {reason.reason}" for reason in self.reasons[:_SHOWN]),
            ]
        )
