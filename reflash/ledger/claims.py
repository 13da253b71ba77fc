"""Who works on what: claims made by put-if-absent, which lapse by the store's own clock.

Correctness never rests on a claim: a shard is committed once, by conversation id, whoever answered. Claims keep nodes
from answering the same rows. Only three operations are used: put if absent, overwrite of one's own heartbeat, list.
(Claims of a committed shard are deleted, which nothing relies on.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from reflash.errors import AlreadyExists
from reflash.ledger import names
from reflash.ledger.view import Claim, View, read_claims, read_nodes
from reflash.store.objects import Store
from reflash.types import Shard

SLICES = 8  # of a shard at most: the last shards of a run are shared out so
LEAST = 32  # conversations in a slice


@dataclass(frozen=True, slots=True)
class Slice:
    """Neighbouring conversations of a shard: what one claim is on."""

    shard: str
    number: int
    start: int  # the first row, from 0
    end: int  # the row after the last


def slices(shard: Shard) -> list[Slice]:
    """A shard's slices, the same for every node."""
    count = max(1, min(SLICES, shard.rows // LEAST))
    edges = [shard.rows * n // count for n in range(count + 1)]
    return [Slice(shard.name, n, edges[n], edges[n + 1]) for n in range(count)]


class Claims:
    """A node's claims and heartbeat in a run's folder. Raises StoreError."""

    def __init__(
        self, store: Store, node: str, expiry_s: float, gone: Callable[[Mapping[str, Any]], bool] = lambda _facts: False
    ) -> None:
        """`gone` says of a heartbeat's facts whether its node is known to be dead, without waiting for the expiry."""
        self.node, self.expiry_s = node, expiry_s
        self._store, self._gone = store, gone
        self._owners: dict[tuple[str, int, int], str] = {}
        self._heard: dict[str, tuple[float, float]] = {}  # by node: its last heartbeat, and when we first saw that one
        self._judged: tuple[View, frozenset[str]] | None = None  # the last view, and who was dead in it
        self._told: dict[str, Mapping[str, Any]] = {}  # the first heartbeat read of each node

    def beat(self, facts: Mapping[str, Any]) -> None:
        """Say that this node lives, and what it does."""
        self._store.put(names.node(self.node), orjson.dumps({"node": self.node, **facts}), settle=False)

    def leave(self) -> None:
        """Say that it works no more: its claims lapse at once."""
        self._put_new(names.node_left(self.node), b"")

    def look(self) -> View:
        """Who lives, what is claimed, what is committed."""
        nodes, left = read_nodes(self._store.under(names.NODES))
        for node, at in nodes.items():
            if self._heard.get(node, (None, 0.0))[0] != at:
                self._heard[node] = at, time.monotonic()
        parts = frozenset(names.shard_of(found.name) for found in self._store.under(names.PARTS))
        return View(read_claims(self._store.under(names.CLAIMS)), nodes, left, parts)

    def of(self, shard: str) -> dict[tuple[str, int], Claim]:
        """The claims on a shard's slices, the latest of each."""
        return read_claims(self._store.under(names.claims(shard)))

    def take(self, taken: Slice, fence: int) -> bool:
        """Claim a slice; False where another node came first."""
        body = {"node": self.node, "rows": [taken.start, taken.end]}
        if not self._put_new(names.claim(taken.shard, taken.number, fence), orjson.dumps(body)):
            return False
        self._owners[taken.shard, taken.number, fence] = self.node
        return True

    def end(self, taken: Slice, fence: int, *, done: bool) -> None:
        """Say what became of a claim: all rows of the slice are safe, or others may take it at once."""
        name = names.claim_done if done else names.claim_left
        self._put_new(name(taken.shard, taken.number, fence), orjson.dumps({"node": self.node}))

    def drop(self, shard: str) -> None:
        """Take the claims on a committed shard away."""
        self._store.delete([found.name for found in self._store.under(names.claims(shard))])

    def lapsed(self, view: View, claim: Claim) -> bool:
        """Whether a claim of another node may be passed by the next fence: it was given up, or its node is dead."""
        if claim.outcome:
            return claim.outcome == "left"
        dead = self.dead(view)
        if not dead:
            return False  # so no claim is read while everybody lives
        owner = self._owner(claim)
        return owner != self.node and (owner in dead or owner not in view.nodes)

    def dead(self, view: View) -> frozenset[str]:
        """Nodes that have left, fell silent for longer than the expiry, or are known to be dead.

        Silent by the store's clock, as our own heartbeat tells it, and by ours: neither has to be right.
        """
        if self._judged is not None and self._judged[0] is view:
            return self._judged[1]
        since = time.monotonic() - self.expiry_s
        unheard = {node for node, (_, seen) in self._heard.items() if seen < since}
        silent = view.left | view.late(self.node, self.expiry_s) | unheard - {self.node}
        others = view.nodes.keys() - silent - {self.node}
        dead = silent | {node for node in others if self._gone(self.facts(node))}
        self._judged = (view, dead)
        return dead

    def facts(self, node: str) -> Mapping[str, Any]:
        """What a node said of itself in the first heartbeat that was read; nothing where there is none."""
        if node not in self._told:
            found = self.heartbeat(node)
            if not found:
                return {}
            self._told[node] = found
        return self._told[node]

    def heartbeat(self, node: str) -> dict[str, Any]:
        """What a node says of itself now; nothing where it cannot be read."""
        return _object(self._store.get(names.node(node)))

    def _owner(self, claim: Claim) -> str:
        key = (claim.shard, claim.slice, claim.fence)
        if key not in self._owners:
            told = _object(self._store.get(names.claim(*key)))
            self._owners[key] = str(told.get("node", ""))
        return self._owners[key]

    def _put_new(self, name: str, data: bytes) -> bool:
        try:
            self._store.put_new(name, data, settle=False)  # claims lost with the machine's power were its own
        except AlreadyExists:
            return False
        return True


def all_done(shard: Shard, claims: Mapping[tuple[str, int], Claim]) -> bool:
    """Whether every slice of a shard was ended as done."""
    return all(_done(claims.get((shard.name, one.number))) for one in slices(shard))


def holding(rows: Iterable[str], missing: set[str], shard: Shard) -> list[Slice]:
    """The slices in which missing conversations lie; `rows` are the shard's, in order."""
    at = [n for n, row in enumerate(rows) if row in missing]
    return [one for one in slices(shard) if any(one.start <= n < one.end for n in at)]


def _done(claim: Claim | None) -> bool:
    return claim is not None and claim.outcome == "done"


def _object(data: bytes | None) -> dict[str, Any]:
    try:
        found = orjson.loads(data or b"{}")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
