"""What the figures mean: whether a set may be trained on."""

from __future__ import annotations

from reflash.census.report import CensusReport
from reflash.config.audit import AuditRules

_TIMES = 10  # an answer that occurs less often is no placeholder


def judge(report: CensusReport, rules: AuditRules) -> tuple[str, str]:
    """`fit`, `mend` or `unfit`, and why in a sentence."""
    bad = report.to_make_again + report.rejected
    said = _repeated(report, rules) + _items(report)
    if not bad:
        why = f"each of its {report.rows:,} rows has an answer and none is broken{said}"
        return ("mend" if report.item_rows else "fit"), why
    why = f"{_share(report.to_make_again, report.rows)} are to be made again"
    if report.threshold is None:
        why += _nothing_said(report)
    elif report.empty_rows:
        share = report.empty_rows / report.rows
        why += f"; {report.empty_rows:,} ({share:.1%}) supervise {report.threshold} tokens or fewer"
    if report.rejected:
        why += f"; {_share(report.rejected, report.rows)} cannot be used"
    return ("unfit" if bad > rules.unfit_share * report.rows else "mend"), why + said


def _share(some: int, rows: int) -> str:
    return f"{some:,} of {rows:,} rows ({some / rows:.1%})"


def _nothing_said(report: CensusReport) -> str:
    says = ((report.blank_answers, "are empty"), (report.placeholder_answers, "are a placeholder"))
    words = " and ".join(f"{count:,} {what}" for count, what in says if count)
    return f"; of {report.turns:,} answers {words}" if words else ""


def _repeated(report: CensusReport, rules: AuditRules) -> str:
    """The placeholder, if there is one: below the threshold, or above it and so not counted."""
    first = next(iter(report.frequent_answers), None)
    if first is None or first.share < rules.notable_share or first.count < _TIMES:
        return ""
    name = first.text if first.says is None else f'"{first.says}"'
    if report.threshold is None:
        return f"; {first.share:.1%} of all answers are the same: {name}"
    text = f"; {first.share:.1%} of all answers are the same {first.length} tokens: {name}"
    return text if first.length <= report.threshold else f"{text} (--threshold {first.length} counts them as empty)"


def _items(report: CensusReport) -> str:
    if not report.item_rows:
        return ""
    names = ", ".join(f"{one.benchmark} ({one.rows:,})" for one in report.items if one.rows)
    return f"; the prompts of {report.item_rows:,} rows hold benchmark items: {names}"
