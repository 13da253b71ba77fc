"""How long answers are, some of them cut off: a survival curve (Kaplan and Meier), and what a larger budget costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

OCTAVE = 2.0  # the tail is judged by the answers between half the longest length seen and that length
FEWEST_ENDS = 5  # in that octave, before the tail is extrapolated at all


@dataclass(frozen=True, slots=True)
class Survival:
    """The share of answers that are longer than a length: a step function, 1 before the first step."""

    tokens: Floats  # ascending lengths at which answers end
    share: Floats  # that lasts beyond each of them
    longest: float  # length up to which it is known
    ends_in_octave: float  # weight of the answers that ended in the last octave
    exposure: float  # log-lengths that answers ran through in it, by weight
    answers: int

    @property
    def unknown(self) -> float:
        """The share of answers that were still going at the longest length seen."""
        return float(self.share[-1]) if len(self.share) else 1.0

    def beyond(self, length: float) -> float:
        """The share of answers longer than this; at the longest length seen or above, what was still going there."""
        place = int(np.searchsorted(self.tokens, length, side="right"))
        return float(self.share[place - 1]) if place else 1.0

    def mean_up_to(self, budget: float) -> float:
        """Mean tokens of an answer that is cut at a budget; nothing is assumed beyond the longest length seen."""
        top = min(budget, self.longest)
        edges = np.concatenate([[0.0], self.tokens[self.tokens < top], [top]])
        levels = np.concatenate([[1.0], self.share[self.tokens < top]])
        return float(np.sum(np.diff(edges) * levels))

    def quantile(self, share: float) -> float | None:
        """The length that this share of the answers does not pass; None where it lies beyond what was seen."""
        place = int(np.searchsorted(-self.share, -(1.0 - share) - 1e-12, side="left"))
        return float(self.tokens[place]) if place < len(self.tokens) else None


@dataclass(frozen=True, slots=True)
class LargerBudget:
    """Mean tokens of an answer under a budget larger than any length seen: bounds, and a guess between them."""

    budget: int
    low: float  # each answer that was cut ends one token later
    guess: float | None  # they go on to end as they did in the last octave; None where too few ended there
    high: float  # none of them ends


def survival(tokens: Sequence[float], ended: Sequence[bool], weights: Sequence[float] | None = None) -> Survival:
    """The curve of answers of so many tokens, of which those not `ended` were cut off there.

    Raises ValueError where there is none.
    """
    if not len(tokens):
        raise ValueError("a survival curve of no answers")
    length = np.asarray(tokens, dtype=np.float64)
    over = np.asarray(ended, dtype=bool)
    weight = np.ones_like(length) if weights is None else np.asarray(weights, dtype=np.float64)
    steps, which = np.unique(length, return_inverse=True)
    ends = np.bincount(which, weight * over, len(steps))
    leaving = np.bincount(which, weight, len(steps))
    at_risk = leaving[::-1].cumsum()[::-1]
    share = np.cumprod(1.0 - ends / at_risk)
    has_end = ends > 0
    longest = float(steps[-1])
    low = longest / OCTAVE
    reached = length > low
    exposure = float(np.sum(weight[reached] * np.log(length[reached] / low)))
    return Survival(
        steps[has_end],
        share[has_end],
        longest,
        float(np.sum(weight[reached & over])) / float(weight.mean()),
        exposure / float(weight.mean()),
        len(length),
    )


def larger_budget(curve: Survival, budget: int) -> LargerBudget | None:
    """What answers would cost with a larger budget; None where every answer seen had ended, or it is no larger.

    The guess takes the tail for a power law by the ends seen in its last octave: a heavy tail by choice, since answers
    that think in circles never end.
    """
    left = curve.unknown
    if budget <= curve.longest or left <= 1e-9:
        return None
    base = curve.mean_up_to(curve.longest)
    high = base + left * (budget - curve.longest)
    guess = None
    if curve.ends_in_octave >= FEWEST_ENDS:
        power = curve.ends_in_octave / curve.exposure
        guess = base + left * curve.longest * _area(budget / curve.longest, power)
    return LargerBudget(budget, base, guess, high)


def _area(times: float, power: float) -> float:
    """The integral of x^-power from 1 to `times`."""
    if abs(power - 1.0) < 1e-9:
        return float(np.log(times))
    return float((times ** (1.0 - power) - 1.0) / (1.0 - power))
