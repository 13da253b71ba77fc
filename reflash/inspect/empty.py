"""Old answers that say nothing: blank ones, and the placeholders that validation flags in new ones."""

from __future__ import annotations

from reflash.config.run import ValidateConfig

_LONGEST = 100  # characters that a placeholder takes, with what stands around it


def _bare(text: str) -> str:
    return text.casefold().strip().rstrip(".").rstrip()


_PLACEHOLDERS = frozenset(_bare(word) for word in ValidateConfig().placeholders)


def says_nothing(answer: str) -> bool:
    """Whether an answer is blank or a placeholder such as `OK.`."""
    return not answer or answer.isspace() or (len(answer) <= _LONGEST and _bare(answer) in _PLACEHOLDERS)
