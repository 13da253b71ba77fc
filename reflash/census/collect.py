"""The pass over a tokenized set: of each row some bytes are kept, of each kind of fault a count and some examples."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reflash.census.answers import Kept
from reflash.census.gathered import Gathered, ItemsMet
from reflash.census.hashes import RunHasher
from reflash.census.marks import Columns, Ints
from reflash.census.spelled import Spelling
from reflash.census.turns import open_thoughts, stops_short
from reflash.tokenized.batches import Batch
from reflash.tokenized.families import Family, family_of
from reflash.tokenized.judge import Aligned, Spans, align, measure, open_ends, out_of_range

EMPTY = "answer at or under the threshold"
SHORT_TURN = "a turn at or under the threshold among longer ones"
ONE_TOKEN = "a turn of a single token among longer ones"
OPEN_THOUGHT = "thinking left open"
CUT = "cut at the sequence limit"
_ENDS_UNKNOWN = "what ends a turn is not known: open turns and cuts were not looked for; --tokenizer tells"
_NO_WORDS = "items of benchmarks were not looked for in prompts: that takes --tokenizer, which makes text of ids"

_KEPT_IDS = 256  # of an answer that may turn out to be frequent
_SHOWN_IDS = 96  # of an example's prompt (its end) and answer (its beginning)


class Tally:
    """What is known of the rows so far.

    `family`: a tokenizer's, for a set whose ids tell none. `spelling`: its vocabulary, where items are looked for.
    """

    def __init__(
        self,
        threshold: int,
        family: Family | None = None,
        spelling: Spelling | None = None,
        met: ItemsMet | None = None,
    ) -> None:
        self.threshold, self.fallback, self.spelling = threshold, family, spelling
        self.family: Family | None = None
        self.asked = False  # the family was looked for
        self.found = Gathered("tokenized", "tokens", met if met and spelling else ItemsMet(None))
        self.cut_rows, self.cut_lengths = Columns(np.int64), Columns(np.int32)  # rows that stop within a turn
        self._hasher = RunHasher()

    def take(self, batch: Batch, positions: Ints) -> None:
        """Judge one batch; `positions`: 0-based, in the set."""
        rows, faults = align(batch.ids, batch.mask)
        if not self.asked and len(rows.rows):
            self.asked = True
            self.family = family_of(rows.ids, rows.ends) or self.fallback
        vocabulary = self.family.vocabulary if self.family else None
        broken = out_of_range(rows, vocabulary)
        measures, spans = measure(rows, self.family)
        sound = np.ones(len(rows.rows), bool)
        sound[list(broken)] = False
        marks = self.found.marks
        marks.begin(positions)
        # The gravest comes last and names the row.
        self._short_turns(rows, spans, measures.sums, sound)
        self._open(rows, spans, sound)
        marks.said((int(rows.rows[at]), text) for at, text in measures.suspicions.items() if sound[at])
        marks.rows_of(EMPTY, rows.rows[sound & (measures.sums <= self.threshold)])
        marks.said((int(rows.rows[at]), text) for at, text in broken.items())
        marks.said(faults.items())
        self._figures(rows, spans, measures.sums, sound)
        self._examples(rows, spans)
        self._items(rows, positions)
        self._name(batch, marks.end())

    def _short_turns(self, rows: Aligned, spans: Spans, sums: Ints, sound: NDArray[np.bool_]) -> None:
        for kind, most in ((SHORT_TURN, self.threshold), (ONE_TOKEN, 1)):
            row = spans.row[spans.length <= most]
            self.found.marks.rows_of(kind, rows.rows[np.unique(row[(sums[row] > max(self.threshold, 1)) & sound[row]])])

    def _open(self, rows: Aligned, spans: Spans, sound: NDArray[np.bool_]) -> None:
        """Turns that do not end, and thoughts that do not."""
        if self.family is None:
            return
        marks = self.found.marks
        ended = open_ends(spans, self.family.ends)
        marks.said((int(rows.rows[at]), text) for at, text in ended.items() if sound[at])
        if self.family.thinks is not None:
            thoughts = open_thoughts(rows, spans, self.family.thinks)
            marks.rows_of(OPEN_THOUGHT, rows.rows[thoughts[sound[thoughts]]])
        cut = stops_short(rows, spans, self.family) & sound
        self.cut_rows.add(marks.rows + rows.rows[cut])
        self.cut_lengths.add((rows.ends - rows.starts)[cut])

    def _figures(self, rows: Aligned, spans: Spans, sums: Ints, sound: NDArray[np.bool_]) -> None:
        """Lengths and hashes of sound rows."""
        if not len(rows.rows):
            return
        found, first = self.found, rows.ends.copy()  # where the prompt ends: at the first supervised token
        owner, at = np.unique(spans.row, return_index=True)
        first[owner] = spans.begin[at]
        found.measured.add(found.marks.rows + rows.rows[sound])
        found.sums.add(sums[sound])
        found.lengths.add((rows.ends - rows.starts)[sound])
        found.prompts.add((first - rows.starts)[sound])
        found.empty_rows += int(np.count_nonzero(sound & (sums <= self.threshold)))
        fit = sound[spans.row]
        begin = np.concatenate([rows.starts[sound], spans.begin[fit]])
        end = np.concatenate([first[sound], (spans.begin + spans.length)[fit]])
        hashes = self._hasher.hashes(rows.ids, begin, end)
        prompts = int(np.count_nonzero(sound))
        found.prompt_hashes.add(hashes[:prompts])

        def answer(at: int) -> Kept:
            start, stop = int(begin[prompts + at]), int(end[prompts + at])
            return stop - start, tuple(rows.ids[start : min(stop, start + _KEPT_IDS)].tolist())

        found.answers.add(hashes[prompts:], answer)

    def _examples(self, rows: Aligned, spans: Spans) -> None:
        """The prompt's end and the answer's beginning of rows that became examples."""
        for row in self.found.marks.fresh():
            at = int(np.searchsorted(rows.rows, row))
            if at == len(rows.rows) or rows.rows[at] != row:
                continue  # its lists do not fit
            start, end = int(rows.starts[at]), int(rows.ends[at])
            of = np.flatnonzero(spans.row == at)
            first = int(spans.begin[of[0]]) if len(of) else end
            asked = rows.ids[max(start, first - _SHOWN_IDS) : first]
            self.found.marks.show(row, tuple(asked.tolist()), tuple(rows.ids[first:end][:_SHOWN_IDS].tolist()))

    def _items(self, rows: Aligned, positions: Ints) -> None:
        """Benchmark items in what is not supervised."""
        met = self.found.met
        if self.spelling is None or met.finder is None or not len(rows.rows):
            return
        asked = np.asarray(rows.mask == 0)
        size = np.add.reduceat(asked, rows.starts, dtype=np.int64)
        owner, item = met.finder.find(self._hasher, *self.spelling.bytes(rows.ids[asked], np.cumsum(size)))
        met.take(positions[rows.rows[owner]], item)

    def _name(self, batch: Batch, why: NDArray[np.uint16]) -> None:
        chosen = np.flatnonzero(why)
        names = pa.nulls(batch.size, pa.string()) if batch.names is None else batch.names
        self.found.names.append(names.take(pa.array(chosen)))

    def finish(self, limit: int | None) -> Gathered:
        """What the whole shows: rows that stop within a turn at the sequence limit, or where the longest rows end."""
        found = self.found
        rows, lengths = self.cut_rows.whole(), self.cut_lengths.whole()
        if len(lengths) and len(found.lengths.whole()):
            longest = int(found.lengths.whole().max())
            at = rows[lengths >= (limit or longest)]
            if len(at) >= (1 if limit else 2):
                found.marks.late(f"{CUT} of {limit or longest:,} tokens", at)
        found.family = self.family.name if self.family else None
        found.notes = (
            *(() if self.family else (_ENDS_UNKNOWN,)),
            *(() if self.spelling else (_NO_WORDS,)),
        )
        return found
