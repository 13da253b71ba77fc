"""Every answer of a shard decoded and encoded again: the model may choose ids that its own text would not give."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from reflash.render.base import Renderer


def canonical_outputs(outputs: Sequence[Sequence[int]], renderer: Renderer, control: frozenset[int]) -> list[bool]:
    """Whether each output, cut at its control ids, is what its text encodes to. Every id must be in the vocabulary."""
    flat = np.fromiter(chain.from_iterable(outputs), np.int32, sum(map(len, outputs)))
    lengths = np.fromiter(map(len, outputs), np.int64, len(outputs))
    ids, ends, owners = plain_runs(flat, lengths, control, renderer.vocabulary)
    whole = np.ones(len(outputs), np.bool_)
    if len(ends):
        whole[owners[~renderer.canonical(ids, ends)]] = False
    return whole.tolist()


def plain_runs(
    flat: NDArray[np.int32], lengths: NDArray[np.int64], control: frozenset[int], vocabulary: int
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Outputs, one behind the other, cut at their ends and at control ids: ids left, where runs end, whose they are."""
    is_control = np.zeros(vocabulary, np.bool_)
    is_control[[i for i in control if i < vocabulary]] = True
    plain = ~is_control[flat]
    cut = np.zeros(len(flat) + 1, np.bool_)  # whether a run may begin here
    cut[np.cumsum(lengths) - lengths] = True
    cut[1:] |= ~plain
    begins = np.flatnonzero(cut[:-1] & plain)
    places: NDArray[np.int64] = np.cumsum(plain) - plain  # where each id lies once control ids are out
    ids = flat[plain]
    ends = np.append(places[begins][1:], len(ids)) if len(begins) else np.empty(0, np.int64)
    owners = np.searchsorted(np.cumsum(lengths), begins, side="right")
    return ids, ends, owners
