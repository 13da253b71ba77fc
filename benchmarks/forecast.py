"""How often a sweep picks the true best, and how often a forecast holds the truth, in worlds whose truth is known.

usage: python benchmarks/forecast.py [--worlds 100] [--minutes 60] [--first 0]

Time is simulated, so this takes a minute or two. The worlds are those of the tests, of which these are more: 16 points
(two engines, two caches, four widths; starts of 20 to 120 s; one in ten points fails; windows of a measurement vary by
3 %), and sets of 100,000 rows in two strata (lognormal answers, sigma 0.6 to 1.0, cut at 8,192 tokens; 64 to 256
places) of which a pilot sees one in a hundred.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).parents[1]))

from reflash.benchmark.halving import best
from reflash.forecast.outlook import outlook
from reflash.forecast.queue import pace_of
from tests.benchmark.worlds import ROWS, LengthWorld, SpeedWorld


def main() -> None:
    """Both counts, as one JSON object."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--first", type=int, default=0, help="seed of the first world")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.worlds)
    print(json.dumps({"sweep": sweeps(seeds, options.minutes), "forecast": forecasts(seeds)}, indent=1))


def sweeps(seeds: range, minutes: float) -> dict[str, float]:
    """The point picked against the true best, and the time taken against the budget."""
    picked, near, late, worst = 0, 0, 0, 1.0
    for seed in seeds:
        world = SpeedWorld(seed)
        chosen = best(world.sweep(minutes))
        share = world.true[chosen.point] / world.true[world.best] if chosen else 0.0
        picked += chosen is not None and chosen.point == world.best
        near += share >= 0.99
        late += world.now > 60 * minutes
        worst = min(worst, share)
    return {
        "worlds": len(seeds),
        "minutes": minutes,
        "true best": picked,
        "within 1 % of it": near,
        "worst share of it": round(worst, 4),
        "over the minutes": late,
    }


def forecasts(seeds: range) -> dict[str, float]:
    """The 90 % interval of the finishing time against the truth."""
    held, widths, offs = 0, [], []
    for seed in seeds:
        world = LengthWorld(seed)
        sample, requests = world.pilot()
        said = outlook(sample, world.rate(), pace_of(requests, world.pace.places), ROWS, seed)
        truth = world.truth()
        held += said.seconds.holds(truth)
        widths.append(said.seconds.plus_minus)
        offs.append(abs(truth / said.seconds.mid - 1))
    return {
        "worlds": len(seeds),
        "held": held,
        "mean ±": round(mean(widths), 4),
        "widest ±": round(max(widths), 4),
        "mean off": round(mean(offs), 4),
        "most off": round(max(offs), 4),
    }


if __name__ == "__main__":
    main()
