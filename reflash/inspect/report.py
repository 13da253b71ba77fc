"""What an inspection found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from shlex import quote
from typing import Any

from reflash.printable import printable
from reflash.sources.shapes import ALREADY_TOKENIZED
from reflash.tokenized.batches import CONVERSATION_ROW

_SHOWN = 20
_ROWS = 10  # numbers in one line
_LINE = 2000  # characters


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
    empty_answers: int  # of these turns, those whose old answer is absent, blank or a placeholder
    empty_answer_rows: tuple[int, ...]
    duplicate_ids: int
    duplicate_prompts: int
    verdicts: tuple[RowVerdict, ...]
    reasons: dict[str, int]  # how often each reason was seen, most frequent first
    notes: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()  # one text for each file that could not be read to its end
    context: int | None = None  # tokens; prompts as long were rejected. None: they were not measured
    duplicate_id_rows: tuple[int, ...] = ()
    duplicate_prompt_rows: tuple[int, ...] = ()  # a row that repeats both is in both
    renamed: str | None = None  # the first id that was made for a row whose own was taken
    not_audited: tuple[str, ...] = ()  # one text for each file in which there are rows of token ids

    @property
    def usable(self) -> bool:
        """Whether any row can be used."""
        return self.rows > self.rejected

    def to_json(self) -> dict[str, Any]:
        """One JSON object."""
        plain = _plain(self)
        return {"kind": "conversations", **plain, "verdicts": [_without_file(verdict) for verdict in self.verdicts]}

    def to_text(self) -> str:
        """Some lines for a person."""
        rejected = [v for v in self.verdicts if v.verdict == "rejected" and not is_tokens(v)]
        empty = f"  empty answers: {self.empty_answers:,} of these turns have none, or a placeholder such as OK."
        limit = f"  prompts of {self.context or 0:,} tokens or more are rejected (--context)"
        return _lines(
            f"{self.source}: {self.rows:,} rows of conversations",
            f"  accepted {self.accepted:,}, repaired {self.repaired:,}, rejected {self.rejected:,}",
            f"  {self.turns:,} assistant turns to regenerate",
            empty + _at(self.empty_answer_rows),
            *self._duplicates(),
            *([limit] if self.context is not None else []),
            *_remarks(self.notes, self.unreadable),
            *_some([f"  NOT AUDITED: {text}" for text in self.not_audited], "files"),
            *_some([f"  {count:,} x {reason}" for reason, count in self.reasons.items()], "reasons"),
            *_some([f"  {_place(verdict)}: {verdict.reason}" for verdict in rejected], "rejected rows"),
        )

    def _duplicates(self) -> list[str]:
        """How many there are, which rows, and what becomes of them."""
        if not self.duplicate_ids and not self.duplicate_prompts:
            return ["  duplicate ids 0, duplicate prompts 0"]
        kept = f": each is kept, under a new id such as {self.renamed}" if self.duplicate_ids else ""
        both = len(set(self.duplicate_id_rows) & set(self.duplicate_prompt_rows))
        asked = ": each is kept, and answered" if self.duplicate_prompts else ""
        too = f"; {both:,} of them with the same id too" if both else ""
        return [
            f"  duplicate ids {self.duplicate_ids:,}{kept}{_at(self.duplicate_id_rows)}",
            f"  duplicate prompts {self.duplicate_prompts:,}{asked}{too}{_at(self.duplicate_prompt_rows)}",
        ]


def for_another(file: str, count: int, rows: int, what: str) -> str:
    """What to do with a file of which so many rows are for another inspection."""
    if count == rows:
        return f"{file}: all its rows ({rows:,}) are {what}; give it alone: reflash inspect {quote(file)}"
    verb = "is" if count == 1 else "are"
    return f"{file}: {count:,} of its {rows:,} rows {verb} {what}; put such rows in a file of their own"


def is_tokens(verdict: RowVerdict) -> bool:
    """Whether a row was rejected since it holds token ids: it is for another inspection."""
    return verdict.verdict == "rejected" and verdict.reason.startswith(ALREADY_TOKENIZED)


@dataclass(frozen=True, slots=True)
class RowReason:
    """Why a tokenized row was rejected or is suspicious."""

    row: int
    reason: str
    file: str | None = None  # where there are several files


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
    unreadable: tuple[str, ...] = ()  # one text for each file that could not be read to its end
    context: int | None = None  # tokens; None: lengths were not judged
    long_rows: tuple[int, ...] = ()  # longer than the context
    empty_turns: int = 0  # spans at or under the threshold
    end_ids: tuple[int, ...] = ()  # ids that end a turn: the family's, or that which ends most spans; else none
    end_is_guess: bool = False  # few rows tell so, or they do not agree: no row was judged by it
    not_audited: tuple[str, ...] = ()  # one text for each file in which there are conversations

    @property
    def usable(self) -> bool:
        """Whether any row could be audited."""
        return self.rows > self.rejected

    def to_json(self) -> dict[str, Any]:
        """One JSON object."""
        return {"kind": "tokenized", **_plain(self), "reasons": [_without_file(reason) for reason in self.reasons]}

    def to_text(self) -> str:
        """Some lines for a person."""
        return _lines(
            f"{self.source}: {self.rows:,} tokenized rows",
            self._in_short(),
            *self._empty(),
            f"  suspicious: {len(self.suspicious_rows):,}{_at(self.suspicious_rows)}",
            *self._measured(),
            *_remarks(self.notes, self.unreadable),
            *_some([f"  NOT AUDITED: {text}" for text in self.not_audited], "files"),
            *_some([f"  {count:,} x {text}" for text, count in self.repairs.items()], "repairs"),
            *_some(_alike(self.reasons), "reasons"),
            *_some([f"  {_place(r)}: {r.reason}" for r in self.reasons if r.reason != CONVERSATION_ROW], "rows"),
        )

    def _in_short(self) -> str:
        """How many rows are fit, and how many are not: one may be flagged and suspicious."""
        flagged, suspicious = set(self.flagged_rows), set(self.suspicious_rows)
        fit = self.rows - self.rejected - len(flagged | suspicious)
        both = f" ({len(flagged & suspicious):,} of them flagged too)" if flagged & suspicious else ""
        mended = f"; repaired {self.repaired:,}" if self.repaired else ""
        return (
            f"  fit {fit:,}, flagged {len(flagged):,}, suspicious {len(suspicious):,}{both}, "
            f"rejected {self.rejected:,}{mended}"
        )

    def _empty(self) -> list[str]:
        turns = sum(count or 0 for count in self.spans)
        flagged, short = self.flagged_rows, self.short_span_rows
        share = f", {len(flagged) / self.rows:.1%}" if self.rows else ""
        nothing = sum(count == 0 for count in self.sums)
        none = f", {nothing:,} of them nothing at all" if nothing else ""
        return [
            f"  empty answers: {self.empty_turns:,} of {turns:,} turns supervise at most {self.threshold} tokens "
            "(--threshold)",
            f"    flagged, since they supervise no more than that in all: {len(flagged):,}{share}{none}{_at(flagged)}",
            f"    rows that have such a turn among longer ones: {len(short):,}{_at(short)}",
        ]

    def _measured(self) -> list[str]:
        """What the rows were measured with: said, since much of it is a default or a guess."""
        long = f"  longer than {self.context or 0:,} tokens (--context): {len(self.long_rows):,}{_at(self.long_rows)}"
        names = " or ".join(map(str, self.end_ids))
        if self.family:
            end = f"{names}, as in {self.family}, whose control ids occur"
        elif self.end_is_guess:
            end = f"perhaps {names}: a guess, too few rows end so for any to be suspicious where it ends otherwise"
        elif self.end_ids:
            end = f"taken to be {names}, which ends nearly all of the supervised spans"
        else:
            end = "not known: no id ends most of the supervised spans, so open ends were not looked for"
        vocabulary = f"{self.vocabulary:,} ids" if self.vocabulary else "not known (--vocabulary)"
        return [
            *([long] if self.context is not None else []),
            f"  end of turn: {end}",
            f"  vocabulary: {vocabulary}",
        ]


def _plain(report: ConversationReport | TokenizedReport) -> dict[str, Any]:
    values = {f.name: getattr(report, f.name) for f in fields(report)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _without_file(row: RowVerdict | RowReason) -> dict[str, Any]:
    """One row as an object; its file only where there are several."""
    values = {f.name: getattr(row, f.name) for f in fields(row)}
    return {name: value for name, value in values.items() if name != "file" or value is not None}


def _lines(*lines: str) -> str:
    return "\n".join(printable(line, _LINE) for line in lines)


def _remarks(notes: Iterable[str], unreadable: Sequence[str]) -> list[str]:
    return [*(f"  note: {note}" for note in notes), *_some([f"  NOT READ: {text}" for text in unreadable], "files")]


def _some(lines: list[str], what: str) -> list[str]:
    """The first lines, and how many more there are."""
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], f"  ... and {more:,} more {what} (--json lists all)"] if more > 0 else lines


def _at(rows: Sequence[int]) -> str:
    """` (rows 1, 2, 3)`, the first few of them."""
    if not rows:
        return ""
    more = ", ..." if len(rows) > _ROWS else ""
    return f" ({'row' if len(rows) == 1 else 'rows'} {', '.join(map(str, rows[:_ROWS]))}{more})"


def _place(row: RowVerdict | RowReason) -> str:
    return f"row {row.row} ({row.file})" if row.file else f"row {row.row}"


def _alike(reasons: Sequence[RowReason]) -> list[str]:
    """How often each reason was seen, whatever numbers stand in it: the first such row's words."""
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for reason in reasons:
        kind = re.sub(r"\d+", "0", reason.reason)
        first.setdefault(kind, reason.reason)
        counts[kind] += 1
    return [f"  {count:,} x {first[kind]}{_like(first[kind], count)}" for kind, count in counts.most_common()]


def _like(reason: str, count: int) -> str:
    return " (numbers differ)" if count > 1 and re.search(r"\d", reason) else ""
