"""How far a run is, for those who watch it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from reflash.types import Turn

WINDOW_S = 60.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How far a run is at one moment."""

    rows: int  # conversations finished, those of earlier attempts included
    rows_all: int
    turns: int  # generated in this attempt
    output_tokens: int  # generated in this attempt
    tokens_per_s: float  # over the last minute
    seconds: float  # since generation began in this attempt
    seconds_left: float | None  # None where nothing is known yet

    @property
    def share(self) -> float:
        """Finished share of the conversations, 0 to 1."""
        return self.rows / self.rows_all if self.rows_all else 1.0


class Progress:
    """Counts what is finished. Written in the event loop, read from any thread."""

    def __init__(self, rows_all: int) -> None:
        self._rows_all = rows_all
        self._done: dict[str, int] = {}  # conversations by shard
        self._rows = self._turns = self._tokens = 0  # of this attempt
        self._start: float | None = None
        self._recent: deque[tuple[float, int]] = deque()

    def found(self, shard: str, rows: int) -> None:
        """Conversations of a shard that are finished as work on it begins, or begins again."""
        self._done[shard] = rows

    @property
    def began(self) -> float | None:
        """When the engines were ready, by the monotonic clock; None before."""
        return self._start

    def begin(self) -> None:
        """The engines are ready: time counts from here."""
        self._start = self._start or time.monotonic()

    def finished(self, shard: str, turns: Sequence[Turn]) -> None:
        """One conversation is finished."""
        now = time.monotonic()
        self._done[shard] = self._done.get(shard, 0) + 1
        tokens = sum(t.completion_tokens for t in turns)
        self._rows += 1
        self._turns += sum(1 for t in turns if t.output_ids or t.content)
        self._tokens += tokens
        self._recent.append((now, tokens))
        while self._recent[0][0] < now - WINDOW_S:
            self._recent.popleft()

    def snapshot(self) -> Snapshot:
        """How far it is now."""
        now = time.monotonic()
        seconds = now - self._start if self._start else 0.0
        recent = [tokens for when, tokens in list(self._recent) if when >= now - WINDOW_S]
        rate = sum(recent) / min(WINDOW_S, seconds) if seconds > 0 else 0.0
        done = sum(list(self._done.values()))
        per_row = self._tokens / self._rows if self._rows else 0.0
        return Snapshot(
            rows=done,
            rows_all=self._rows_all,
            turns=self._turns,
            output_tokens=self._tokens,
            tokens_per_s=rate,
            seconds=seconds,
            seconds_left=(self._rows_all - done) * per_row / rate if rate > 0 and per_row > 0 else None,
        )
