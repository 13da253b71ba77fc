"""Words from outside (a file, a server, a model) made fit to stand in one line that people read."""

from __future__ import annotations

import re

_BREAKS = re.compile("[\t-\r\x1c-\x1e\x85\u2028\u2029]")  # whatever some program takes for the end of a line
_UNFIT = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1: they move the cursor, colour, rename the window
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi controls: they show text in another order than it has
    "\u200b\u2060-\u2064\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # seen by no one
    "\ud800-\udfff]"  # halves of a pair: no encoding takes them
)


def printable(text: str, limit: int = 200) -> str:
    """One line of at most `limit` characters: breaks become spaces, control characters U+FFFD, the rest stays."""
    if len(text) > limit:
        text = text[: max(limit - 1, 0)] + "…"
    if text.isprintable():
        return text
    return _UNFIT.sub("\ufffd", _BREAKS.sub(" ", text))
