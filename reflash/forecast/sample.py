"""A stratified sample of rows with what they were answered, and draws from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflash.forecast.lengths import Floats, Survival, survival


@dataclass(frozen=True, slots=True)
class SeenRow:
    """One row of the pilot as it was answered."""

    stratum: str
    turns: tuple[int, ...]  # output tokens of each turn that was made
    cut: bool = False  # the last of them reached its budget: it would have gone on
    under_way: bool = False  # the pilot ended while the last of them was being answered
    prompt_tokens: int = 0  # of all its turns
    spent: int = 0  # output tokens that were made for it, those of draws that were not kept included

    @property
    def tokens(self) -> int:
        """Output tokens that it cost."""
        return max(self.spent, sum(self.turns))


@dataclass(frozen=True, slots=True)
class Sample:
    """What the pilot saw, and how many rows of each stratum the whole set has."""

    rows: tuple[SeenRow, ...]
    strata: Mapping[str, int]

    def weights(self) -> Floats:
        """How many rows of the set each seen row stands for.

        A stratum that no seen row is of is shared out among all the others.
        """
        seen: dict[str, int] = defaultdict(int)
        for row in self.rows:
            seen[row.stratum] += 1
        known = sum(self.strata.get(name, 0) for name in seen) or 1
        scale = sum(self.strata.values()) / known
        return np.array([scale * self.strata.get(r.stratum, 0) / seen[r.stratum] for r in self.rows])

    def places(self) -> list[NDArray[np.intp]]:
        """Positions of the rows of each stratum."""
        found: dict[str, list[int]] = defaultdict(list)
        for n, row in enumerate(self.rows):
            found[row.stratum].append(n)
        return [np.array(own) for own in found.values()]

    def curve(self) -> Survival:
        """The survival curve of single turns."""
        lengths, ended, weights = [], [], []
        for row, weight in zip(self.rows, self.weights(), strict=True):
            for number, tokens in enumerate(row.turns):
                last = number == len(row.turns) - 1
                lengths.append(float(tokens))
                ended.append(not (last and (row.cut or row.under_way)))
                weights.append(float(weight))
        return survival(lengths, ended, weights)

    def to_json(self) -> dict[str, Any]:
        """As JSON-able data."""
        rows = [[r.stratum, list(r.turns), r.cut, r.under_way, r.prompt_tokens, r.spent] for r in self.rows]
        return {"strata": dict(self.strata), "rows": rows}


def read_sample(data: Mapping[str, Any]) -> Sample:
    """The inverse of `Sample.to_json`."""
    rows = tuple(SeenRow(str(s), tuple(t), bool(c), bool(u), int(p), int(n)) for s, t, c, u, p, n in data["rows"])
    return Sample(rows, dict(data["strata"]))


@dataclass(frozen=True, slots=True)
class Totals:
    """Output tokens of each seen row, with those filled in that were still being answered; weights beside them."""

    tokens: Floats
    weights: Floats

    @property
    def mean(self) -> float:
        """Tokens of a row of the set."""
        return float(np.average(self.tokens, weights=self.weights))


class Urn:
    """Row totals to draw from, each stratum by itself."""

    def __init__(self, sample: Sample) -> None:
        self._tokens = np.array([row.tokens for row in sample.rows], dtype=np.float64)
        self._weights = sample.weights()
        self._places = sample.places()
        self._going = [n for n, row in enumerate(sample.rows) if row.under_way and row.turns]
        self._at = {n: float(sample.rows[n].turns[-1]) for n in self._going}
        self._curve = sample.curve() if self._going else None

    def draw(self, chance: np.random.Generator) -> Totals:
        """Rows drawn again within each stratum, with replacement.

        A turn that was under way when the pilot ended gets a length that others reached from there. Turns that its row
        had still to come are left out: a pilot that runs to its end has none.
        """
        tokens = self._tokens
        if self._curve is not None:
            tokens = tokens.copy()
            for n in self._going:
                tokens[n] += _further(self._curve, self._at[n], chance)
        drawn = np.concatenate([own[chance.integers(0, len(own), len(own))] for own in self._places])
        return Totals(tokens[drawn], self._weights[drawn])


def _further(curve: Survival, at: float, chance: np.random.Generator) -> float:
    """Tokens that an answer of so many has still to come, drawn from those that were longer; 0 where none was."""
    left = curve.beyond(at)
    if left <= 0.0:
        return 0.0
    level = left * chance.random()
    place = int(np.searchsorted(-curve.share, -level, side="left"))
    end = float(curve.tokens[place]) if place < len(curve.tokens) else curve.longest
    return max(0.0, end - at)
