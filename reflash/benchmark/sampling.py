"""A stratified sample of the real rows: in one pass over the source, each stratum in proportion to its rows."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil

from reflash.config.run import RunConfig
from reflash.errors import SourceError
from reflash.plan.intake import open_intake
from reflash.sources.ids import Census
from reflash.types import Conversation, Origin, SourceRow

RARE = "rare"  # strata of which the sample would hold fewer than FEWEST rows, taken as one
FEWEST = 3
SPARE = 2.0  # kept of a stratum over its share, while the shares are not known yet
MOST, LEAST = 4000, 100  # rows of a sample
TIDY_ROWS = 5000  # rows between two looks at what need not be kept

Pair = tuple[Origin, Conversation]


@dataclass(frozen=True, slots=True)
class Picked:
    """One row of the sample."""

    stratum: str
    origin: Origin
    conversation: Conversation


@dataclass(frozen=True, slots=True)
class Chosen:
    """A sample in random order, and the whole set by strata."""

    rows: tuple[Picked, ...]
    pilot: int  # of them, the first, for the pilot; points are compared on all
    strata: dict[str, int]  # rows of the whole set
    turns: int  # to generate, in the whole set
    digest: str  # of the source

    @property
    def all_rows(self) -> int:
        """Rows of the whole set."""
        return sum(self.strata.values())


@dataclass(slots=True)
class _Stratum:
    rows: int = 0
    kept: list[tuple[float, Pair]] = field(default_factory=list)

    def cut(self, keep: int) -> None:
        self.kept.sort(key=lambda one: one[0])
        del self.kept[keep:]


class Sampler:
    """Takes rows as they come, and keeps no more of them than the sample may need."""

    def __init__(self, wanted: int, seed: int = 0) -> None:
        self._wanted = wanted
        self._chance = random.Random(seed)
        self._strata: dict[str, _Stratum] = {}
        self._rows = 0

    def add(self, stratum: str, pair: Pair) -> None:
        """One more row."""
        found = self._strata.setdefault(stratum, _Stratum())
        found.rows += 1
        found.kept.append((self._chance.random(), pair))
        self._rows += 1
        if self._rows % TIDY_ROWS == 0:
            for one in self._strata.values():
                one.cut(ceil(SPARE * self._wanted * one.rows / self._rows) + FEWEST)

    def rows(self) -> tuple[tuple[Picked, ...], dict[str, int]]:
        """The sample in random order, and the rows of the whole set by stratum."""
        share = min(1.0, self._wanted / max(1, self._rows))
        merged: dict[str, _Stratum] = {}
        for name, one in sorted(self._strata.items()):
            into = merged.setdefault(name if one.rows * share >= FEWEST else RARE, _Stratum())
            into.rows += one.rows
            into.kept += one.kept
        found: list[tuple[float, Picked]] = []
        for name, one in merged.items():
            one.cut(max(1, round(one.rows * share)))
            found += [(self._chance.random(), Picked(name, *pair)) for _, pair in one.kept]
        found.sort(key=lambda row: row[0])
        return tuple(row for _, row in found), {name: one.rows for name, one in merged.items()}


def choose(config: RunConfig) -> Chosen:
    """Read the whole source once and choose rows of it; blocks. Raises SourceError or ConfigError."""
    intake = open_intake(config.source)
    calls = config.tools.calls == "regenerate"
    sampler = Sampler(max(MOST, config.benchmark.rows or 0), config.sampling.seed)
    turns = 0
    for origin, conversation in _usable(intake.rows(Census()), calls):
        count = len(conversation.turns(regenerate_calls=calls))
        turns += count
        sampler.add(stratum_of(origin, conversation, count), (origin, conversation))
    rows, strata = sampler.rows()
    if not rows:
        raise SourceError(f"{intake.name}: no row of it can be used, so there is nothing to measure")
    pilot = config.benchmark.rows or pilot_rows(sum(strata.values()), config.engine.width)
    return Chosen(rows, min(pilot, len(rows)), strata, turns, intake.digest())


def pilot_rows(rows: int, width: int) -> int:
    """Rows of a pilot: one in a hundred, at least 100 and four for each place, at most 4,000."""
    return min(rows, MOST, max(LEAST, ceil(rows / 100), 4 * width))


def stratum_of(origin: Origin, conversation: Conversation, turns: int) -> str:
    """Rows that may be alike: of one file, of so many turns, of prompts within a factor of four."""
    size = sum(len(m.content) for m in conversation.messages if m.role != "assistant")
    span = 4 ** ((max(1, size).bit_length() - 1) // 2)
    return f"{origin.file}, {turns if turns < 3 else '3 or more'} turns, {span}+ characters"


def _usable(rows: Iterable[SourceRow], calls: bool) -> Iterator[Pair]:
    for row in rows:
        if row.conversation is not None and row.conversation.turns(regenerate_calls=calls):
            yield row.origin, row.conversation
