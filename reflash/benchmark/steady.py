"""The steady rate of a measurement: from the engines' own counters where those move, else from the requests. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reflash.benchmark.tap import Call
from reflash.engines.load import Load
from reflash.forecast.lengths import Floats

WINDOW_S = 2.5
MOST_WINDOWS = 24
MOVES = 0.7  # of the looks must find more tokens than the one before: some engines count a request when it ends
FEWEST_LOOKS = 5
UNKNOWN_SPREAD = 0.05  # of a rate that was seen in one window alone


@dataclass(frozen=True, slots=True)
class Look:
    """What all engines together said at one moment, by the monotonic clock."""

    at: float
    load: Load


@dataclass(frozen=True, slots=True)
class Steady:
    """Output tokens a second between two moments, and what the engines held meanwhile."""

    tokens_per_s: float
    spread: float  # relative standard error
    windows: int
    seconds: float
    running: float | None
    waiting: float | None
    cache: float | None
    preempted: int | None


def steady(calls: Sequence[Call], looks: Sequence[Look], begin: float, end: float) -> Steady | None:
    """The rate from `begin` to `end`; None where no token of that time is known."""
    if end <= begin:
        return None
    edges = _edges(begin, end, WINDOW_S)
    made = _counted(looks, edges)
    if made is None:  # a request's tokens are spread over its life: only longer windows tell how the rate varies
        edges = _edges(begin, end, max(WINDOW_S, _life(calls)))
        made = _spread_out(calls, edges, end)
    if made is None or made[-1] <= made[0]:
        return None
    count = len(made) - 1
    rates = np.diff(made) / np.diff(edges)
    mean = float(rates.mean())
    spread = float(rates.std(ddof=1)) / mean / float(np.sqrt(count)) if count > 1 else UNKNOWN_SPREAD
    inside = [look.load for look in looks if begin <= look.at <= end]
    preempted = [load.preempted for load in inside if load.preempted is not None]
    return Steady(
        mean,
        spread,
        count,
        end - begin,
        _mean([load.running for load in inside]),
        _mean([load.waiting for load in inside]),
        max((load.cache for load in inside if load.cache is not None), default=None),
        preempted[-1] - preempted[0] if preempted else None,
    )


def all_taken(calls: Sequence[Call], places: int) -> float | None:
    """The moment at which so many requests had been sent; None where that never came."""
    sent = sorted(call.sent for call in calls)
    return sent[places - 1] if len(sent) >= places else None


def added(loads: Sequence[Load | None]) -> Load | None:
    """Several engines as one; None where one of them says nothing."""
    known = [load for load in loads if load is not None]
    if not known or len(known) < len(loads):
        return None
    caches = [load.cache for load in known if load.cache is not None]
    return Load(
        running=_sum([load.running for load in known]),
        waiting=_sum([load.waiting for load in known]),
        generated=_sum([load.generated for load in known]),
        cache=max(caches) if caches else None,
        preempted=_sum([load.preempted for load in known]),
        late=any(load.late for load in known),
    )


def _edges(begin: float, end: float, window_s: float) -> Floats:
    count = int(min(MOST_WINDOWS, max(1, (end - begin) // window_s)))
    found: Floats = np.linspace(begin, end, count + 1)
    return found


def _life(calls: Sequence[Call]) -> float:
    """Mean seconds of a request that ended."""
    lived = [call.ended - call.sent for call in calls if call.ended is not None]
    return sum(lived) / len(lived) if lived else 0.0


def _counted(looks: Sequence[Look], edges: Floats) -> Floats | None:
    """Tokens made up to each edge by the engines' counters; None where those do not move with every step."""
    known = [(look.at, look.load.generated) for look in looks if look.load.generated is not None and not look.load.late]
    inside = [tokens for at, tokens in known if edges[0] <= at <= edges[-1]]
    if len(inside) < FEWEST_LOOKS:
        return None
    steps = np.diff(np.array(inside, dtype=np.float64))
    if np.mean(steps > 0) < MOVES or known[-1][0] < edges[-1] - 2 * WINDOW_S:
        return None
    found: Floats = np.interp(edges, [at for at, _ in known], [float(tokens) for _, tokens in known])
    return found


def _spread_out(calls: Sequence[Call], edges: Floats, now: float) -> Floats | None:
    """Tokens made up to each edge, those of each request spread evenly over its life.

    A request under way has made none that are known: it is taken to be as quick as those that ended.
    """
    done = [(call.sent, call.ended, call.tokens) for call in calls if call.ended is not None]
    lived = sum(ended - sent for sent, ended, _ in done)
    if lived <= 0:
        return None
    speed = sum(tokens for *_, tokens in done) / lived
    open_ = [(call.sent, now, speed * (now - call.sent)) for call in calls if call.ended is None and call.sent < now]
    made = np.zeros(len(edges))
    for sent, ended, tokens in [*done, *open_]:
        made += tokens * np.clip((edges - sent) / max(ended - sent, 1e-9), 0.0, 1.0)
    return made


def _mean(values: Sequence[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
