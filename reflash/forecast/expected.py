"""A hypothesis about the rate, answered by a measurement: `500-1000` tok/s a GPU, yes, no or undecided."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from reflash.errors import ConfigError
from reflash.forecast.outlook import Span

_RANGE = re.compile(r"\s*([\d.,_]+)\s*(?:-|–|to|\.\.)\s*([\d.,_]+)\s*")


@dataclass(frozen=True, slots=True)
class Expected:
    """A range of output tokens a second on one GPU."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Answered:
    """What a measurement says to it."""

    expected: Expected
    answer: Literal["yes", "no", "undecided"]
    measured: Span  # a GPU
    why: str


def read_expected(text: str) -> Expected:
    """`500-1000` as a range; raises ConfigError where it is none."""
    found = _RANGE.fullmatch(text)
    try:
        low, high = (float(part.replace(",", "").replace("_", "")) for part in found.groups()) if found else (1.0, 0.0)
    except ValueError:
        low, high = 1.0, 0.0
    if low > high:
        raise ConfigError(
            "benchmark.expect: write a range of output tokens a second on one GPU, the smaller first: 500-1000"
        )
    return Expected(low, high)


def answer(expected: Expected, measured: Span) -> Answered:
    """Yes where the whole interval lies in the range, no where none of it does."""
    said = f"{measured.mid:,.0f} tok/s a GPU were measured ({measured.low:,.0f} to {measured.high:,.0f})"
    wanted = f"{expected.low:,.0f} to {expected.high:,.0f}"
    if expected.low <= measured.low and measured.high <= expected.high:
        return Answered(expected, "yes", measured, f"{said}, all of it within {wanted}")
    if measured.high < expected.low:
        return Answered(expected, "no", measured, f"{said}, less than {wanted}")
    if measured.low > expected.high:
        return Answered(expected, "no", measured, f"{said}, more than {wanted}")
    return Answered(expected, "undecided", measured, f"{said}, which overlaps an end of {wanted}")
