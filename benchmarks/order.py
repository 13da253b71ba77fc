"""What it gains to ask for long conversations early: a simulated run, with the project's own guesses.

usage: uv run python benchmarks/order.py [--worlds 20]

No engine: a place decodes at a constant rate and takes the next row when it is free. Rows come from three files: short
answers, long ones (ten times), and talks of four turns. The guesses are `reflash.generate.order`, fed only with what
was finished before a shard was begun. Lengths are lognormal (sigma 0.9, cut at 8,192 tokens), so a guess is never sure.
"""

from __future__ import annotations

import argparse
import heapq
import random
from statistics import mean

from reflash.generate.order import Lengths
from reflash.types import Conversation, Message, Origin, Planned, Turn

PLACES, RATE, SHARDS, ROWS = 256, 30.0, 6, 2000
FILES = (("short", 0.7, 300, 1), ("long", 0.2, 3000, 1), ("talks", 0.1, 300, 4))  # name, share, mean, turns
SIGMA, BUDGET = 0.9, 8192


def main() -> None:
    """Print the end of a run by both orders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=20)
    worlds = parser.parse_args().worlds
    print(f"{SHARDS} shards of {ROWS:,} rows, {PLACES} places at {RATE:g} tok/s, mean of {worlds} worlds")
    print(f"{'order':<18}{'wall s':>10}{'of it idle at the end':>24}{'places busy':>13}")
    for name, sort in (("as in the source", False), ("long first", True)):
        found = [_run(seed, sort=sort) for seed in range(worlds)]
        wall, ideal = mean(f[0] for f in found), mean(f[1] for f in found)
        print(f"{name:<18}{wall:>10.0f}{wall - ideal:>22.0f} s{ideal / wall:>13.4f}")


def _run(seed: int, *, sort: bool) -> tuple[float, float]:
    """Seconds until the last row is done, and seconds if no place were ever idle."""
    chance = random.Random(seed)
    lengths = Lengths()
    free = [0.0] * PLACES
    total, done = 0.0, 0.0
    for shard in range(SHARDS):
        rows = [_row(chance, f"{shard}-{n}") for n in range(ROWS)]
        tokens = {row.conversation.id: made for row, made in rows}
        order = lengths.long_first([row for row, _ in rows]) if sort else [row for row, _ in rows]
        for row in order:
            seconds = sum(tokens[row.conversation.id]) / RATE
            total += seconds
            end = heapq.heappop(free) + seconds
            done = max(done, end)
            heapq.heappush(free, end)
        for row, made in rows:
            lengths.seen(row, [_turn(row, number, count) for number, count in enumerate(made)])
    return done, total / PLACES


def _row(chance: random.Random, name: str) -> tuple[Planned, list[int]]:
    file, _, average, turns = chance.choices(FILES, [share for _, share, _, _ in FILES])[0]
    talk = tuple(m for _ in range(turns) for m in (Message("user", "?"), Message("assistant", "")))
    made = [min(BUDGET, max(1, int(chance.lognormvariate(0, SIGMA) * average / 1.5))) for _ in range(turns)]
    return Planned(Conversation(name, talk), Origin(file, 1), True, (1,) * 200), made


def _turn(row: Planned, number: int, tokens: int) -> Turn:
    return Turn(row.conversation.id, number, 2 * number + 1, (1,), range(tokens), "stop")  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
