"""Tokens over time by engine: the rate of now, and the whole course in few figures."""

from __future__ import annotations

from collections import deque

WINDOW_S = 60.0
BIN_S = 10.0  # the first width of a bin; it doubles, so that a run of days costs no more than one of an hour
BINS = 360


class Rates:
    """Tokens of finished answers, and what engines say of themselves. Seconds count from engines ready on."""

    def __init__(self) -> None:
        self.bin_s = BIN_S
        self._bins: dict[str, list[int]] = {}  # tokens by engine
        self._recent: dict[str, deque[tuple[float, int]]] = {}  # when, tokens
        self._counters: dict[str, deque[tuple[float, int]]] = {}  # when, tokens since the engine's start

    def add(self, engine: str, tokens: int, seconds: float) -> None:
        """An answer of so many tokens ended."""
        while seconds >= BINS * self.bin_s:
            self._widen()
        bins = self._bins.setdefault(engine, [])
        place = int(max(0.0, seconds) / self.bin_s)
        bins += [0] * (place + 1 - len(bins))
        bins[place] += tokens
        _keep(self._recent.setdefault(engine, deque()), seconds, tokens)

    def counted(self, engine: str, generated: int, seconds: float) -> None:
        """What an engine says it has generated since its own start; fewer than before: it was started anew."""
        seen = self._counters.setdefault(engine, deque())
        if seen and generated < seen[-1][1]:
            seen.clear()
        _keep(seen, seconds, generated)

    def now(self, engine: str, seconds: float) -> float:
        """Tokens a second in the last minute: as the engine counts them, else those of answers that have ended.

        The engine's own count holds what is still under way, too: early in a run nothing else does.
        """
        since = seconds - WINDOW_S
        counts = [(when, count) for when, count in list(self._counters.get(engine, ())) if when >= since]
        if len(counts) > 1 and counts[-1][0] > counts[0][0]:
            return (counts[-1][1] - counts[0][1]) / (counts[-1][0] - counts[0][0])
        ended = sum(tokens for when, tokens in list(self._recent.get(engine, ())) if when >= since)
        return ended / min(WINDOW_S, seconds) if seconds > 0 else 0.0

    def course(self) -> dict[str, list[float]]:
        """Tokens a second by engine, in bins of `bin_s` from the start; the last bin is only begun, and left out."""
        whole = max((len(bins) for bins in list(self._bins.values())), default=1) - 1
        return {
            engine: [tokens / self.bin_s for tokens in [*bins, *[0] * whole][:whole]]
            for engine, bins in sorted(self._bins.copy().items())
        }

    def _widen(self) -> None:
        self.bin_s *= 2
        for engine, bins in self._bins.items():
            self._bins[engine] = [sum(bins[at : at + 2]) for at in range(0, len(bins), 2)]


def _keep(recent: deque[tuple[float, int]], seconds: float, figure: int) -> None:
    recent.append((seconds, figure))
    while recent[0][0] < seconds - WINDOW_S:
        recent.popleft()
