"""Figures and foreign text as a person reads them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from reflash.generate.progress import Snapshot
from reflash.printable import printable
from reflash.publish.summary import ShardSummary

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-!|~$^=:@])")
# What renderers make a link of by themselves. Escaping does not keep all of them from it (remark looks once more when
# the escapes are gone), so a space of no width is put in.
_LINKS = re.compile(r"(?<=/)(?=/)|(?<=@)|(?<=www)(?=\.)", re.IGNORECASE)
_NO_WIDTH = "&#8203;"
_SECRET = re.compile(
    r"\b(?:hf_|sk-|gh[pousr]_|github_pat_|xox[a-z]-|AKIA)[\w-]{8,}|(?<=://)[^/\s@]+(?=@)|(?<=Bearer )\S+"
)
_NAMED_SECRET = re.compile(
    r"""((?:api[_-]?key|access[_-]?key|auth[_-]?key|token|secret|password|passwd)["']?\s*[=:]\s*["']?)[^\s"',}]{6,}""",
    re.IGNORECASE,
)


def describe(snapshot: Snapshot, judged: ShardSummary | None = None) -> str:
    """How far a run is, in one line; `judged` adds up the shards that have their verdicts."""
    parts = [f"{snapshot.rows:,} of {snapshot.rows_all:,} conversations"]
    if not snapshot.seconds and snapshot.rows < snapshot.rows_all:
        parts.append("engines are starting")
    if snapshot.tokens_per_s:
        parts.append(_rate(snapshot))
    if snapshot.seconds_left:
        parts.append(f"about {duration(snapshot.seconds_left)} left")
    if judged and judged.turns:
        parts.append(f"{share(judged.verdicts.get('good', 0), judged.turns)} of {judged.turns:,} judged turns are good")
    return ", ".join(parts)


def _rate(snapshot: Snapshot) -> str:
    """Tokens a second in all, and of each engine where there are several: one that lags behind shows."""
    total, each = f"{snapshot.tokens_per_s:,.0f} tok/s", [engine.tokens_per_s for engine in snapshot.engines]
    if len(each) < 2:
        return total
    return f"{total} ({min(each):,.0f} to {max(each):,.0f} on each of {len(each)} engines)"


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


def counted(number: int, noun: str) -> str:
    """`1 turn`, `2,000 turns`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def share(part: int, whole: int) -> str:
    """A part in percent. Only all is 100.0% and only nothing 0.0%; a part of nothing is a dash."""
    if not whole:
        return "–"
    percent = f"{part / whole:.1%}"
    if part != whole and percent == "100.0%":
        return ">99.9%"
    return "<0.1%" if part and percent == "0.0%" else percent


def ranked(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts by name, the largest first."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def last_part(path: str) -> str:
    """The name at the end of a path, a URL or a Hub id."""
    return path.rstrip("/").rsplit("/", 1)[-1]


def moment(unix: float) -> str:
    """A Unix time as a date and a time of day, in UTC; "" where it is 0."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(unix)) if unix else ""


def without_secrets(text: str) -> str:
    """A text of programs with what looks like a key, a token or a password cut out."""
    return _NAMED_SECRET.sub(r"\1***", _SECRET.sub("***", text))


def foreign(text: str, limit: int = 240) -> str:
    """Text from a model, a data set or a server, cut and escaped: in markdown it shows as it is, and does nothing."""
    flat = printable(" ".join(text.split()), limit)
    escaped = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINKS.sub(_NO_WIDTH, _MARKDOWN.sub(r"\\\1", escaped))


def code(text: str, limit: int = 1000) -> str:
    """A path or a name as code, fit for a table; one that would end the code or the cell is escaped text instead."""
    flat = printable(text, limit)
    return foreign(text, limit) if not flat.strip() or set("`|") & set(flat) else f"`{flat}`"


def block(text: str, limit: int = 10_000) -> str:
    """A text of several lines as code that nothing within it can end."""
    lines = [printable(line, limit) for line in text[:limit].splitlines()]
    fence = "`" * (1 + max([2, *map(len, re.findall("`+", text))]))
    return "\n".join([fence, *lines, fence])


def table(header: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """A markdown table; cells are taken as they are."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)
