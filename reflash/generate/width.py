"""How many requests an engine holds, learned from its own figures. Pure: no clock, no connection."""

from __future__ import annotations

from dataclasses import dataclass

from reflash.engines.load import Load

QUEUED = 3  # looks in a row at a full queue, before fewer are sent: a burst of prompts is no lasting queue
SHRINK = 0.9  # of the width, when requests were thrown out of the batch
GROW = 0.125  # of the width, when all of them run and nothing waits


@dataclass(slots=True)
class Width:
    """The number of requests to have in flight at one engine: `most` at the start and at most."""

    most: int
    now: int = 0
    _queued: int = 0
    _preempted: int = 0

    def __post_init__(self) -> None:
        self.now = self.now or self.most

    def see(self, load: Load) -> int:
        """The width after a look: down to what runs where a queue lasts, down where requests are thrown out, else up.

        A few are left to wait in the engine's own queue, so that a place that falls free there is taken at once.
        """
        running, waiting, preempted = load.running or 0, load.waiting or 0, load.preempted or 0
        slack = max(2, running // 16)
        self._queued = self._queued + 1 if waiting > slack and running else 0
        if preempted > self._preempted:
            self.now = max(1, int(self.now * SHRINK))
        elif self._queued >= QUEUED:
            self.now, self._queued = min(self.now, running + slack), 0
        elif not waiting and running >= self.now * SHRINK:
            self.now = min(self.most, self.now + max(1, int(self.now * GROW)))
        self._preempted = preempted
        return self.now
