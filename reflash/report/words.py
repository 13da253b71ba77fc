"""Figures and foreign text as a person reads them."""

from __future__ import annotations

import re

from reflash.generate.progress import Snapshot

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-!|~$^=:@])")


def describe(snapshot: Snapshot) -> str:
    """How far a run is, in one line."""
    left = "" if snapshot.seconds_left is None else f", about {duration(snapshot.seconds_left)} left"
    return f"{snapshot.rows:,} of {snapshot.rows_all:,} conversations, {snapshot.tokens_per_s:,.0f} tok/s{left}"


def duration(seconds: float) -> str:
    """Seconds as `3 d 4 h`, `2 h 5 min`, `4 min 10 s` or `7 s`."""
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    days, h = divmod(hours, 24)
    if days:
        return f"{days} d {h} h"
    if hours:
        return f"{h} h {m} min"
    return f"{m} min {s} s" if m else f"{s} s"


def foreign(text: str, limit: int = 240) -> str:
    """Text from a model or a data set, cut and escaped: in markdown it shows as it is, and does nothing."""
    flat = " ".join(text.split())
    cut = flat if len(flat) <= limit else flat[: limit - 1] + "…"
    escaped = cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN.sub(r"\\\1", escaped)


def table(header: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """A markdown table; cells are taken as they are."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)
