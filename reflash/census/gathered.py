"""What either kind of set leaves behind once all of it was looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from reflash.census.answers import Answers
from reflash.census.items import Benchmark, Finder
from reflash.census.marks import EXAMPLES, Columns, Ints, Marks

Kind = Literal["tokenized", "conversations"]
Unit = Literal["tokens", "characters"]


def _int32() -> Columns:
    return Columns(np.int32)


class ItemsMet:
    """Benchmark items that stand in prompts, and the rows that hold them."""

    def __init__(self, finder: Finder | None) -> None:
        self.finder = finder
        self.rows = Columns(np.int64)  # 0-based positions of rows that hold an item
        self._items = np.zeros(finder.items.size if finder else 0, bool)
        self._rows = np.zeros(len(finder.items.benchmarks) if finder else 0, np.int64)
        self._examples: dict[int, list[int]] = {}

    def take(self, positions: Ints, items: Ints) -> None:
        """Pairs of a row's position and an item's number, of one batch."""
        if self.finder is None or not len(items):
            return
        self._items[items] = True
        self.rows.add(np.unique(positions))
        pairs = np.unique(np.stack([self.finder.benchmark(items), positions]), axis=1)
        self._rows += np.bincount(pairs[0], minlength=len(self._rows))
        for benchmark in np.unique(pairs[0]).tolist():
            kept = self._examples.setdefault(benchmark, [])
            kept += pairs[1][pairs[0] == benchmark][: EXAMPLES - len(kept)].tolist()

    def by_benchmark(self) -> list[tuple[Benchmark, int, int, tuple[int, ...]]]:
        """Each benchmark with its items met, the rows that hold some, and 1-based positions of a few."""
        if self.finder is None:
            return []
        benchmarks = self.finder.items.benchmarks
        number = self.finder.benchmark(np.flatnonzero(self._items))
        met = np.bincount(number, minlength=len(benchmarks))
        return [
            (one, int(met[n]), int(self._rows[n]), tuple(at + 1 for at in self._examples.get(n, ())))
            for n, one in enumerate(benchmarks)
        ]


@dataclass(slots=True)
class Gathered:
    """Figures by rows and by answers; a column has a value for each row that could be measured."""

    kind: Kind
    unit: Unit
    met: ItemsMet
    marks: Marks = field(default_factory=Marks)
    answers: Answers = field(default_factory=Answers)
    measured: Columns = field(default_factory=_int32)  # numbers of those rows among all that were looked at
    sums: Columns = field(default_factory=_int32)  # supervised tokens; of conversations the length of the answers
    lengths: Columns = field(default_factory=_int32)
    prompts: Columns = field(default_factory=_int32)  # what stands before the first answer
    prompt_hashes: Columns = field(default_factory=lambda: Columns(np.uint64))
    names: list[Any] = field(default_factory=list)  # Arrow arrays of text: own ids of the rows to be made again
    rejected: int = 0  # rows of which nothing can be made
    empty_rows: int = 0
    blank: int = 0  # answers with nothing in them
    placeholders: int = 0
    thoughts: int | None = None  # answers that were thought about
    thoughts_open: int | None = None
    family: str | None = None
    notes: tuple[str, ...] = ()
