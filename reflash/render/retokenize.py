"""Whether emitted ids are those that their own text encodes to, for a whole shard at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from reflash.render.control import Encoder
from reflash.render.fast import NOWHERE, FastTokenizer, Runs, fast_tokenizer

log = logging.getLogger(__name__)

# Ids at a time; with their text they take some 30 MB. To decode them takes 25 ms, and up to 5 ms more until the
# interpreter's lock is back; to encode them takes 45 ms.
BLOCK = 2**21


class Retokenizer:
    """Decodes runs of ids and encodes them again, with the fast tokenizer where one loads. Safe to use from threads.

    A difference counts only where the reference tokenizer confirms it.
    """

    def __init__(self, encoder: Encoder, name: str) -> None:
        self._encoder = encoder
        self._name = name
        self._lock = threading.Lock()
        self._loaded = False  # at the first call: most processes never ask
        self._fast: FastTokenizer | None = None

    def canonical(self, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each run is what its own text encodes to; run i ends before `ids[ends[i]]`, none is empty.

        Runs hold no control ids and no negative ones. One that holds an id without a token is not.
        """
        begins = ends - np.diff(ends, prepend=0)
        with self._lock:
            same = np.ones(len(ends), np.bool_)
            for run, place in self._differing(ids, ends).items():
                same[run] = self._confirmed(ids[begins[run] : ends[run]], place)
        return same

    def _confirmed(self, run: NDArray[np.int32], place: int) -> bool:
        """Whether the reference finds a run canonical that seems to differ at a place.

        It is asked of the words around it, and of the whole run, which takes it much longer, only where it finds
        nothing in them.
        """
        if self._fast is not None and place != NOWHERE:
            begin, end = self._fast.piece(run, place)
            if not self._encoder.spells(run[begin:end].tolist()):
                return False
        return self._encoder.spells(run.tolist())

    def _differing(self, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> dict[int, int]:
        """Runs that the fast tokenizer finds to differ, and where; all of them where there is no such tokenizer."""
        if not self._loaded:
            self._fast, self._loaded = fast_tokenizer(self._encoder.plain, self._name), True
        if self._fast is None:
            return dict.fromkeys(range(len(ends)), NOWHERE)
        try:
            return _all_differing(self._fast, ids, ends)
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # what Rust raises where it gives up; no Exception
                raise
            log.warning("%s: gigatoken gave up (%s); the reference goes on alone", self._name, error)
            self._fast = None
            return dict.fromkeys(range(len(ends)), NOWHERE)


def _all_differing(fast: FastTokenizer, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> dict[int, int]:
    """Block by block; while one is encoded the next is decoded, which takes half as long, in a thread."""

    def decoded(first: int, last: int, begin: int) -> Runs:
        return fast.decoded(ids[begin : ends[last - 1]], ends[first:last] - begin)

    found: dict[int, int] = {}
    blocks = list(_blocks(ends))
    with ThreadPoolExecutor(1) as ahead:
        coming = [ahead.submit(decoded, *block) for block in blocks[:1]]
        for number, (first, *_) in enumerate(blocks, 1):
            runs = coming.pop().result()
            coming = [ahead.submit(decoded, *block) for block in blocks[number : number + 1]]
            found |= {first + run: place for run, place in fast.differing(runs).items()}
    return found


def _blocks(ends: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Runs first to last - 1, of about `BLOCK` ids together, and where the first begins."""
    first = begin = 0
    while first < len(ends):
        last = max(first + 1, int(np.searchsorted(ends, begin + BLOCK, side="right")))
        yield first, last, begin
        first, begin = last, int(ends[last - 1])
