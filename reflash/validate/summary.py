"""Verdicts, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reflash.config.run import ValidateConfig
from reflash.types import Judgement


@dataclass(frozen=True, slots=True)
class Tally:
    """How many turns came out how. A turn counts once under each of its reasons."""

    turns: int = 0
    verdicts: Mapping[str, int] = field(default_factory=dict)  # by verdict, all three always there
    reasons: Mapping[str, int] = field(default_factory=dict)  # most frequent first
    notes: Mapping[str, int] = field(default_factory=dict)
    alarms: tuple[str, ...] = ()  # reasons whose share of the turns passes the configured one


def tally(judgements: Iterable[Judgement], config: ValidateConfig) -> Tally:
    """Count the verdicts of a shard or a run."""
    verdicts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    for judged in judgements:
        verdicts[judged.verdict] += 1
        reasons.update(judged.reasons)
        notes.update(judged.notes)
    return _tally(verdicts, reasons, notes, config)


def combine(tallies: Iterable[Tally], config: ValidateConfig) -> Tally:
    """The tally of all shards; alarms are those of the whole."""
    verdicts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    for one in tallies:
        verdicts.update(one.verdicts)
        reasons.update(one.reasons)
        notes.update(one.notes)
    return _tally(verdicts, reasons, notes, config)


def _tally(verdicts: Counter[str], reasons: Counter[str], notes: Counter[str], config: ValidateConfig) -> Tally:
    turns = verdicts.total()
    return Tally(
        turns=turns,
        verdicts={name: verdicts[name] for name in ("good", "flagged", "rejected")},
        reasons=_ranked(reasons),
        notes=_ranked(notes),
        alarms=tuple(reason for reason, count in _ranked(reasons).items() if count > config.alarm_share * turns),
    )


def _ranked(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
