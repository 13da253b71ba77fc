"""What is wrong with tokenized rows: pure arithmetic over whole batches, no loop over tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reflash.tokenized.families import LARGEST, Family
from reflash.tokenized.lists import Flat, Lists

Ints = NDArray[np.int64]
_RUN = 4  # of one id at a row's end


@dataclass(frozen=True, slots=True)
class Aligned:
    """Rows whose two lists fit: token ids and mask one after another."""

    rows: Ints  # positions in the batch
    starts: Ints
    ends: Ints  # exclusive
    ids: Flat
    mask: Flat


@dataclass(frozen=True, slots=True)
class Spans:
    """Runs of supervised tokens."""

    row: Ints  # index into Aligned.rows
    begin: Ints  # position of its first token
    length: Ints
    last: Ints  # id of its last token
    before: Ints  # id before that, inside the span; -1 where it has one token


@dataclass(frozen=True, slots=True)
class Measures:
    """Per row of Aligned."""

    sums: Ints
    spans: Ints  # how many
    shortest: Ints  # 0 where there is none
    suspicions: dict[int, str]  # index into Aligned.rows: why


def align(ids: Lists, mask: Lists) -> tuple[Aligned, dict[int, str]]:
    """Rows that can be judged, and why the others cannot."""
    faults = {**mask.faults, **ids.faults}
    for row in np.flatnonzero((ids.lengths == 0) & (mask.lengths == 0)).tolist():
        faults.setdefault(row, "empty: no tokens")
    for row in np.flatnonzero(ids.lengths != mask.lengths).tolist():
        text = f"length mismatch: {ids.lengths[row]} input_ids, {mask.lengths[row]} in loss_mask"
        faults.setdefault(row, text)
    fit = np.ones(len(ids.lengths), dtype=bool)
    fit[list(faults)] = False
    lengths = ids.lengths[fit]
    ends = np.cumsum(lengths)
    aligned = Aligned(np.flatnonzero(fit), ends - lengths, ends, _of(ids, fit), _of(mask, fit))
    return aligned, faults


def _of(lists: Lists, fit: NDArray[np.bool_]) -> Flat:
    return lists.values if fit.all() else lists.values[np.repeat(fit, lists.lengths)]


def out_of_range(rows: Aligned, vocabulary: int | None) -> dict[int, str]:
    """Rows with values that no mask and no vocabulary has: index into `rows.rows`, and why."""
    faults: dict[int, str] = {}
    if not len(rows.rows):
        return faults
    if rows.mask.min() < 0 or rows.mask.max() > 1:
        for row, value in _first_where((rows.mask < 0) | (rows.mask > 1), rows, rows.mask):
            faults[row] = f"mask not binary: it holds {value}"
    limit = vocabulary or LARGEST
    if rows.ids.min() < 0 or rows.ids.max() >= limit:
        for row, value in _first_where((rows.ids < 0) | (rows.ids >= limit), rows, rows.ids):
            whose = f"the vocabulary of {limit}" if vocabulary else f"any known vocabulary ({limit} ids; --vocabulary)"
            beyond = f"beyond {whose}" if value > 0 else "negative"
            faults.setdefault(row, f"token id {value} is {beyond}")
    return faults


def _first_where(broken: NDArray[np.bool_], rows: Aligned, values: Flat) -> list[tuple[int, int]]:
    at = np.flatnonzero(broken)
    found, first = np.unique(np.searchsorted(rows.ends, at, side="right"), return_index=True)
    return list(zip(found.tolist(), values[at[first]].tolist(), strict=True))


def measure(rows: Aligned, family: Family | None) -> tuple[Measures, Spans]:
    """Sums, spans and what looks wrong, ends of spans aside: those may need the whole set to judge."""
    count = len(rows.rows)
    if not count:
        none = np.zeros(0, np.int64)
        return Measures(none, none, none, {}), Spans(none, none, none, none, none)
    on = rows.mask == 1
    spans = _spans(on, rows)
    sums = np.add.reduceat(on, rows.starts, dtype=np.int64)
    shortest = np.full(count, np.iinfo(np.int64).max)
    longest = np.zeros(count, np.int64)
    np.minimum.at(shortest, spans.row, spans.length)
    np.maximum.at(longest, spans.row, spans.length)
    number = np.bincount(spans.row, minlength=count)
    shortest[number == 0] = 0
    suspicions: dict[int, str] = {}
    if family is not None:
        _known_pads(rows, on, family, suspicions)
    for row in np.flatnonzero(on[rows.starts]).tolist():
        suspicions.setdefault(row, "prompt tokens supervised: the mask starts with the first token")
    if family is not None:
        _marks_supervised(rows, on, family, suspicions)
        _askers_supervised(rows, spans, family, suspicions)
    for row in np.flatnonzero(longest == 1).tolist():
        suspicions.setdefault(row, "no two adjacent supervised tokens")
    _repeated_tail(rows, on, suspicions)
    return Measures(sums, number, shortest, suspicions), spans


def _spans(on: NDArray[np.bool_], rows: Aligned) -> Spans:
    """Where supervision starts and ends; a row's border ends a span too."""
    first = on.copy()
    first[1:] &= ~on[:-1]
    first[rows.starts] = on[rows.starts]
    last = on.copy()
    last[:-1] &= ~on[1:]
    last[rows.ends - 1] = on[rows.ends - 1]
    begin, end = np.flatnonzero(first), np.flatnonzero(last)
    length = end - begin + 1
    before = np.where(length > 1, rows.ids[end - 1], -1) if len(end) else np.zeros(0, np.int64)
    return Spans(np.searchsorted(rows.ends, begin, side="right"), begin, length, rows.ids[end], before)


def _marks_supervised(rows: Aligned, on: NDArray[np.bool_], family: Family, suspicions: dict[int, str]) -> None:
    for mark in family.opens:
        at = np.flatnonzero((rows.ids == mark) & on)
        for row in np.unique(np.searchsorted(rows.ends, at, side="right")).tolist():
            suspicions.setdefault(row, f"prompt tokens supervised: id {mark} opens a message")


def _askers_supervised(rows: Aligned, spans: Spans, family: Family, suspicions: dict[int, str]) -> None:
    """Spans that start within a few tokens of a mark that opens a user's or a system's message."""
    for back in (1, 2, 3):
        fit = spans.begin - back >= rows.starts[spans.row]
        mark = np.where(fit, spans.begin - back, 0)
        hit = fit & np.isin(rows.ids[mark], family.opens) & np.isin(rows.ids[mark + 1], family.askers)
        for row in np.unique(spans.row[hit]).tolist():
            suspicions.setdefault(row, "prompt tokens supervised: a span is a user's or system's message")


def _known_pads(rows: Aligned, on: NDArray[np.bool_], family: Family, suspicions: dict[int, str]) -> None:
    """Rows that supervise a padding id several times in a row; one alone may end a text."""
    for pad in family.pads:
        at = np.flatnonzero((rows.ids == pad) & on)
        row_of = np.searchsorted(rows.ends, at, side="right")
        pairs = (np.diff(at) == 1) & (np.diff(row_of) == 0)
        found, times = np.unique(row_of[1:][pairs], return_counts=True)
        for row, more in zip(found.tolist(), times.tolist(), strict=True):
            suspicions.setdefault(row, f"pad tokens supervised: id {pad} {more + 1} times")


def _repeated_tail(rows: Aligned, on: NDArray[np.bool_], suspicions: dict[int, str]) -> None:
    """Rows that end with one id over and over behind a supervised answer: padding, though its id is not known."""
    end = rows.ends - 1
    long = rows.ends - rows.starts > 1
    repeated = on[end] & long & (rows.ids[end] == rows.ids[np.maximum(end - 1, 0)])
    for row in np.flatnonzero(repeated).tolist():
        tail = rows.ids[rows.starts[row] : rows.ends[row]][::-1]
        supervised = on[rows.starts[row] : rows.ends[row]][::-1]
        run = _until((tail != tail[0]) | ~supervised)
        if _RUN <= run < _until(~supervised):  # else nothing stands before it: a loop
            suspicions.setdefault(row, f"pad tokens supervised: id {tail[0]} stands {run} times at the end")


def _until(mark: NDArray[np.bool_]) -> int:
    """Position of the first true value; the length where there is none."""
    at = int(np.argmax(mark))
    return at if mark[at] else len(mark)


def open_ends(spans: Spans, ends: tuple[int, ...]) -> dict[int, str]:
    """Rows with a span that does not end a turn: its last token is no end mark, nor the one before (a line feed
    may follow the mark)."""
    closed = np.isin(spans.last, ends) | np.isin(spans.before, ends)
    found: dict[int, str] = {}
    for at in np.flatnonzero(~closed).tolist():
        mark = ends[0]
        text = f"supervised span does not end with the end of turn ({mark}): its last id is {spans.last[at]}"
        found.setdefault(int(spans.row[at]), text)
    return found
