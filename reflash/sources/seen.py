"""A set of 64-bit hashes for tens of millions of rows: 8 bytes each, where Python's own set takes 60 and more."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
_FRESH = 1 << 16  # hashes kept as Python integers before they are sorted into an array
_LONGEST = 1 << 22  # no run grows beyond this: merging two takes room beside them
_RATIO = 4


def hash64(text: str) -> int:
    """A hash of 64 bits that is the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")


class SeenHashes:
    """Sorted runs, merged as they grow (a log-structured merge), and a small set of the newest."""

    def __init__(self) -> None:
        self._fresh: set[int] = set()
        self._runs: list[Hashes] = []

    def __len__(self) -> int:
        return len(self._fresh) + sum(len(run) for run in self._runs)

    def contains_many(self, hashes: list[int]) -> list[bool]:
        """Which of some hashes are there."""
        keys = np.array(hashes, dtype=np.uint64)
        found = np.zeros(len(keys), dtype=bool)
        for run in self._runs:
            at = np.minimum(np.searchsorted(run, keys), len(run) - 1)
            found |= run[at] == keys
        fresh = self._fresh
        return [old or key in fresh for old, key in zip(found.tolist(), hashes, strict=True)]

    def __contains__(self, key: int) -> bool:
        return self.contains_many([key])[0]

    def add(self, key: int) -> None:
        """Add one hash that is not there yet."""
        self._fresh.add(key)
        if len(self._fresh) >= _FRESH:
            self._settle()

    def _settle(self) -> None:
        self._runs.append(np.sort(np.fromiter(self._fresh, dtype=np.uint64, count=len(self._fresh))))
        self._fresh.clear()
        while len(self._runs) > 1:
            older, newer = self._runs[-2:]
            if len(older) > _RATIO * len(newer) or len(older) + len(newer) > _LONGEST:
                return
            merged = np.concatenate((older, newer))
            merged.sort(kind="stable")  # two sorted runs: timsort-like merging in one pass
            self._runs[-2:] = [merged]
