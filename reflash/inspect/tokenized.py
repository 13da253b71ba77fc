"""A tokenized set is audited batch by batch; of each row only some numbers are kept."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from typing import Any

import numpy as np

from reflash.errors import SourceError
from reflash.inspect.report import RowReason, TokenizedReport, for_another
from reflash.sources.shapes import TOKENIZED
from reflash.sources.source import Source
from reflash.tokenized.batches import CONVERSATION_ROW, Batch, batches
from reflash.tokenized.families import Family, family_of
from reflash.tokenized.judge import Aligned, Spans, align, measure, open_ends, out_of_range

_COMMON = 0.5  # share of all spans that end with a token, for it to be perhaps the end of a turn ...
_SURE, _SURE_ROWS = 0.95, 100  # ... and the share and number of rows for it to be taken as that


def audit(source: Source, threshold: int, vocabulary: int | None, context: int | None = None) -> TokenizedReport:
    """Judge every row; `context` is how many tokens a row may have before it is called long.

    Raises SourceError where no file can be read or there is no row.
    """
    ledger = _Audit(threshold, vocabulary, context)
    for part in source.parts:
        ledger.begin(part.file)
        try:
            for batch in batches(part):
                ledger.take(batch)
        except SourceError as error:
            if len(source.parts) == 1:
                raise
            ledger.unreadable.append(str(error))
    if not len(ledger.sums):
        nothing = f"{source.name}: no rows ({len(source.files)} files read); nothing to audit"
        raise SourceError(ledger.unreadable[0] if ledger.unreadable else nothing)
    return ledger.report(source)


class _Audit:
    """What is known of the rows so far."""

    def __init__(self, threshold: int, vocabulary: int | None, context: int | None) -> None:
        self.threshold, self.vocabulary, self.context = threshold, vocabulary, context
        self.files: list[tuple[int, str]] = []  # position of each file's first row
        self.unreadable: list[str] = []
        self.ends: tuple[int, ...] = ()  # ids that end a turn
        self.guessed = False  # too few rows tell so
        self.empty_turns = 0
        self.long: list[int] = []  # positions of rows longer than the context
        self.family: Family | None = None
        self.asked = False  # the family was looked for
        self.numbers, self.sums, self.spans, self.shortest = array("q"), array("q"), array("q"), array("q")
        self.reasons: dict[int, str] = {}  # position: why rejected or suspicious
        self.rejected: set[int] = set()
        self.repaired: set[int] = set()
        self.repairs: Counter[str] = Counter()
        self.columns: set[str] = set()
        self.open: list[tuple[Any, Any, Any]] = []  # position, last, before of spans, where the end mark is not known

    def begin(self, file: str) -> None:
        """The rows that come next are those of this file."""
        self.files.append((len(self.numbers), file))

    def take(self, batch: Batch) -> None:
        """Judge one batch."""
        base = len(self.numbers)
        first = base - self.files[-1][0] + 1
        self.columns |= batch.columns
        self.numbers.extend(batch.numbers or range(first, first + batch.size))
        rows, faults = align(batch.ids, batch.mask)
        if not self.asked and len(rows.rows):
            self.asked = True
            self.family = family_of(rows.ids, rows.ends)
            if self.vocabulary is None and self.family is not None:
                self.vocabulary = self.family.vocabulary
        beyond = out_of_range(rows, self.vocabulary)
        faults |= {int(rows.rows[at]): reason for at, reason in beyond.items()}
        self._keep(base, rows, faults, batch.size)
        self._repairs(base, batch, faults)

    def _keep(self, base: int, rows: Aligned, faults: dict[int, str], count: int) -> None:
        measures, spans = measure(rows, self.family)
        self._count(base, rows, spans, faults)
        for kept, found in (
            (self.sums, measures.sums),
            (self.spans, measures.spans),
            (self.shortest, measures.shortest),
        ):
            whole = np.full(count, -1, np.int64)
            whole[rows.rows] = found
            whole[list(faults)] = -1
            kept.frombytes(whole.tobytes())
        suspicions = dict(measures.suspicions)
        if self.family is not None:
            for at, reason in open_ends(spans, self.family.ends).items():
                suspicions.setdefault(at, reason)
        else:
            self._later(base, rows, spans)
        for at, reason in suspicions.items():
            self.reasons[base + int(rows.rows[at])] = reason
        for row, reason in faults.items():
            self.reasons[base + row] = reason
            self.rejected.add(base + row)

    def _count(self, base: int, rows: Aligned, spans: Spans, faults: dict[int, str]) -> None:
        """Short turns and long rows, of rows that can be used."""
        sound = ~np.isin(rows.rows, list(faults))
        if len(spans.row):
            self.empty_turns += int(np.count_nonzero((spans.length <= self.threshold) & sound[spans.row]))
        if self.context is not None:
            long = (rows.ends - rows.starts > self.context) & sound
            self.long += (base + rows.rows[long]).tolist()

    def _later(self, base: int, rows: Aligned, spans: Spans) -> None:
        where = (base + rows.rows[spans.row]).astype(np.int64)
        self.open.append((where, spans.last.astype(np.int32), spans.before.astype(np.int32)))

    def _repairs(self, base: int, batch: Batch, faults: dict[int, str]) -> None:
        for lists in (batch.ids, batch.mask):
            for row, text in lists.repairs.items():
                if row not in faults:
                    self.repaired.add(base + row)
                    self.repairs[text] += 1

    def _judge_ends(self) -> None:
        """Without a known end mark, the token that ends most spans is taken for it, if there is one."""
        if self.family is not None:
            self.ends = self.family.ends
        if not self.open:
            return
        row, last, before = (np.concatenate(column) for column in zip(*self.open, strict=True))
        tokens, counts = np.unique(last, return_counts=True)
        if not len(tokens) or len(last) < 4 or counts.max() < _COMMON * len(last):
            return
        mark = int(tokens[counts.argmax()])
        self.ends = (mark,)
        self.guessed = bool(counts.max() < _SURE * len(last)) or len(np.unique(row)) < _SURE_ROWS
        if self.guessed:
            return
        for position, reason in open_ends(Spans(row, row, row, last, np.full_like(before, -1)), (mark,)).items():
            self.reasons.setdefault(position, reason)

    def report(self, source: Source) -> TokenizedReport:
        """The whole."""
        self._judge_ends()
        suspicious = sorted(position for position in self.reasons if position not in self.rejected)
        sums = np.frombuffer(self.sums, np.int64)
        short = np.frombuffer(self.shortest, np.int64)
        flagged = (sums >= 0) & (sums <= self.threshold)
        hidden = (sums > self.threshold) & (short <= self.threshold)
        both = len(self.repaired)
        return TokenizedReport(
            source=source.name,
            rows=len(self.numbers),
            accepted=len(self.numbers) - len(self.rejected) - both,
            repaired=both,
            rejected=len(self.rejected),
            threshold=self.threshold,
            vocabulary=self.vocabulary,
            family=self.family.name if self.family else None,
            sums=_nullable(self.sums),
            spans=_nullable(self.spans),
            shortest_spans=_nullable(self.shortest),
            flagged_rows=self._named(np.flatnonzero(flagged).tolist()),
            suspicious_rows=self._named(suspicious),
            short_span_rows=self._named(np.flatnonzero(hidden).tolist()),
            repaired_rows=self._named(sorted(self.repaired)),
            rejected_rows=self._named(sorted(self.rejected)),
            reasons=tuple(self._reason(at) for at in sorted(self.reasons)),
            repairs=dict(self.repairs.most_common()),
            columns=tuple(sorted(self.columns - set(TOKENIZED))),
            notes=source.notes,
            unreadable=tuple(self.unreadable),
            context=self.context,
            long_rows=self._named(self.long),
            empty_turns=self.empty_turns,
            end_ids=self.ends,
            end_is_guess=self.guessed,
            not_audited=self._not_audited(),
        )

    def _not_audited(self) -> tuple[str, ...]:
        """What to do with each file that holds conversations."""
        starts = [start for start, _ in self.files]
        mixed = Counter(bisect_right(starts, at) - 1 for at, why in self.reasons.items() if why == CONVERSATION_ROW)
        ends = [*starts[1:], len(self.numbers)]
        files = ((self.files[n][1], count, ends[n] - starts[n]) for n, count in sorted(mixed.items()))
        return tuple(for_another(*file, "not tokenized") for file in files)

    def _named(self, positions: list[int]) -> tuple[int, ...]:
        return tuple(map(self._number, positions))

    def _number(self, position: int) -> int:
        """A row's line in the only file; among several files the rows are numbered through."""
        return self.numbers[position] if len(self.files) == 1 else position + 1

    def _reason(self, position: int) -> RowReason:
        file = None
        if len(self.files) > 1:
            name = self.files[bisect_right(self.files, position, key=lambda start: start[0]) - 1][1]
            file = f"{name}:{self.numbers[position]}"
        return RowReason(self._number(position), self.reasons[position], file)


def _nullable(values: Any) -> tuple[int | None, ...]:
    return tuple(None if value < 0 else value for value in values)
