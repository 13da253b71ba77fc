"""What changed since the last census of the same set."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from reflash.census.report import CensusReport
from reflash.config.audit import DataAudit
from reflash.printable import printable
from reflash.store import kept

_VERSION = 1
_GRAVE = {"fit": 0, "mend": 1, "unfit": 2}
_WORSE_IF_MORE = (
    *("to make again", "cannot be used", "empty rows", "share of the most frequent answer"),
    "rows with benchmark items",
)


@dataclass(frozen=True, slots=True)
class Change:
    """One figure then and now."""

    what: str
    before: str
    now: str
    worse: bool = False


@dataclass(frozen=True, slots=True)
class Drift:
    """All that changed."""

    since: str  # day and time of the last census, UTC
    changes: tuple[Change, ...]

    @property
    def worse(self) -> bool:
        """Whether anything became worse."""
        return any(change.worse for change in self.changes)

    def to_json(self) -> dict[str, Any]:
        """One JSON object."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Some lines for a person."""
        if not self.changes:
            return [f"  as at the last census ({self.since})"]
        told = (f"    {one.what}: {one.before} to {one.now}{' (worse)' if one.worse else ''}" for one in self.changes)
        return [f"  since the last census ({self.since}):", *(printable(line, 400) for line in told)]


def changes_since(audit: DataAudit, report: CensusReport) -> Drift | None:
    """What differs from the last census of the set under the same rules; None where there is none, or none wanted."""
    document = kept.last(_name(audit)) if audit.history else None
    if document is None:
        return None
    try:
        then = orjson.loads(document)
        if then["version"] != _VERSION:
            return None
        found = [_changed(*one) for one in _figures(then["figures"], _brief(report))]
        return Drift(str(then["at"]), tuple(one for one in found if one is not None))
    except (ValueError, KeyError, TypeError, AttributeError):  # of another version, or no JSON
        return None


def keep_report(audit: DataAudit, report: CensusReport) -> None:
    """Keep the figures for the next census of the set."""
    if audit.history:
        at = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
        kept.keep(_name(audit), orjson.dumps({"version": _VERSION, "at": at, "figures": _brief(report)}))


def _name(audit: DataAudit) -> str:
    """A file's name for a set as it is looked at: the same set under other rules has other figures."""
    return f"data-{hashlib.blake2b(audit.subject.encode(), digest_size=10).hexdigest()}.json"


def _brief(report: CensusReport) -> dict[str, Any]:
    """The figures that are compared."""
    first = report.frequent_answers[0] if report.frequent_answers else None
    return {
        "verdict": report.verdict,
        "rows": report.set_rows,
        report.unit: report.size,
        "to make again": report.to_make_again,
        "cannot be used": report.rejected,
        "empty rows": report.empty_rows,
        "share of the most frequent answer": round(first.share, 4) if first and first.count > 1 else 0.0,
        "duplicate prompts": report.duplicate_prompts,
        "duplicate answers": report.duplicate_answers,
        "rows with benchmark items": report.item_rows,
        "median prompt": report.prompts.median,
        "median length": report.lengths.median,
        "found": {one.kind: one.rows for one in report.findings},
    }


def _figures(then: dict[str, Any], now: dict[str, Any]) -> list[tuple[str, Any, Any, bool]]:
    """Name, then, now, and whether more of it is worse."""
    kinds = {**then["found"], **now["found"]}
    plain = [key for key in now if key != "found"]
    return [
        *((key, then.get(key, 0), now[key], key in _WORSE_IF_MORE) for key in plain),
        *((kind, then["found"].get(kind, 0), now["found"].get(kind, 0), True) for kind in kinds),
    ]


def _changed(what: str, before: Any, now: Any, bad: bool) -> Change | None:
    if before == now:
        return None
    if isinstance(now, str):
        return Change(what, str(before), now, _GRAVE.get(now, 0) > _GRAVE.get(str(before), 0))
    return Change(what, f"{before:,}", f"{now:,}", bad and now > before)
