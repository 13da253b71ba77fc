"""The finishing time of a run, its tokens and its rate, each with a 90 % interval from the pilot's own spread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np

from reflash.forecast.lengths import Floats
from reflash.forecast.queue import Pace, finish_s
from reflash.forecast.sample import Sample, Totals, Urn

DRAWS = 400
ENDS = 40  # of them with the end of the run played through
BULK = 12  # rows a place that are played through; those before them only take their tokens at the full rate
FLOOR = 0.01  # of the rate: no machine holds it better, however even a short measurement was
LOW, HIGH = 5.0, 95.0


@dataclass(frozen=True, slots=True)
class Span:
    """A figure with its 90 % interval."""

    low: float
    mid: float
    high: float

    @property
    def plus_minus(self) -> float:
        """Half the width of the interval over the figure."""
        return (self.high - self.low) / 2 / self.mid if self.mid else 0.0

    def holds(self, value: float) -> bool:
        """Whether a value lies in the interval."""
        return self.low <= value <= self.high

    def times(self, factor: float) -> Span:
        """All three multiplied."""
        return Span(self.low * factor, self.mid * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class Rate:
    """Output tokens a second with all places taken."""

    tokens_per_s: float
    spread: float  # relative standard error of that mean, from windows of the measurement
    windows: int  # so many: few of them say little of the spread


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a run will take."""

    rows: int
    seconds: Span  # from the first request to the last answer
    tail_s: float  # of them, beyond what the same tokens would take at the full rate
    output_tokens: Span
    tokens_per_s: Span  # with all places taken
    tokens_per_row: Span

    def to_json(self) -> dict[str, Any]:
        """As JSON-able data."""
        return asdict(self)


def outlook(sample: Sample, rate: Rate, pace: Pace, rows: int, seed: int = 0) -> Outlook:
    """Play the run many times: rows drawn again from the pilot, the rate from its spread, the end place by place.

    `rows` are those that are to be answered; `pace` tells how a request slows beside others. Rows are taken in no
    order: a driver that takes long ones first ends a little sooner.
    """
    chance = np.random.default_rng(seed)
    pace = pace.at_rate(rate.tokens_per_s)
    rates = _rates(rate, chance)
    totals = np.empty(DRAWS)
    ends: list[float] = []
    played = min(rows, BULK * pace.places)
    urn = Urn(sample)
    for n in range(DRAWS):
        drawn = urn.draw(chance)
        totals[n] = _total(drawn, rows, chance)
        if n < ENDS:
            ends.append(_beyond(drawn, played, pace, chance))
    over = np.resize(np.array(ends), DRAWS)
    seconds = (totals / rate.tokens_per_s + over) * (rate.tokens_per_s / rates)
    return Outlook(
        rows,
        _span(seconds),
        float(np.mean(over)),
        _span(totals),
        _span(rates),
        _span(totals / rows),
    )


def read_outlook(data: Mapping[str, Any]) -> Outlook:
    """The inverse of `Outlook.to_json`; raises KeyError or TypeError where it is none."""
    spans = {name: Span(**data[name]) for name in ("seconds", "output_tokens", "tokens_per_s", "tokens_per_row")}
    return Outlook(rows=int(data["rows"]), tail_s=float(data["tail_s"]), **spans)


def _rates(rate: Rate, chance: np.random.Generator) -> Floats:
    """Rates that the whole run may hold, by Student's distribution: few windows make it wide."""
    spread = float(np.hypot(rate.spread, FLOOR))
    noise = chance.standard_t(max(1, rate.windows - 1), DRAWS) if rate.windows > 1 else chance.standard_cauchy(DRAWS)
    return rate.tokens_per_s * np.exp(np.clip(spread * noise, -1.5, 1.5))


def _total(drawn: Totals, rows: int, chance: np.random.Generator) -> float:
    """Output tokens of so many rows: their expected sum, and what chance adds to it."""
    mean = drawn.mean
    variance = float(np.average((drawn.tokens - mean) ** 2, weights=drawn.weights))
    return max(1.0, rows * mean + float(chance.normal()) * sqrt(rows * variance))


def _beyond(drawn: Totals, rows: int, pace: Pace, chance: np.random.Generator) -> float:
    """Seconds that so many rows take beyond their tokens at the full rate: the end, when places fall empty."""
    taken = chance.choice(drawn.tokens, rows, p=drawn.weights / drawn.weights.sum())
    return finish_s(taken, pace) - float(taken.sum()) / pace.tokens_per_s


def _span(values: Floats) -> Span:
    low, mid, high = np.percentile(values, [LOW, 50.0, HIGH])
    return Span(float(low), float(mid), float(high))
