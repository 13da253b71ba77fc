"""Which answers occur again and again: that names a placeholder without being told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from reflash.census.hashes import Hashes
from reflash.census.marks import Columns, Shown

_KEPT = 8  # answers of a batch that may turn out to be frequent ...
_MOST = 20_000  # ... and so many in all
_DRESS = 32  # characters around a placeholder's letters

Kept = tuple[int, Shown]  # length, and the answer or its beginning


class Answers:
    """Every answer's hash, and the text of those that were met often in some batch."""

    def __init__(self) -> None:
        self.hashes = Columns(np.uint64)
        self.kept: dict[int, Kept] = {}

    def add(self, hashes: Hashes, answer: Callable[[int], Kept]) -> None:
        """A batch's answers; `answer` gives one by its place in the batch."""
        self.hashes.add(hashes)
        for key, at in often(hashes):
            if key not in self.kept and len(self.kept) < _MOST:
                self.kept[key] = answer(at)

    def extend(self, hashes: Hashes, kept: Sequence[tuple[int, Kept]]) -> None:
        """The same where another process chose the texts."""
        self.hashes.add(hashes)
        for key, answer in kept:
            if len(self.kept) < _MOST:
                self.kept.setdefault(key, answer)

    def frequent(self, most: int) -> tuple[list[tuple[int, Kept]], int]:
        """Times and text of those that occur most often, more than once; and how many different ones there are."""
        values, counts = np.unique(self.hashes.whole(), return_counts=True)
        found = []
        for at in np.argsort(-counts, kind="stable")[:most].tolist():
            kept = self.kept.get(int(values[at]))
            if counts[at] > 1 and kept is not None:
                found.append((int(counts[at]), kept))
        return found, len(values)


def often(hashes: Hashes) -> list[tuple[int, int]]:
    """The hashes that occur most often, each with the first place where it stands."""
    values, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    return [(int(values[at]), int(first[at])) for at in np.argsort(-counts, kind="stable")[:_KEPT].tolist()]


class Placeholders:
    """Answers that say nothing, whatever they are dressed in: `**OK!**` is `ok`, but `Na` is not `n/a`."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = {_core(word) for word in words} - {""}
        self._longest = max(map(len, words), default=0) + _DRESS

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and len(text) <= self._longest and _core(text) in self._words


def _core(text: str) -> str:
    """Text from its first letter or digit to its last, without case."""
    folded = text.casefold()
    shown = [place for place, character in enumerate(folded) if character.isalnum()]
    return folded[shown[0] : shown[-1] + 1] if shown else ""
