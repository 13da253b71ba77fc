"""Hashes of runs of token ids: equal runs have equal hashes, wherever they stand. No loop over runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

_BASE = 0x9E3779B97F4A7C15  # odd, so that it can be divided by in 64-bit arithmetic
_INVERSE = pow(_BASE, -1, 2**64)
_MIX, _LENGTH = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_ROOM = 1 << 16  # positions that a table begins with


class RunHasher:
    """A polynomial over the ids of a run, modulo 2**64: one running sum serves every run of a batch."""

    def __init__(self) -> None:
        self._powers = self._inverses = np.ones(0, np.uint64)

    def hashes(self, ids: NDArray[Any], begin: NDArray[np.int64], end: NDArray[np.int64]) -> Hashes:
        """Hashes of `ids[begin:end]` for each pair; `end` is exclusive."""
        self._grow(len(ids) + 1)
        mixed = ids.astype(np.uint64)
        mixed += np.uint64(1)
        mixed *= _MIX
        mixed ^= mixed >> np.uint64(32)
        mixed *= self._powers[: len(ids)]
        sums = np.zeros(len(ids) + 1, np.uint64)
        np.cumsum(mixed, out=sums[1:])
        found: Hashes = (sums[end] - sums[begin]) * self._inverses[begin]
        return found ^ ((end - begin).astype(np.uint64) * _LENGTH)

    def _grow(self, size: int) -> None:
        if size <= len(self._powers):
            return
        room = max(_ROOM, 1 << (size - 1).bit_length())
        self._powers, self._inverses = _powers(_BASE, room), _powers(_INVERSE, room)


def _powers(base: int, count: int) -> Hashes:
    """1, base, base**2, ... modulo 2**64."""
    found = np.full(count, base, np.uint64)
    found[0] = 1
    return np.cumprod(found, dtype=np.uint64)
