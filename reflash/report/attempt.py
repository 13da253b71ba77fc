"""One attempt at a run in figures: what its engines did while they were open."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reflash.engines.base import Engine
from reflash.generate.progress import Snapshot
from reflash.generate.rates import Rates
from reflash.printable import printable

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What this attempt generated; nothing where all was there already."""

    turns: int
    output_tokens: int
    seconds: float  # with engines ready
    engines: tuple[str, ...]  # engine and version, without addresses: this goes into the dataset card
    ended: float = 0.0  # Unix time, 0 where unknown
    bin_s: float = 0.0  # seconds of a bin of `course`
    course: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # tokens a second by engine, from the start

    @property
    def tokens_per_s(self) -> float | None:
        """Output tokens a second over the whole attempt, None where it generated nothing."""
        return self.output_tokens / self.seconds if self.output_tokens and self.seconds else None


def attempt_of(snapshot: Snapshot, engines: Sequence[Engine], rates: Rates | None = None) -> Attempt:
    """The attempt that a last snapshot and its engines tell of; it ends now."""
    rates = rates or Rates()
    course = {printable(name): tuple(map(round, figures)) for name, figures in rates.course().items()}
    versions = Counter(printable(e.version) or "unknown" for e in engines)  # in a server's own words
    names = tuple(f"{count} × {version}" for version, count in versions.items())
    counts = snapshot.turns, snapshot.output_tokens, snapshot.seconds
    return Attempt(*counts, names, time.time(), rates.bin_s, course)


def attempts_in(report: Mapping[str, Any] | None) -> tuple[Attempt, ...]:
    """The attempts that an earlier report tells of, the oldest first; those that generated nothing are left out.

    A report is only ever written over, never asked for by a row: what a damaged one told is lost, with a warning.
    """
    if report is None:
        return ()
    try:
        told = report.get("attempts") or [report["attempt"]]  # a report of the first version knew only the last one
        found = [_attempt(one) for one in told]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        log.warning("report.json is damaged (%s): what it told of earlier attempts is lost", printable(repr(error)))
        return ()
    return tuple(a for a in found if a.output_tokens)


def _attempt(told: Mapping[str, Any]) -> Attempt:
    counts = int(told["turns"]), int(told["output_tokens"]), float(told["seconds"])
    course = {str(name): tuple(map(int, figures)) for name, figures in told.get("course", {}).items()}
    rest = float(told.get("ended", 0.0)), float(told.get("bin_s", 0.0)), course
    return Attempt(*counts, tuple(map(str, told["engines"])), *rest)
