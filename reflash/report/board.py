"""What the stages tell of each shard, for those who watch: written from any thread, read from any."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from reflash.publish.summary import ShardSummary, add_up
from reflash.types import Shard


class Board:
    """The shards of a plan, those that are through, and those that failed."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = list(shards)
        self._lock = threading.Lock()
        self._done: dict[str, ShardSummary] = {}
        self._failed: set[str] = set()
        self._total = ShardSummary()

    def published(self, summary: ShardSummary) -> None:
        """A shard is through all stages."""
        with self._lock:
            for name in summary.shards:
                self._done[name] = summary
                self._failed.discard(name)
            self._total = add_up((self._total, summary))

    def gave_up(self, shards: Sequence[Shard]) -> None:
        """Work on these is over; those of them that are not through have failed."""
        with self._lock:
            self._failed.update(shard.name for shard in shards if shard.name not in self._done)

    @property
    def total(self) -> ShardSummary:
        """All that is through, added up."""
        return self._total

    @property
    def done(self) -> dict[str, ShardSummary]:
        """The shards that are through, by name."""
        with self._lock:
            return dict(self._done)

    @property
    def failed(self) -> set[str]:
        """Names of the shards that were given up."""
        with self._lock:
            return set(self._failed)

    @property
    def missing(self) -> list[Shard]:
        """The shards that are not through, in the order of the plan."""
        done = self.done
        return [shard for shard in self.shards if shard.name not in done]

    @property
    def summaries(self) -> list[ShardSummary]:
        """Those that are through, in the order of the plan."""
        done = self.done
        return [done[shard.name] for shard in self.shards if shard.name in done]
