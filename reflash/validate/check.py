"""What a check is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from reflash.validate.row import Row

Weight = Literal["rejected", "flagged", "note"]


@dataclass(frozen=True, slots=True)
class Check:
    """One rule. Checks of turns that were not made judge only those, the others only turns that were."""

    reason: str
    weight: Weight
    meaning: str
    holds: Callable[[Row], bool]
    unmade: bool = False


def check(
    reason: str, weight: Weight, meaning: str, *, unmade: bool = False
) -> Callable[[Callable[[Row], bool]], Check]:
    """Make a check of the rule under it."""
    return lambda rule: Check(reason, weight, meaning, rule, unmade)
