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
        return self.of_mixed(mixed(ids), begin, end)

    def of_mixed(self, found: Hashes, begin: NDArray[np.int64], end: NDArray[np.int64]) -> Hashes:
        """The same of ids that are `mixed` already; they are overwritten."""
        self._grow(len(found) + 1)
        found *= self._powers[: len(found)]
        sums = np.zeros(len(found) + 1, np.uint64)
        np.cumsum(found, out=sums[1:])
        runs: Hashes = (sums[end] - sums[begin]) * self._inverses[begin]
        return runs ^ ((end - begin).astype(np.uint64) * _LENGTH)

    def _grow(self, size: int) -> None:
        if size <= len(self._powers):
            return
        room = max(_ROOM, 1 << (size - 1).bit_length())
        self._powers, self._inverses = _powers(_BASE, room), _powers(_INVERSE, room)


def mixed(ids: NDArray[Any]) -> Hashes:
    """Ids as numbers whose every bit depends on them."""
    found = ids.astype(np.uint64)
    found += np.uint64(1)
    found *= _MIX
    found ^= found >> np.uint64(32)
    return found


def _powers(base: int, count: int) -> Hashes:
    """1, base, base**2, ... modulo 2**64."""
    found = np.full(count, base, np.uint64)
    found[0] = 1
    return np.cumprod(found, dtype=np.uint64)
