"""Answers that say nothing, whatever they are dressed in."""

from __future__ import annotations

from functools import lru_cache

_DRESS = 32  # characters around or between the letters of a placeholder; longer text is never compared


def says_nothing(content: str, placeholders: tuple[str, ...]) -> bool:
    """Whether text is one of these, by its letters and digits alone: `**OK!**` is `ok`.

    A placeholder that is more than letters and digits is compared with its inner marks: `n/a` is not sodium's `Na`.
    """
    words, longest = _forms(placeholders)
    text = content.strip()
    if len(text) > longest + _DRESS:
        return False
    letters = _letters(text)
    return (letters in words if letters else False) or _trimmed(text) in words


@lru_cache(maxsize=8)
def _forms(placeholders: tuple[str, ...]) -> tuple[frozenset[str], int]:
    return frozenset(map(_trimmed, placeholders)), max(map(len, placeholders), default=0)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _trimmed(text: str) -> str:
    """Without what stands around the first and last letter; where there is none, without final dots."""
    folded = text.casefold().strip()
    shown = [place for place, character in enumerate(folded) if character.isalnum()]
    return folded[shown[0] : shown[-1] + 1] if shown else folded.replace("…", "").rstrip(".").rstrip()
