"""A census in the UI: a table of what was found, and a page with a chart, answers and examples."""

from __future__ import annotations

from typing import Any

from reflash.census.audit import Audited
from reflash.census.report import CensusReport
from reflash.report.charts import bars_chart
from reflash.report.tables import Table
from reflash.report.words import foreign, last_part, share, table

_WORDS = 160  # characters of a text that is shown


def findings_table(report: CensusReport) -> Table:
    """Each kind of fault, then each benchmark whose items were met: rows, their share, some of them."""
    rows: Table = [
        _row("fault", one.kind, one.rows, report, [example.row for example in one.examples]) for one in report.findings
    ]
    rows += [
        _row("benchmark items", f"{one.met:,} of {one.items:,} of {one.benchmark}", one.rows, report, one.examples)
        for one in report.items
        if one.met
    ]
    return rows or [{"kind": "none", "what": "no fault found", "rows": "0", "share": share(0, report.rows)}]


def _row(kind: str, what: str, count: int, report: CensusReport, some: Any) -> dict[str, Any]:
    more = ", …" if count > len(some) else ""
    first = ", ".join(map(str, some)) + more
    return {"kind": kind, "what": what, "rows": f"{count:,}", "share": share(count, report.rows), "for example": first}


def census_line(report: CensusReport) -> str:
    """The verdict in one sentence."""
    return f"{report.verdict.upper()}: {report.why}"


def census_markdown(found: Audited) -> str:
    """The whole census; foreign words are escaped and cut."""
    report = found.report
    parts = [
        f"# Census of {foreign(last_part(report.source))}",
        f"**{foreign(census_line(report), 1000)}**",
        _unread(report),
        _drift(found),
        "## Answers",
        _chart(report),
        _frequent(report),
        "## Figures",
        table(("what", "figure"), _figures(report)),
        _examples(report),
        _items(report),
        "\n".join(f"- {foreign(line, 400)}" for line in (*found.files, *report.notes)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _unread(report: CensusReport) -> str:
    return "\n".join(f"- **not read:** {foreign(text, 400)}" for text in report.unreadable[:20])


def _drift(found: Audited) -> str:
    if found.drift is None:
        return ""
    if not found.drift.changes:
        return f"As at the last census ({found.drift.since} UTC)."
    rows: list[tuple[object, ...]] = [
        (foreign(one.what), foreign(one.before), f"**{foreign(one.now)}**" if one.worse else foreign(one.now))
        for one in found.drift.changes
    ]
    return f"## Since the last census\n\n{table(('what', found.drift.since, 'now'), rows)}"


def _chart(report: CensusReport) -> str:
    what = "supervised tokens" if report.threshold is not None else f"{report.unit} of its answers"
    chart = bars_chart({one.name: one.rows for one in report.answers_histogram}, f"Rows by {what}")
    return f"![Rows by {what}]({chart})"


def _frequent(report: CensusReport) -> str:
    if not report.frequent_answers:
        return "No answer occurs twice."
    rows: list[tuple[object, ...]] = [
        (
            f"{one.share:.1%}",
            f"{one.count:,}",
            f"{one.length:,}",
            foreign(one.text if one.says is None else one.says, _WORDS) or "*nothing*",
        )
        for one in report.frequent_answers
    ]
    return table(("share", "times", report.unit, "answer"), rows)


def _figures(report: CensusReport) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [
        ("rows of the set", f"{report.set_rows:,}"),
        ("looked at", f"{report.rows:,}"),
        ("turns", f"{report.turns:,}"),
        (report.unit, f"{report.size:,}"),
        ("of them in answers", f"{report.supervised:,}"),
        ("to make again", f"{report.to_make_again:,} ({share(report.to_make_again, report.rows)})"),
        ("rows that repeat a prompt", f"{report.duplicate_prompts:,}"),
        ("answers that repeat one", f"{report.duplicate_answers:,}"),
    ]
    if report.thoughts is not None:
        rows.append(("answers with a thought", f"{report.thoughts:,}"))
    for name, one in (("lengths", report.lengths), ("prompts", report.prompts)):
        told = f"{one.least:,} to {one.most:,}, median {one.median:,}, 99 % up to {one.p99:,}"
        rows.append((f"{name} in {report.unit}", told))
    return rows


def _examples(report: CensusReport) -> str:
    rows: list[tuple[object, ...]] = [
        (
            f"{example.row:,}",
            foreign(example.words or one.kind, _WORDS),
            foreign(example.asked, _WORDS),
            foreign(example.said, _WORDS),
        )
        for one in report.findings
        for example in one.examples[:3]
    ]
    return "## Examples\n\n" + table(("row", "what", "asked", "answered"), rows[:60]) if rows else ""


def _items(report: CensusReport) -> str:
    if not report.items:
        return ""
    rows: list[tuple[object, ...]] = [
        (foreign(one.benchmark), f"{one.met:,} of {one.items:,}", f"{one.rows:,}", ", ".join(map(str, one.examples)))
        for one in report.items
    ]
    return "## Benchmark items in prompts\n\n" + table(("benchmark", "items", "rows", "for example"), rows)
