"""Memory of cards against a model's weights and sequences. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from reflash.engines.layout.fit import BESIDE
from reflash.environment.facts import Card, Model, Subject


def sequence(model: Model, tokens: int) -> int:
    """Bytes of one sequence."""
    return max(1, model.cache_per_token * tokens + model.state_per_sequence)


def room(model: Model, cards: Sequence[Card], subject: Subject) -> int | None:
    """Bytes left for sequences on all cards of one replica; None where there are fewer cards."""
    if not cards or len(cards) < subject.tp:
        return None
    usable = min(c.memory for c in cards) * subject.share - BESIDE
    return round(usable * subject.tp) - model.weights


def fewest(model: Model | None, cards: Sequence[Card], context: int, share: float) -> int:
    """The smallest tensor-parallel size on which a model and one sequence fit; 1 where none does."""
    if model is None or model.error:
        return 1
    for tp in model.fits_tp:
        left = room(model, cards, Subject(tp=tp, share=share))
        if left is not None and left >= sequence(model, context):
            return tp
    return 1
