"""The pass over a set: of each row some bytes are kept, of each kind of fault a count and some examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reflash.census.hashes import RunHasher
from reflash.census.turns import open_thoughts, stops_short
from reflash.tokenized.batches import Batch
from reflash.tokenized.families import Family, family_of
from reflash.tokenized.judge import Aligned, Ints, Spans, align, measure, open_ends, out_of_range

EMPTY = "answer at or under the threshold"
SHORT_TURN = "a turn at or under the threshold among longer ones"
OPEN_THOUGHT = "thinking left open"
CUT = "cut at the sequence limit"
EXAMPLES = 5  # of each kind

_KEPT = 8  # answers of a batch that may turn out to be frequent ...
_KEPT_IDS = 256  # ... so many ids of each ...
_MOST = 20_000  # ... and so many in all
_LAST = 2**16 - 1


class Columns:
    """A column that grows by a piece a batch."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.pieces: list[NDArray[Any]] = []

    def add(self, piece: NDArray[Any]) -> None:
        """Append a batch's values."""
        self.pieces.append(piece.astype(self.kind))

    def whole(self) -> NDArray[Any]:
        """All of it."""
        return np.concatenate([np.zeros(0, self.kind), *self.pieces])


class Tally:
    """What is known of the rows so far. `family`: a tokenizer's, for a set whose ids tell none."""

    def __init__(self, threshold: int, family: Family | None = None) -> None:
        self.threshold, self.fallback = threshold, family
        self.family: Family | None = None
        self.asked = False  # the family was looked for
        self.rows = 0
        self.why = Columns(np.uint16)  # of each row: its kind's number, 0 where it is fit
        self.kinds = {"": 0}  # each kind's number
        self.found: Counter[str] = Counter()  # rows of each kind; one may be of several
        self.examples: dict[str, list[tuple[int, str]]] = {}  # position, words
        self.sums, self.lengths, self.prompts = Columns(np.int32), Columns(np.int32), Columns(np.int32)
        self.prompt_hashes, self.answer_hashes = Columns(np.uint64), Columns(np.uint64)
        self.answers: dict[int, tuple[int, tuple[int, ...]]] = {}  # hash: length, the first ids
        self.cut_rows, self.cut_lengths = Columns(np.int64), Columns(np.int32)  # rows that stop within a turn
        self.names: list[Any] = []  # own ids of rows that are not fit, by batch
        self._hasher = RunHasher()

    def take(self, batch: Batch) -> None:
        """Judge one batch."""
        rows, faults = align(batch.ids, batch.mask)
        if not self.asked and len(rows.rows):
            self.asked = True
            self.family = family_of(rows.ids, rows.ends) or self.fallback
        vocabulary = self.family.vocabulary if self.family else None
        broken = out_of_range(rows, vocabulary)
        measures, spans = measure(rows, self.family)
        sound = np.ones(len(rows.rows), bool)
        sound[list(broken)] = False
        why = np.zeros(batch.size, np.uint16)
        # The gravest comes last and names the row.
        self._mark(why, rows.rows[self._short_turns(spans, measures.sums, sound)], SHORT_TURN)
        self._open(why, rows, spans, sound)
        self._said(why, ((int(rows.rows[at]), text) for at, text in measures.suspicions.items() if sound[at]))
        self._mark(why, rows.rows[sound & (measures.sums <= self.threshold)], EMPTY)
        self._said(why, ((int(rows.rows[at]), text) for at, text in broken.items()))
        self._said(why, faults.items())
        self._figures(rows, spans, measures.sums, sound)
        self.why.add(why)
        self._name(batch, why)
        self.rows += batch.size

    def _short_turns(self, spans: Spans, sums: Ints, sound: NDArray[np.bool_]) -> Ints:
        row = spans.row[spans.length <= self.threshold]
        return np.unique(row[(sums[row] > self.threshold) & sound[row]])

    def _open(self, why: NDArray[np.uint16], rows: Aligned, spans: Spans, sound: NDArray[np.bool_]) -> None:
        """Turns that do not end, and thoughts that do not."""
        if self.family is None:
            return
        ended = open_ends(spans, self.family.ends)
        self._said(why, ((int(rows.rows[at]), text) for at, text in ended.items() if sound[at]))
        if self.family.thinks is not None:
            thoughts = open_thoughts(rows, spans, self.family.thinks)
            self._mark(why, rows.rows[thoughts[sound[thoughts]]], OPEN_THOUGHT)
        cut = stops_short(rows, spans, self.family.ends) & sound
        self.cut_rows.add(self.rows + rows.rows[cut])
        self.cut_lengths.add((rows.ends - rows.starts)[cut])

    def _figures(self, rows: Aligned, spans: Spans, sums: Ints, sound: NDArray[np.bool_]) -> None:
        """Lengths and hashes of sound rows."""
        if not len(rows.rows):
            return
        first = rows.ends.copy()  # where the prompt ends: at the first supervised token
        owner, at = np.unique(spans.row, return_index=True)
        first[owner] = spans.begin[at]
        self.sums.add(sums[sound])
        self.lengths.add((rows.ends - rows.starts)[sound])
        self.prompts.add((first - rows.starts)[sound])
        fit = sound[spans.row]
        begin = np.concatenate([rows.starts[sound], spans.begin[fit]])
        end = np.concatenate([first[sound], (spans.begin + spans.length)[fit]])
        hashes = self._hasher.hashes(rows.ids, begin, end)
        prompts = int(np.count_nonzero(sound))
        self.prompt_hashes.add(hashes[:prompts])
        self.answer_hashes.add(hashes[prompts:])
        self._keep(rows, hashes[prompts:], begin[prompts:], end[prompts:])

    def _keep(self, rows: Aligned, hashes: NDArray[np.uint64], begin: Ints, end: Ints) -> None:
        """The ids of answers that occur often in this batch: their text is asked for in the end."""
        values, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        for at in np.argsort(-counts, kind="stable")[:_KEPT].tolist():
            key, start, stop = int(values[at]), int(begin[first[at]]), int(end[first[at]])
            if key not in self.answers and len(self.answers) < _MOST:
                ids = rows.ids[start : min(stop, start + _KEPT_IDS)].tolist()
                self.answers[key] = (stop - start, tuple(ids))

    def _mark(self, why: NDArray[np.uint16], where: Ints, kind: str) -> None:
        """Rows (positions in the batch) of one kind."""
        if not len(where):
            return
        why[where] = self.code(kind)
        self.found[kind] += len(where)
        self._example(kind, ((int(row), "") for row in where[:EXAMPLES]))

    def _said(self, why: NDArray[np.uint16], reasons: Iterable[tuple[int, str]]) -> None:
        """Rows that have words of their own."""
        for row, text in reasons:
            kind = kind_of(text)
            why[row] = self.code(kind)
            self.found[kind] += 1
            self._example(kind, [(row, text)])

    def _example(self, kind: str, rows: Iterable[tuple[int, str]]) -> None:
        kept = self.examples.setdefault(kind, [])
        if len(kept) < EXAMPLES:
            kept.extend((self.rows + row + 1, text) for row, text in rows)
            del kept[EXAMPLES:]

    def code(self, kind: str) -> int:
        """A kind's number; those beyond the last number share it."""
        return self.kinds.setdefault(kind, min(len(self.kinds), _LAST))

    def _name(self, batch: Batch, why: NDArray[np.uint16]) -> None:
        chosen = np.flatnonzero(why)
        names = pa.nulls(batch.size, pa.string()) if batch.names is None else batch.names
        self.names.append(names.take(pa.array(chosen)))


def kind_of(reason: str) -> str:
    """A fault without the numbers of its row."""
    if reason.startswith("token id"):
        return "ids out of range"
    return reason.partition(":")[0].partition(" (")[0]
