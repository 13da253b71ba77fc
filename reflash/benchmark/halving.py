"""Successive halving: all points for a short time, the better half for longer, until one is left or time is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, hypot, log2

from reflash.benchmark.outcome import Outcome
from reflash.benchmark.points import Point

LEAST_S = 10.0  # of one point in one round: less says nothing
MOST_S = 300.0
SURE = 2.0  # standard errors by which a point must be behind to be dropped before its half
START_GUESS_S = 5.0  # of a server, until one has been started
KEPT = 0.98  # of the budget is given out: engines take a while to end, too
SLACK = 1.25  # over the last start of a server: no two take the same time

# Launches what the first of these points needs and measures each for so many seconds.
Probe = Callable[[Sequence[Point], int, float], list[Outcome]]


@dataclass(slots=True)
class Sweep:
    """Points under comparison, and what was found so far."""

    points: Sequence[Point]
    budget_s: float
    probe: Probe
    clock: Callable[[], float]
    outcomes: list[Outcome] = field(default_factory=list)
    _began: float = 0.0
    _starts: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)

    def run(self) -> list[Outcome]:
        """Every outcome, round by round; a point that there was no time for has one too."""
        self._began = self.clock()
        alive, rounds = list(self.points), max(1, ceil(log2(max(2, len(self.points)))))
        for number in range(rounds):
            seconds = self._seconds(alive, rounds - number)
            if number and seconds < LEAST_S:
                break
            round_at = len(self.outcomes)
            for group in _groups(alive):
                self._measure(group, number, seconds)
            alive = survivors(self.outcomes[round_at:])
            if len(alive) < 2:
                break
        return self.outcomes

    def _measure(self, group: list[Point], number: int, seconds: float) -> None:
        fits = int((self._left() - self._start_s(group[0])) / max(seconds, LEAST_S))
        now = group[: max(fits, 0 if self.outcomes else 1)]  # a budget too small for anything still gives one rate
        if now:
            found = self.probe(now, number, seconds)
            if launched := max((o.launch_s for o in found), default=0.0):
                self._starts[group[0].launch] = launched
            self.outcomes += found
        late = group[len(now) :]
        self.outcomes += [Outcome(p, number, "not reached", "the time was over before its turn") for p in late]

    def _seconds(self, alive: Sequence[Point], rounds_left: int) -> float:
        """Seconds for each point in this round: an even share of what is left, less the starts of servers.

        Where starts would take up the share, there will be fewer rounds.
        """
        starts = sum(self._start_s(group[0]) for group in _groups(alive))
        for rounds in range(rounds_left, 0, -1):
            seconds = (self._left() / rounds - starts) / max(1, len(alive))
            if seconds >= LEAST_S:
                break
        return min(MOST_S, seconds)

    def _start_s(self, point: Point) -> float:
        """Seconds that a server of this point takes to start: as it did, or as others did."""
        known = self._starts.get(point.launch)
        seen = self._starts.values()
        return SLACK * (known if known is not None else sum(seen) / len(seen) if seen else START_GUESS_S)

    def _left(self) -> float:
        return KEPT * self.budget_s - (self.clock() - self._began)


def survivors(found: Sequence[Outcome]) -> list[Point]:
    """The better half, and of the others the best ones as far as they cannot be told apart from it, a half at most."""
    ranked = sorted((o for o in found if o.ok), key=lambda o: -o.tokens_per_s)
    if len(ranked) < 2:
        return [o.point for o in ranked]
    half = ceil(len(ranked) / 2)
    last = ranked[half - 1]
    close = [o for o in ranked[half:] if last.tokens_per_s - o.tokens_per_s < SURE * hypot(last.error, o.error)]
    kept = ranked[: half + min(len(close), (len(ranked) - half) // 2)]
    return [o.point for o in kept]


def best(outcomes: Sequence[Outcome]) -> Outcome | None:
    """The fastest point of those that came as far as any, by all its rounds together; its last outcome."""
    measured = [o for o in outcomes if o.ok]
    if not measured:
        return None
    last = max(o.round for o in measured)
    return max((o for o in measured if o.round == last), key=lambda o: _pooled(o.point, measured))


def _pooled(point: Point, measured: Sequence[Outcome]) -> float:
    """The rate over all rounds: each counts by its windows."""
    own = [o for o in measured if o.point == point]
    return sum(o.tokens_per_s * max(1, o.windows) for o in own) / sum(max(1, o.windows) for o in own)


def _groups(points: Sequence[Point]) -> Iterator[list[Point]]:
    """Points that share a launch, in the order of the first of each; the widest first within one."""
    launches: dict[tuple[tuple[str, str], ...], list[Point]] = {}
    for one in points:
        launches.setdefault(one.launch, []).append(one)
    yield from launches.values()
