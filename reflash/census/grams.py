"""Texts as n-grams of words, hashed by the million: letters and digits count, case and all between them does not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reflash.census.hashes import Hashes, RunHasher, mixed

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

BREAK = b"\n"  # stands behind each text: no word goes on from one into the next


def _letters() -> Bytes:
    """What each byte counts as: 0 between words. Bytes of other scripts are letters, as they are."""
    table = np.arange(256, dtype=np.uint8)
    table[ord("A") : ord("Z") + 1] += 32
    plain = [byte for byte in range(128) if not chr(byte).isalnum()]
    table[plain] = 0
    return table


_LETTERS = _letters()
_IS_LETTER = _LETTERS > 0
_MIXED = mixed(_LETTERS)


class Words:
    """The words of some texts, hashed."""

    def __init__(self, hasher: RunHasher, text: Bytes, ends: Ints) -> None:
        """`text`: UTF-8 of all texts, a `BREAK` behind each. `ends`: where each ends, exclusive, behind its break."""
        self._hasher = hasher
        letter = _IS_LETTER.take(text)
        edges = np.flatnonzero(letter[1:] != letter[:-1]) + 1  # the last byte is a break
        if len(letter) and letter[0]:
            edges = np.concatenate([np.zeros(1, np.int64), edges])
        begin, end = edges[::2], edges[1::2]
        self.words = mixed(hasher.of_mixed(_MIXED.take(text), begin, end))
        self.counts = np.diff(np.searchsorted(begin, ends), prepend=0)  # words of each text
        self.owner = np.repeat(np.arange(len(ends)), self.counts)  # text of each word

    def grams(self, length: int) -> tuple[Hashes, Ints]:
        """Hashes of every run of so many words within one text, and the text of each."""
        count = len(self.words) - length + 1
        if count < 1:
            return np.zeros(0, np.uint64), np.zeros(0, np.int64)
        begin = np.flatnonzero(self.owner[:count] == self.owner[length - 1 :])
        return self._hasher.of_mixed(self.words.copy(), begin, begin + length), self.owner[begin]


def joined(texts: list[str]) -> tuple[Bytes, Ints]:
    """Texts as bytes with a break behind each, and where each ends."""
    parts = [text.encode("utf-8", "replace") + BREAK for text in texts]
    ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
    return np.frombuffer(b"".join(parts), np.uint8), ends
