"""Long conversations early, where their length can be guessed: then the end of a run is short."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from math import log2

from reflash.types import Planned, Turn

ENOUGH = 100  # answers of a kind before its mean says anything


class Lengths:
    """Output lengths seen so far, by what is known of a conversation before it is asked."""

    def __init__(self, *, regenerate_calls: bool = False) -> None:
        self._calls = regenerate_calls
        self._counts: dict[object, int] = defaultdict(int)
        self._tokens: dict[object, int] = defaultdict(int)

    def seen(self, planned: Planned, turns: Sequence[Turn]) -> None:
        """A conversation was answered."""
        made = [t for t in turns if t.output_ids]
        for kind in (_kind(planned), None):
            self._counts[kind] += len(made)
            self._tokens[kind] += sum(len(t.output_ids) for t in made)

    def guess(self, planned: Planned) -> float:
        """Tokens that a conversation's answers will have, each turn as others of its kind; 1 a turn at first."""
        turns = len(planned.conversation.turns(regenerate_calls=self._calls))
        for kind in (_kind(planned), None):
            if self._counts[kind] >= ENOUGH:
                return turns * max(1.0, self._tokens[kind] / self._counts[kind])
        return float(turns)

    def long_first(self, rows: Iterable[Planned]) -> deque[Planned]:
        """Rows by guessed length, the longest first; those within a factor of two keep their order."""
        todo = list(rows)
        if isinstance(rows, deque):
            rows.clear()  # each row is let go of when it is answered
        return deque(sorted(todo, key=lambda p: -round(log2(self.guess(p)))))


def _kind(planned: Planned) -> tuple[str, bool, int]:
    """Rows that may be alike: of one file, thinking or not, with prompts of a length."""
    return planned.origin.file, planned.thinking, len(planned.prompt_ids).bit_length()
