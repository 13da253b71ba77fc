"""What only turns show: a thought that never ends, and a row cut before its last turn ended."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflash.tokenized.families import Family
from reflash.tokenized.judge import Aligned, Ints, Spans

_TAIL = 16  # ids of a prompt's end that may open a thought


def open_thoughts(rows: Aligned, spans: Spans, thinks: tuple[int, int]) -> Ints:
    """Indices into `rows.rows` of rows with a span whose thought is opened, in it or just before, and not closed."""
    opened, closed = (np.flatnonzero(rows.ids == mark) for mark in thinks)
    if not len(opened) or not len(spans.row):
        return np.zeros(0, np.int64)
    end = spans.begin + spans.length
    opens, closes = _last_before(opened, end), _last_before(closed, end)
    near = np.maximum(spans.begin - _TAIL, rows.starts[spans.row])
    return np.unique(spans.row[(opens >= near) & (opens > closes)])


def _last_before(positions: Ints, ends: Ints) -> Ints:
    """The last of some sorted positions before each end; -1 where there is none."""
    at = np.searchsorted(positions, ends, side="left")
    return np.concatenate([np.full(1, -1), positions])[at]


def stops_short(rows: Aligned, spans: Spans, family: Family) -> NDArray[np.bool_]:
    """For each row of `rows`, whether it stops before its answer does, or before there is one."""
    short: NDArray[Any] = np.zeros(len(rows.rows), bool)
    if not len(rows.rows):
        return short
    last = spans.begin + spans.length == rows.ends[spans.row]
    ended = np.isin(spans.last, family.ends) | np.isin(spans.before, family.ends)
    short[spans.row[last & ~ended]] = True
    marks = (*family.ends, *family.pads)
    asked_only = np.bincount(spans.row, minlength=len(short)) == 0
    unended = ~np.isin(rows.ids[rows.ends - 1], marks)
    unended &= ~np.isin(rows.ids[np.maximum(rows.ends - 2, rows.starts)], marks)
    short |= asked_only & unended
    return short
