"""Text that shows nothing: spaces, and characters without a shape or a width."""

from __future__ import annotations

import re

# Spaces, control characters, and what Unicode calls default ignorable: fillers, joiners, direction and variation marks.
_SHOWS = re.compile(
    "[^\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)


def is_blank(text: str) -> bool:
    """Whether a reader would see nothing of it."""
    return _SHOWS.search(text) is None
