"""Of each row why it is not fit, of each kind of fault how many rows have it, and some of them to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Shown = tuple[int, ...] | str  # token ids, or text

EXAMPLES = 5  # of each kind
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
        if len(self.pieces) != 1:
            self.pieces = [np.concatenate([np.zeros(0, self.kind), *self.pieces])]
        return self.pieces[0]


class Marks:
    """Rows come by batches: `begin`, what is wrong with some of them (the gravest last), `end`."""

    def __init__(self) -> None:
        self.positions = Columns(np.int64)  # in the set, 0-based, of the rows looked at
        self.why = Columns(np.uint16)  # of each: the number of the kind for which it is made again, 0 for none
        self.kinds = {"": 0}  # each kind's number
        self.found: Counter[str] = Counter()  # rows of each kind; one may be of several
        self.examples: dict[str, list[tuple[int, str]]] = {}  # 0-based position, words of its own
        self.shown: dict[int, tuple[Shown, Shown]] = {}  # of some positions: what was asked and said
        self.rows = 0
        self._at: Ints = np.zeros(0, np.int64)
        self._why: NDArray[np.uint16] = np.zeros(0, np.uint16)
        self._fresh: set[int] = set()

    def begin(self, positions: Ints) -> None:
        """The rows that come next."""
        self._at, self._why, self._fresh = positions, np.zeros(len(positions), np.uint16), set()

    def rows_of(self, kind: str, where: Ints) -> None:
        """Rows (indices into the batch) of one kind."""
        if not len(where):
            return
        self._why[where] = self.code(kind)
        self.found[kind] += len(where)
        for row in where[:EXAMPLES].tolist():
            self._example(kind, row, "")

    def said(self, reasons: Iterable[tuple[int, str]], *, again: bool = True) -> None:
        """Rows that have words of their own; to be made `again`, or not since nothing can be made of them."""
        for row, text in reasons:
            kind = kind_of(text)
            if again:
                self._why[row] = self.code(kind)
            self.found[kind] += 1
            self._example(kind, row, text)

    def _example(self, kind: str, row: int, text: str) -> None:
        kept = self.examples.setdefault(kind, [])
        if len(kept) < EXAMPLES:
            kept.append((int(self._at[row]), text))
            self._fresh.add(row)

    def fresh(self) -> list[int]:
        """Rows of the batch that became examples: their text is worth showing."""
        return sorted(self._fresh)

    def show(self, row: int, asked: Shown, said: Shown) -> None:
        """The text of one of those."""
        self.shown[int(self._at[row])] = asked, said

    def end(self) -> NDArray[np.uint16]:
        """The batch is done; of each row the number of its kind."""
        self.positions.add(self._at)
        self.why.add(self._why)
        self.rows += len(self._at)
        return self._why

    def late(self, kind: str, rows: Ints) -> None:
        """Rows, by their number among those looked at, of a kind that only the whole set shows."""
        self.found[kind] = len(rows)
        positions = self.positions.whole()[rows]
        self.examples[kind] = [(int(at), "") for at in positions[:EXAMPLES]]
        self.why.whole()[rows] = self.code(kind)

    def code(self, kind: str) -> int:
        """A kind's number; those beyond the last number share it."""
        return self.kinds.setdefault(kind, min(len(self.kinds), _LAST))


def kind_of(reason: str) -> str:
    """A fault without the numbers of its row."""
    if reason.startswith("token id"):
        return "ids out of range"
    return reason.partition(":")[0].partition(" (")[0]
