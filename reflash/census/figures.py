"""Columns become figures."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflash.census.gathered import Gathered
from reflash.census.marks import Shown
from reflash.census.report import Bin, CensusReport, Example, Finding, Frequent, ItemsFound, Spread
from reflash.census.verdict import judge
from reflash.census.words import Words
from reflash.config.audit import AuditRules

_FREQUENT = 10


def report_of(
    name: str, set_rows: int, found: Gathered, words: Words, rules: AuditRules, unreadable: tuple[str, ...]
) -> CensusReport:
    """The report on what was gathered of a set of so many rows. At least one row was measured."""
    threshold = rules.threshold if found.kind == "tokenized" else None
    frequent, different = _frequent(found, words)
    turns = len(found.answers.hashes.whole())
    report = _rows(found, threshold)(
        source=name,
        set_rows=set_rows,
        turns=turns,
        blank_answers=found.blank,
        placeholder_answers=found.placeholders,
        thoughts=found.thoughts,
        open_thoughts=found.thoughts_open,
        family=found.family,
        verdict="",
        why="",
        frequent_answers=frequent,
        duplicate_answers=turns - different,
        item_rows=len(found.met.rows.whole()),
        items=tuple(ItemsFound(b.name, met, b.items, rows, some) for b, met, rows, some in found.met.by_benchmark()),
        findings=_findings(found, words),
        notes=found.notes,
        unreadable=unreadable,
    )
    verdict, why = judge(report, rules)
    return replace(report, verdict=verdict, why=why)


def _rows(found: Gathered, threshold: int | None) -> partial[CensusReport]:
    """The part of the report that counts rows and measures them."""
    sums, lengths, prompts = found.sums.whole(), found.lengths.whole(), found.prompts.whole()
    return partial(
        CensusReport,
        set=found.kind,
        unit=found.unit,
        rows=found.marks.rows,
        measured=len(sums),
        size=int(lengths.sum(dtype=np.int64)),
        supervised=int(sums.sum(dtype=np.int64)),
        threshold=threshold,
        empty_rows=found.empty_rows,
        to_make_again=int(np.count_nonzero(found.marks.why.whole())),
        rejected=found.rejected,
        answers_histogram=histogram(sums, threshold or 0),
        answers_most_often=_most_often(sums),
        lengths=_spread(lengths),
        prompts=_spread(prompts),
        duplicate_prompts=len(prompts) - len(np.unique(found.prompt_hashes.whole())),
    )


def _most_often(sums: NDArray[Any]) -> tuple[tuple[int, int], ...]:
    values, counts = np.unique(sums, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:_FREQUENT]
    return tuple((int(values[at]), int(counts[at])) for at in often)


def _frequent(found: Gathered, words: Words) -> tuple[tuple[Frequent, ...], int]:
    """The answers that occur most often, those that occur once aside; and how many different ones there are."""
    often, different = found.answers.frequent(_FREQUENT)
    turns = len(found.answers.hashes.whole())
    return tuple(
        Frequent(count, count / turns, length, words.text(shown), words.says(shown)) for count, (length, shown) in often
    ), different


def _findings(found: Gathered, words: Words) -> tuple[Finding, ...]:
    marks = found.marks

    def example(position: int, text: str) -> Example:
        asked, said = marks.shown.get(position, ("", ""))
        return Example(position + 1, text, _brief(words, asked), _brief(words, said))

    return tuple(
        Finding(kind, rows, rows / marks.rows, tuple(example(*one) for one in marks.examples[kind]))
        for kind, rows in marks.found.most_common()
    )


def _brief(words: Words, shown: Shown) -> str:
    return words.text(shown) if shown else ""


def histogram(sums: NDArray[Any], threshold: int) -> tuple[Bin, ...]:
    """Rows by length: none, up to the threshold, then ranges that double; empty ones at the end left out."""
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
