"""What this process asks of the C library's allocator."""

from __future__ import annotations

import ctypes

M_ARENA_MAX = -8  # glibc's malloc.h
ARENAS = 2


def few_arenas() -> None:
    """Let threads share two heaps, where the C library is glibc: a heap a thread keeps what that thread once freed.

    With threads that come and go over tables, a run of many shards else grows by some hundred MiB that nobody uses.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, ARENAS)
