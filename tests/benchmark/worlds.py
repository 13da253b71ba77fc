"""Worlds whose truth is known: what each point makes, what it cannot, how long answers are. Time is simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from reflash.benchmark.halving import Sweep
from reflash.benchmark.outcome import Outcome
from reflash.benchmark.points import Point, point
from reflash.forecast.lengths import Floats
from reflash.forecast.outlook import Rate
from reflash.forecast.queue import Pace, Requests, finish_s
from reflash.forecast.sample import Sample, SeenRow

WINDOW_S = 2.5
ROWS, PILOT = 100_000, 1_000


@dataclass
class SpeedWorld:
    """Engines and layouts with a true rate each. Some do not start, some die under work."""

    seed: int
    now: float = 0.0
    launches: int = 0
    points: list[Point] = field(default_factory=list)
    true: dict[Point, float] = field(default_factory=dict)
    cannot: dict[Point, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chance = np.random.default_rng(self.seed)
        self._chance = chance
        self._start = {kind: chance.uniform(20, 120) for kind in ("vllm", "sglang")}
        held = int(chance.choice([48, 96, 200, 400]))  # sequences that the memory holds
        for kind in ("vllm", "sglang"):
            speed = chance.lognormal(0, 0.25)
            for cache in ("auto", "fp8"):
                room = held * (2 if cache == "fp8" else 1)
                factor = speed * (1.0 if cache == "auto" else chance.uniform(0.7, 1.15))
                for width in (64, 128, 256, 512):
                    thrown = 1.0 if width <= room else 0.94  # requests thrown out of the batch are made twice
                    rate = min(width, room) / (0.02 + 8e-5 * min(width, room))
                    self._add(kind, cache, width, rate * factor * thrown)
        self.points.insert(0, self.points.pop(self.points.index(point({"kind": "vllm", "kv": "auto", "width": 256}))))

    def _add(self, kind: str, cache: str, width: int, rate: float) -> None:
        one = point({"kind": kind, "kv": cache, "width": width})
        self.points.append(one)
        fate = self._chance.random()
        if fate < 0.1:
            self.cannot[one] = "did not start" if fate < 0.06 else "broke"
        else:
            self.true[one] = rate * self._chance.uniform(0.97, 1.03)

    def clock(self) -> float:
        """Seconds that the sweep has taken so far."""
        return self.now

    def probe(self, points: Sequence[Point], number: int, seconds: float) -> list[Outcome]:
        """One launch, each point measured with the noise of its windows, which ran 3 % apart."""
        start = self._start[dict(points[0].settings)["kind"]] * self._chance.uniform(0.9, 1.2)
        self.now += start
        self.launches += 1
        found = []
        for one in points:
            if one in self.cannot:
                self.now += 5.0
                found.append(Outcome(one, number, self.cannot[one], "out of memory", launch_s=start))  # type: ignore[arg-type]
                continue
            self.now += seconds
            windows = max(2, int(seconds / WINDOW_S))
            seen = self.true[one] * (1 + 0.03 * self._chance.standard_normal(windows))
            spread = float(seen.std(ddof=1) / seen.mean() / np.sqrt(windows))
            found.append(Outcome(one, number, "measured", "", float(seen.mean()), spread, windows, seconds, start))
        return found

    def sweep(self, minutes: float) -> list[Outcome]:
        """All points compared within so many minutes."""
        return Sweep(self.points, 60 * minutes, self.probe, self.clock).run()

    @property
    def best(self) -> Point:
        """The fastest in truth."""
        return max(self.true, key=lambda p: self.true[p])


@dataclass
class LengthWorld:
    """A set of rows with heavy-tailed answers of two strata, a budget, and one engine of a known pace."""

    seed: int
    rows: int = ROWS
    budget: int = 8192
    pace: Pace = field(init=False)
    lengths: Floats = field(init=False)
    _short: int = field(init=False)

    def __post_init__(self) -> None:
        self._chance = chance = np.random.default_rng(self.seed)
        places = int(chance.choice([64, 128, 256]))
        alone = chance.uniform(0.005, 0.03)
        self.pace = Pace(alone, alone * chance.uniform(0.3, 2.0) / places, places)
        self._short = int(self.rows * chance.uniform(0.3, 0.7))
        median, sigma = chance.uniform(200, 1500), chance.uniform(0.6, 1.0)
        scale = np.where(np.arange(self.rows) < self._short, 0.5, 1.0)
        drawn = chance.lognormal(np.log(median), sigma, self.rows) * scale
        self.lengths = np.clip(np.round(drawn), 1, self.budget)

    def truth(self) -> float:
        """Seconds that the whole set takes, its rows in no order."""
        return finish_s(self._chance.permutation(self.lengths), self.pace)

    def pilot(self, rows: int = PILOT) -> tuple[Sample, Requests]:
        """A sample of both strata in proportion, and its requests as they ran."""
        share = rows / self.rows
        few = self._chance.choice(self._short, round(self._short * share), replace=False)
        others = self._chance.choice(self.rows - self._short, rows - len(few), replace=False) + self._short
        chosen = self._chance.permutation(np.concatenate([few, others]))
        seen = tuple(
            SeenRow(
                "short" if n < self._short else "long", (int(self.lengths[n]),), bool(self.lengths[n] >= self.budget)
            )
            for n in chosen
        )
        strata = {"short": self._short, "long": self.rows - self._short}
        return Sample(seen, strata), played(self.lengths[chosen], self.pace)

    def rate(self, noise: float = 0.01) -> Rate:
        """The steady rate as eight windows told it."""
        return Rate(self.pace.tokens_per_s * float(np.exp(self._chance.normal(0, noise))), noise, 8)


def played(lengths: Floats, pace: Pace) -> Requests:
    """Requests of so many tokens, answered side by side at a pace: when each began and ended."""
    todo, going = list(range(len(lengths))), {}
    sent, ended = np.zeros(len(lengths)), np.zeros(len(lengths))
    now = 0.0
    while todo or going:
        while todo and len(going) < pace.places:
            one = todo.pop(0)
            going[one], sent[one] = float(lengths[one]), now
        step = pace.step_s(len(going))
        next_end = min(going.values())
        now += next_end * step
        going = {one: left - next_end for one, left in going.items()}
        for one in [one for one, left in going.items() if left <= 1e-9]:
            del going[one]
            ended[one] = now
    return Requests(sent, ended, np.asarray(lengths, dtype=np.float64))
