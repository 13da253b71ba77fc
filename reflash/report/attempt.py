"""One attempt at a run in figures: what its engines did while they were open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from reflash.engines.base import Engine
from reflash.generate.progress import Snapshot


@dataclass(frozen=True, slots=True)
class Attempt:
    """What this attempt generated; nothing where all was there already."""

    turns: int
    output_tokens: int
    seconds: float  # with engines ready
    engines: tuple[str, ...]  # engine and version, without addresses: this goes into the dataset card

    @property
    def tokens_per_s(self) -> float | None:
        """Output tokens a second over the whole attempt, None where it generated nothing."""
        return self.output_tokens / self.seconds if self.output_tokens and self.seconds else None


def attempt_of(snapshot: Snapshot, engines: Sequence[Engine]) -> Attempt:
    """The attempt that a last snapshot and its engines tell of."""
    names = tuple(f"{count} × {version}" for version, count in Counter(e.version or "unknown" for e in engines).items())
    return Attempt(snapshot.turns, snapshot.output_tokens, snapshot.seconds, names)
