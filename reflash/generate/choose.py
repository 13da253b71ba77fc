"""Which slice a node takes next."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

from reflash.ledger.claims import Slice, slices
from reflash.ledger.view import Claim, View
from reflash.types import Shard

Free = tuple[Slice, int]  # and the fence to take it by


def candidates(
    shards: Sequence[Shard], view: View, begun: Sequence[Shard], lapsed: Callable[[Claim], bool], rng: random.Random
) -> Iterator[Free]:
    """Free slices, the best first: of shards begun here, of those that nobody has begun, then of all others.

    Nodes that look at the same moment begin at shards of their own, so that few meet.
    """
    claimed = view.shards_claimed
    fresh = list(islice((s for s in shards if s.name not in claimed), 2 * len(view.nodes)))
    if len(view.nodes) - len(view.left) > 1:
        rng.shuffle(fresh)
    yield from chain.from_iterable(_free(each, view, lapsed) for each in (begun, fresh, shards))


def _free(shards: Iterable[Shard], view: View, lapsed: Callable[[Claim], bool]) -> Iterator[Free]:
    for shard in shards:
        if shard.name in view.committed:
            continue
        for one in slices(shard):
            claim = view.claims.get((shard.name, one.number))
            if claim is None:
                yield one, 1
            elif lapsed(claim):
                yield one, claim.fence + 1
