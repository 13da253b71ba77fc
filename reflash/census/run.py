"""`take_census`: a whole tokenized set in one pass over its columns, and the rows to make again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reflash.census.collect import CUT, EXAMPLES, Tally
from reflash.census.report import Bin, CensusReport, Finding, Frequent, Spread
from reflash.census.verdict import judge
from reflash.census.words import Words
from reflash.config.source import SourceConfig
from reflash.errors import SourceError
from reflash.sources.open import open_source
from reflash.sources.selection import write_selection
from reflash.sources.source import Source
from reflash.tokenized.batches import CONVERSATION_ROW, batches

_FREQUENT = 10
_ENDS_UNKNOWN = "what ends a turn is not known: open turns and cuts were not looked for; --tokenizer tells"


@dataclass(frozen=True, slots=True)
class Census:
    """A report, and what it says is to be made again."""

    report: CensusReport
    again: NDArray[np.int64]  # 1-based positions in the set, rising
    names: Any  # their own ids, an Arrow array of text with nulls
    reasons: Any  # why, an Arrow dictionary array

    def write(self, path: Path) -> None:
        """Write the selection that `source.select` of a run config takes. Raises ConfigError."""
        write_selection(path, self.again, self.names, self.reasons, self.report.rows)


def take_census(config: SourceConfig, *, threshold: int = 6, tokenizer: str | None = None) -> Census:
    """Look at every row of a tokenized set.

    `threshold`: an answer of at most so many supervised tokens is empty. `tokenizer`: where the one is that shows
    answers as text. Raises SourceError where nothing can be read or no row is tokenized, RenderError for the tokenizer.
    """
    words = Words(tokenizer)
    source = open_source(config, tolerant=True)
    tally = Tally(threshold, words.family())
    unreadable = _read(source, tally)
    if not tally.rows:
        nothing = f"{source.name}: no rows ({len(source.files)} files read); nothing to audit"
        raise SourceError(unreadable[0] if unreadable else nothing)
    if not tally.sums.whole().size:
        kind = max(tally.found, key=tally.found.__getitem__)
        remedy = "; `reflash inspect` looks at conversations" if kind == CONVERSATION_ROW else ""
        row, text = tally.examples[kind][0]
        raise SourceError(f"{source.name}: none of its {tally.rows:,} rows can be measured; row {row}: {text}{remedy}")
    why = tally.why.whole()
    _cut(tally, why)
    again = np.flatnonzero(why)
    names = pa.concat_arrays([piece.cast(pa.string()) for piece in tally.names])
    codes = pa.array(why[again].astype(np.int32))
    reasons = pa.DictionaryArray.from_arrays(codes, pa.array(list(tally.kinds), pa.string()))
    return Census(_report(source, tally, words, unreadable, len(again)), again + 1, names, reasons)


def _read(source: Source, tally: Tally) -> tuple[str, ...]:
    """Every batch of every part; what could not be read where there are several."""
    unreadable: list[str] = []
    for part in source.parts:
        try:
            for batch in batches(part, named=True):
                tally.take(batch)
        except SourceError as error:
            if len(source.parts) == 1:
                raise
            unreadable.append(str(error))
    return tuple(unreadable)


def _cut(tally: Tally, why: NDArray[np.uint8]) -> None:
    """Rows that stop within a turn exactly where the longest rows end, if several do."""
    rows, lengths = tally.cut_rows.whole(), tally.cut_lengths.whole()
    limit = int(tally.lengths.whole().max())
    at = rows[lengths == limit]
    if len(at) < 2:
        return
    kind = f"{CUT} of {limit:,} tokens"
    tally.found[kind] = len(at)
    tally.examples[kind] = [(int(row) + 1, "") for row in at[:EXAMPLES]]
    why[at] = tally.code(kind)


def _report(source: Source, tally: Tally, words: Words, unreadable: tuple[str, ...], again: int) -> CensusReport:
    sums, lengths, prompts = tally.sums.whole(), tally.lengths.whole(), tally.prompts.whole()
    answers = tally.answer_hashes.whole()
    frequent, different = _frequent(tally, answers, words)
    values, counts = np.unique(sums, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:_FREQUENT]
    empty = int(np.count_nonzero(sums <= tally.threshold))
    verdict, why = judge(tally.rows, again, empty, tally.threshold, frequent)
    return CensusReport(
        source=source.name,
        rows=tally.rows,
        measured=len(sums),
        turns=len(answers),
        tokens=int(lengths.sum(dtype=np.int64)),
        supervised=int(sums.sum(dtype=np.int64)),
        threshold=tally.threshold,
        at_or_under=empty,
        family=tally.family.name if tally.family else None,
        verdict=verdict,
        why=why,
        to_make_again=again,
        supervised_histogram=histogram(sums, tally.threshold),
        supervised_most_often=tuple((int(values[at]), int(counts[at])) for at in often),
        frequent_answers=frequent,
        lengths=_spread(lengths),
        prompts=_spread(prompts),
        duplicate_prompts=len(prompts) - len(np.unique(tally.prompt_hashes.whole())),
        duplicate_answers=len(answers) - different,
        findings=tuple(
            Finding(kind, rows, rows / tally.rows, tuple(tally.examples[kind]))
            for kind, rows in tally.found.most_common()
        ),
        notes=(*source.notes, *(() if tally.family else (_ENDS_UNKNOWN,))),
        unreadable=unreadable,
    )


def _frequent(tally: Tally, answers: NDArray[np.uint64], words: Words) -> tuple[tuple[Frequent, ...], int]:
    """The answers that occur most often, those that occur once aside; and how many different ones there are."""
    values, counts = np.unique(answers, return_counts=True)
    found = []
    for at in np.argsort(-counts, kind="stable")[:_FREQUENT].tolist():
        count = int(counts[at])
        kept = tally.answers.get(int(values[at]))
        if count > 1 and kept is not None:
            length, ids = kept
            found.append(Frequent(count, count / len(answers), length, words.text(ids), words.says(ids)))
    return tuple(found), len(values)


def histogram(sums: NDArray[Any], threshold: int) -> tuple[Bin, ...]:
    """Rows by supervised tokens: none, up to the threshold, then ranges that double; empty ones at the end left out."""
    edges = [0, *([1] if threshold else []), threshold + 1]
    while edges[-1] <= int(sums.max()):
        edges.append(max(edges[-1] + 1, 1 << edges[-1].bit_length()))
    counts = np.bincount(np.searchsorted(edges, sums, side="right") - 1, minlength=len(edges))
    ends = [edge - 1 for edge in edges[1:]]
    return tuple(
        Bin(least, most, int(rows)) for least, most, rows in zip(edges[:-1], ends, counts[:-1].tolist(), strict=True)
    )


def _spread(lengths: NDArray[Any]) -> Spread:
    median, p90, p99 = (int(value) for value in np.percentile(lengths, (50, 90, 99)))
    return Spread(int(lengths.min()), median, float(lengths.mean()), p90, p99, int(lengths.max()))
