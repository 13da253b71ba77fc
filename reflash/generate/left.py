"""How long a run has still to go, from the answers that have ended and from those that still grow. Pure.

The answers that end first are short. A mean of those alone says at the start of a run that it will soon be over, and a
count of rows says nothing of the long answers that are still under way. So the lengths of unfinished answers count as
what they are, lengths that will be at least that (the product-limit estimate of Kaplan and Meier, 1958); and where
none of the longest has ended yet, longer ones are taken to grow rarer as a heavy tail does, up to the budget.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, log, log2

PER_DOUBLING = 8  # bins of lengths
ENOUGH = 10  # answers before anything is said
TAIL = 1.5  # a length of twice as much is 2 ** 1.5 times as rare, beyond what has been seen
STEPS = 24  # of halving, between nothing and the longest answer seen


def bin_of(tokens: float) -> int:
    """The bin of a length: eight to a doubling."""
    return round(PER_DOUBLING * log2(max(1.0, tokens)))


def edge(number: int) -> float:
    """The largest length of a bin, in tokens."""
    return float(2 ** ((number + 0.5) / PER_DOUBLING))


@dataclass(frozen=True, slots=True)
class Survival:
    """The share of answers that are longer than so many tokens: 1 at first, falling to 0 at the longest seen."""

    edges: tuple[float, ...]
    shares: tuple[float, ...]  # of those longer than the edge

    @property
    def mean(self) -> float:
        """The mean length in tokens: the area under the curve."""
        area, before, share = 0.0, 0.0, 1.0
        for end, longer in zip(self.edges, self.shares, strict=True):
            area += (end - before) * (share + longer) / 2
            before, share = end, longer
        return area

    def longer(self, tokens: float) -> float:
        """The share of answers longer than that."""
        place = bisect_left(self.edges, tokens)
        if place == len(self.edges):
            return 0.0
        low, high = (self.edges[place - 1] if place else 0.0), self.edges[place]
        above = self.shares[place - 1] if place else 1.0
        return above + (self.shares[place] - above) * (tokens - low) / (high - low)


def survival(ended: Mapping[int, int], growing: Mapping[int, int], budget: int) -> Survival:
    """From counts by bin: answers that ended with that length, and those that have that length by now and go on.

    `budget` is the greatest length there can be, in tokens.
    """
    last = max([*ended, *growing], default=0)
    at_risk = float(sum(ended.values()) + sum(growing.values()))
    share, shares = 1.0, []
    for number in range(last + 1):
        over, on = ended.get(number, 0), growing.get(number, 0)
        known = at_risk - on / 2  # a growing one is known for half of its bin
        share *= max(0.0, 1 - over / known) if known > 0 else 0.0
        shares.append(share)
        at_risk -= over + on
    beyond = max(0, bin_of(budget) - last)
    shares += [share * 2 ** (-TAIL * step / PER_DOUBLING) for step in range(1, beyond + 1)]
    shares[-1] = 0.0
    return Survival(tuple(edge(n) for n in range(len(shares))), tuple(shares))


def seconds_left(
    ended: Mapping[int, int], ages: Iterable[float], speed: float, waiting: float, budget: int
) -> float | None:
    """Until all is answered: `waiting` answers not yet begun, and those under way for so many seconds (`ages`).

    `ended` counts answers by the bin of their length, `speed` is tokens a second of one answer. First every place that
    is taken now works off what waits; then the last ones run out. None where too little is known.
    """
    growing = [age * speed for age in ages]
    if sum(ended.values()) < ENOUGH or not growing or speed <= 0:
        return None
    lengths = survival(ended, Counter(bin_of(tokens) for tokens in growing), budget)
    return (waiting * lengths.mean / len(growing) + _run_out(lengths, growing)) / speed


def _run_out(lengths: Survival, growing: Iterable[float]) -> float:
    """Tokens until the last of these answers ends, in every second case."""
    by_length = Counter(edge(bin_of(tokens) - 1) for tokens in growing)
    low, high = 0.0, lengths.edges[-1]
    for _ in range(STEPS):
        middle = (low + high) / 2
        if _all_over(lengths, by_length, middle) < 0.5:
            low = middle
        else:
            high = middle
    return high


def _all_over(lengths: Survival, by_length: Mapping[float, int], tokens: float) -> float:
    """The chance that all of them have ended so many tokens from now."""
    sure = 0.0
    for now, count in by_length.items():
        alive = lengths.longer(now)
        ending = 1 - lengths.longer(now + tokens) / alive if alive > 0 else 1.0
        if ending <= 0:
            return 0.0
        sure += count * log(ending)
    return exp(sure)
