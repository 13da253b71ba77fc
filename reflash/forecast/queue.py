"""How long rows take at so many places: a free place takes the next row, and steps are slower where many share them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reflash.forecast.lengths import Floats

TURNS = 6  # of finding the pace and what it means for requests
ASSUMED_SHARE = 0.5  # of a full step that is there with one request too, where no smaller number was seen


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds that a token takes where `k` requests are under way: `alone_s + each_s * k`."""

    alone_s: float
    each_s: float
    places: int  # requests under way at most
    assumed: bool = False  # how it slows was not seen

    def step_s(self, under_way: float) -> float:
        """Seconds a token of each request."""
        return self.alone_s + self.each_s * under_way

    @property
    def tokens_per_s(self) -> float:
        """Of all places together, all taken."""
        return self.places / self.step_s(self.places)

    def at_rate(self, tokens_per_s: float) -> Pace:
        """The same shape, scaled to a rate with all places taken."""
        scale = self.tokens_per_s / tokens_per_s
        return Pace(self.alone_s * scale, self.each_s * scale, self.places, self.assumed)


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests that were answered: when they were sent and ended, in seconds, and their tokens."""

    sent: Floats
    ended: Floats
    tokens: Floats

    def beside(self, alone_s: float, each_s: float) -> Floats:
        """How many requests were under way, itself among them, at the mean token of each request, at such a pace."""
        moments = np.concatenate([self.sent, self.ended])
        change = np.concatenate([np.ones(len(self.sent)), -np.ones(len(self.ended))])
        order = np.argsort(moments, kind="stable")
        times, count = moments[order], np.cumsum(change[order])[:-1]
        tokens = np.diff(times) / np.maximum(alone_s + each_s * count, 1e-12)  # that each request made meanwhile
        made = np.concatenate([[0.0], np.cumsum(tokens)])
        area = np.concatenate([[0.0], np.cumsum(tokens * count)])
        of_all = np.interp(self.ended, times, made) - np.interp(self.sent, times, made)
        found: Floats = (np.interp(self.ended, times, area) - np.interp(self.sent, times, area)) / of_all
        return found


def pace_of(requests: Requests, places: int) -> Pace:
    """The pace that fits requests best, by least squares; half a step is taken as fixed where all ran side by side.

    A request's mean token depends on the pace, so both are found in turns.
    """
    kept = (requests.tokens > 0) & (requests.ended > requests.sent)
    each = (requests.ended - requests.sent)[kept] / requests.tokens[kept]
    weight = requests.tokens[kept]
    if not len(each):
        raise ValueError("a pace of no answers")
    mean = float(np.average(each, weights=weight))
    pace = Pace(mean, 0.0, places)
    for _ in range(TURNS):
        beside = requests.beside(pace.alone_s, pace.each_s)[kept]
        middle = float(np.average(beside, weights=weight))
        spread = float(np.average((beside - middle) ** 2, weights=weight))
        if spread < (0.05 * places) ** 2:
            return Pace(mean * ASSUMED_SHARE, mean * (1 - ASSUMED_SHARE) / max(middle, 1.0), places, assumed=True)
        slope = float(np.average((beside - middle) * (each - mean), weights=weight)) / spread
        slope = min(max(0.0, slope), mean / middle)
        pace = Pace(mean - slope * middle, slope, places)
    return pace


def finish_s(rows: Sequence[float] | Floats, pace: Pace) -> float:
    """Seconds from the first request to the last answer, rows of so many tokens taken in their order."""
    if not len(rows):
        return 0.0
    free = [0.0] * min(pace.places, len(rows))  # in tokens that a request of that time has made
    for tokens in rows:
        heapq.heapreplace(free, free[0] + float(tokens))
    last = np.sort(np.asarray(free))
    full = float(last[0])  # until then every place is taken
    left = np.arange(len(last), 0, -1, dtype=np.float64)
    drain = np.diff(last, prepend=full) * (pace.alone_s + pace.each_s * left)
    return full * pace.step_s(len(last)) + float(np.sum(drain))
