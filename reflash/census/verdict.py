"""What the figures mean: whether a set may be trained on."""

from __future__ import annotations

from collections.abc import Sequence

from reflash.census.report import Frequent

UNFIT = 0.01  # share of rows to make again from which a set is unfit
NOTABLE = 0.01  # share of turns from which one and the same answer is worth a word
_TIMES = 10  # and how often it has to occur


def judge(rows: int, again: int, empty: int, threshold: int, frequent: Sequence[Frequent]) -> tuple[str, str]:
    """`fit`, `mend` or `unfit`, and why in a sentence."""
    said = _repeated(threshold, frequent)
    if not again:
        return "fit", f"each of its {rows:,} rows has an answer and none is broken{said}"
    why = f"{again:,} of {rows:,} rows ({again / rows:.1%}) are to be made again"
    if empty:
        why += f"; {empty:,} ({empty / rows:.1%}) supervise {threshold} tokens or fewer"
    return ("unfit" if again > UNFIT * rows else "mend"), why + said


def _repeated(threshold: int, frequent: Sequence[Frequent]) -> str:
    """The placeholder, if there is one: below the threshold, or above it and so not counted."""
    if not frequent or frequent[0].share < NOTABLE or frequent[0].count < _TIMES:
        return ""
    first = frequent[0]
    name = first.text if first.says is None else f'"{first.says}"'
    text = f"; {first.share:.1%} of all answers are the same {first.tokens} tokens: {name}"
    return text if first.tokens <= threshold else f"{text} (--threshold {first.tokens} counts them as empty)"
