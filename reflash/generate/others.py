"""What other nodes tell of themselves, counted with what is done here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from reflash.generate.progress import Progress
from reflash.ledger.claims import Claims
from reflash.ledger.view import View


class Others:
    """The heartbeats of a run's other nodes. It may take its time: called in threads."""

    def __init__(self, claims: Claims, progress: Progress) -> None:
        self._claims, self._progress = claims, progress
        self._heard: dict[str, tuple[float, int, int]] = {}  # by node: when it spoke, turns and tokens until then
        self._rows: dict[str, dict[str, int]] = defaultdict(dict)  # by shard and node: conversations finished

    def hear(self, view: View) -> None:
        """Read what is new. What a node did before it was first heard is counted as of an earlier attempt."""
        for node, at in view.nodes.items():
            if node == self._claims.node or at == self._heard.get(node, (0.0, 0, 0))[0]:
                continue
            told = self._claims.heartbeat(node)
            turns, tokens = _count(told, "turns"), _count(told, "output_tokens")
            if node not in self._heard and node in self._claims.dead(view):
                self._heard[node] = (at, turns, tokens)
                continue
            _, turns_before, tokens_before = self._heard.get(node, (0.0, 0, 0))
            self._heard[node] = (at, turns, tokens)
            self._progress.elsewhere(node, turns - turns_before, tokens - tokens_before)
            self._count_rows(node, told.get("rows"))

    def _count_rows(self, node: str, rows: object) -> None:
        for shard, count in rows.items() if isinstance(rows, dict) else ():
            if isinstance(count, int):
                self._rows[shard][node] = count
                self._progress.reached(shard, sum(self._rows[shard].values()))


def _count(told: Mapping[str, Any], key: str) -> int:
    found = told.get(key)
    return found if isinstance(found, int) else 0
