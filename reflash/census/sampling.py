"""Some of the rows: evenly over a set, or alike from short and long prompts. Never by chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reflash.census.hashes import mixed
from reflash.census.marks import Ints
from reflash.errors import SourceError
from reflash.sources.columns import ParquetPart
from reflash.sources.raw import ColumnPart, Part
from reflash.sources.streams import reading
from reflash.tokenized.batches import Batch
from reflash.tokenized.lists import Lists


def rows_of(parts: Sequence[Part]) -> int:
    """Rows of all parts that can be read; Parquet says it, other files are read for it."""
    total = 0
    for part in parts:
        try:
            total += _rows_of(part)
        except SourceError:
            continue  # said when its rows are looked at
    return total


def _rows_of(part: Part) -> int:
    if isinstance(part, ParquetPart):
        with reading(part.file):
            return int(pq.read_metadata(part.path).num_rows)
    if isinstance(part, ColumnPart):
        return sum(batch.num_rows for batch in part.batches(part.columns[:1]))
    return sum(1 for _ in part.records())


class Spacing:
    """One of every so many rows: of `rows` about `wanted`, whatever file they stand in; all where none is wanted.

    Where among its neighbours it stands changes from one to the next: a set may have a rhythm of its own.
    """

    def __init__(self, rows: int, wanted: int | None) -> None:
        self._rows, self._wanted = rows, wanted if wanted is not None and wanted < rows else None

    def of(self, first: int, count: int) -> Ints:
        """Which of `count` rows from position `first` on are taken, counted from `first`."""
        if self._wanted is None:
            return np.arange(count, dtype=np.int64)
        low, high = (at * self._wanted // self._rows for at in (first, first + count))
        number = np.arange(low, min(high + 1, self._wanted), dtype=np.int64)
        begin, end = number * self._rows // self._wanted, (number + 1) * self._rows // self._wanted
        place = begin + (mixed(number) % (end - begin).astype(np.uint64)).astype(np.int64)
        chosen: Ints = place[(place >= first) & (place < first + count)] - first
        return chosen


def thin(batch: Batch, kept: Ints) -> Batch:
    """Some rows of a batch, by their numbers, which rise."""
    if len(kept) == batch.size:
        return batch
    names = None if batch.names is None else batch.names.take(kept)
    numbers = None if batch.numbers is None else [batch.numbers[at] for at in kept.tolist()]
    return Batch(numbers, len(kept), _some(batch.ids, kept), _some(batch.mask, kept), batch.columns, names)


def _some(lists: Lists, kept: Ints) -> Lists:
    chosen = np.zeros(len(lists.lengths), bool)
    chosen[kept] = True
    where = {int(old): new for new, old in enumerate(kept.tolist())}
    return Lists(
        lists.values[np.repeat(chosen, lists.lengths)] if len(lists.values) else lists.values,
        lists.lengths[kept],
        {where[row]: text for row, text in lists.faults.items() if row in where},
        {where[row]: text for row, text in lists.repairs.items() if row in where},
    )


def alike(sizes: NDArray[Any], wanted: int) -> Ints:
    """Numbers of `wanted` rows, rising: with the rows in the order of their sizes, every so many one."""
    order = np.argsort(sizes, kind="stable")
    picked = (np.arange(wanted, dtype=np.int64) * 2 + 1) * len(sizes) // (2 * wanted)
    return np.sort(order[picked])
