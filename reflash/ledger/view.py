"""What listings of a run's folder say of its claims and nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from reflash.ledger import names
from reflash.store.objects import Found

Outcome = Literal["", "done", "left"]
_CLAIM = re.compile(rf"{names.CLAIMS}/(\w+)/(\d+)\.(\d+)(?:\.(done|left))?", re.ASCII)
_NODE = re.compile(rf"{names.NODES}/(.+)\.(json|left)", re.ASCII)
_OUTCOMES: dict[str | None, Outcome] = {None: "", "done": "done", "left": "left"}
_ORDER: dict[Outcome, int] = {"": 0, "left": 1, "done": 2}


@dataclass(frozen=True, slots=True)
class Claim:
    """The latest claim on a slice, and what became of it: "" it holds, "done", "left" to others."""

    shard: str
    slice: int
    fence: int
    outcome: Outcome = ""


@dataclass(frozen=True, slots=True)
class View:
    """A run's folder at one moment."""

    claims: dict[tuple[str, int], Claim]  # the latest of each slice
    nodes: dict[str, float]  # when each last said that it lives, by the store's clock, Unix time
    left: frozenset[str]  # nodes that work no more
    committed: frozenset[str]  # shards

    def late(self, node: str, expiry_s: float) -> frozenset[str]:
        """Nodes last heard of so long before `node` was, or before the last of all where that one never was."""
        now = self.nodes.get(node) or max(self.nodes.values(), default=0.0)
        return frozenset(each for each, at in self.nodes.items() if at < now - expiry_s)

    @property
    def shards_claimed(self) -> frozenset[str]:
        """Shards on which there is a claim."""
        return frozenset(shard for shard, _ in list(self.claims))  # claims come in from threads


def read_claims(found: Iterable[Found]) -> dict[tuple[str, int], Claim]:
    """The latest claim on each slice; other objects are passed over."""
    latest: dict[tuple[str, int], Claim] = {}
    for each in found:
        if match := _CLAIM.fullmatch(each.name):
            claim = Claim(match[1], int(match[2]), int(match[3]), _OUTCOMES[match[4]])
            key = (claim.shard, claim.slice)
            before = latest.get(key)
            if before is None or _rank(claim) > _rank(before):
                latest[key] = claim
    return latest


def read_nodes(found: Iterable[Found]) -> tuple[dict[str, float], frozenset[str]]:
    """When each node last said that it lives, and who has left."""
    nodes: dict[str, float] = {}
    left: set[str] = set()
    for each in found:
        if match := _NODE.fullmatch(each.name):
            if match[2] == "json":
                nodes[match[1]] = each.modified
            else:
                left.add(match[1])
    return nodes, frozenset(left)


def _rank(claim: Claim) -> tuple[int, int]:
    return claim.fence, _ORDER[claim.outcome]
