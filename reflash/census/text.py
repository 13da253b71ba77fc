"""A census as lines for a person, the verdict first."""

from __future__ import annotations

from reflash.census.report import CensusReport, Spread
from reflash.printable import printable

_BAR = 40  # characters of the longest bar
_LINE = 2000


def census_text(report: CensusReport) -> str:
    """Some lines for a terminal."""
    of = f" of {report.set_rows:,}" if report.set_rows > report.rows else ""
    rows = "tokenized rows" if report.set == "tokenized" else "conversations"
    supervised = "supervised" if report.set == "tokenized" else "in answers"
    lines = [
        f"{report.verdict.upper()}: {report.why}",
        f"{report.source}: {report.rows:,}{of} {rows}, {report.size:,} {report.unit}, "
        f"{report.supervised:,} of them {supervised} in {report.turns:,} turns",
        *_histogram(report),
        *_answers(report),
        *_thoughts(report),
        f"  lengths: {_spread(report.lengths, report.unit)}",
        f"  prompts: {_spread(report.prompts, report.unit)}",
        f"  repeated: prompts of {report.duplicate_prompts:,} rows, answers of {report.duplicate_answers:,} turns",
        *_items(report),
        *_findings(report),
        *(f"  note: {note}" for note in report.notes),
        *(f"  NOT READ: {text}" for text in report.unreadable),
    ]
    return "\n".join(printable(line, _LINE) for line in lines)


def _histogram(report: CensusReport) -> list[str]:
    most = max((one.rows for one in report.answers_histogram), default=0)
    what = "supervised tokens" if report.set == "tokenized" else f"{report.unit} of the answers"
    lines = [f"  {what} of a row:"]
    for one in report.answers_histogram:
        bar = "█" * max(1, round(_BAR * one.rows / most)) if one.rows else ""
        lines.append(f"    {one.name:>20} {one.rows:>12,} {one.rows / report.measured:>7.1%} {bar}".rstrip())
    return lines


def _answers(report: CensusReport) -> list[str]:
    lines = []
    if report.set == "conversations" and (report.blank_answers or report.placeholder_answers):
        lines.append(f"  {report.blank_answers:,} answers are empty, {report.placeholder_answers:,} a placeholder")
    if not report.frequent_answers:
        return [*lines, "  no answer occurs twice"]
    lines.append("  most frequent answers:")
    for one in report.frequent_answers:
        said = one.text if one.says is None else f'"{one.says}"'
        lines.append(f"    {one.share:>7.1%} {one.count:>12,} of {one.length:,} {report.unit}: {said}")
    return lines


def _thoughts(report: CensusReport) -> list[str]:
    if report.thoughts is None:
        return []
    left = f", {report.open_thoughts:,} of them without an answer" if report.open_thoughts else ""
    return [f"  thinking: {report.thoughts:,} of {report.turns:,} turns{left}"]


def _items(report: CensusReport) -> list[str]:
    if not report.items:
        return []
    if not report.item_rows:
        names = ", ".join(one.benchmark for one in report.items)
        return [f"  benchmark items in prompts: none of {names}"]
    lines = [f"  benchmark items in the prompts of {report.item_rows:,} rows:"]
    for one in report.items:
        if one.met:
            rows = ", ".join(map(str, one.examples)) + (", …" if one.rows > len(one.examples) else "")
            lines.append(f"    {one.benchmark}: {one.met:,} of {one.items:,} items, in {one.rows:,} rows: {rows}")
    return lines


def _findings(report: CensusReport) -> list[str]:
    if not report.findings:
        return ["  no fault found"]
    lines = ["  found:"]
    for one in report.findings:
        rows = ", ".join(str(example.row) for example in one.examples)
        said = next((f" ({e.words})" for e in one.examples if e.words and e.words != one.kind), "")
        more = ", …" if one.rows > len(one.examples) else ""
        lines.append(f"    {one.share:>7.1%} {one.rows:>12,} {one.kind}: rows {rows}{more}{said}")
    return lines


def _spread(one: Spread, unit: str) -> str:
    return (
        f"{one.least:,} to {one.most:,} {unit}, median {one.median:,}, mean {one.mean:,.0f}, "
        f"90 % up to {one.p90:,}, 99 % up to {one.p99:,}"
    )
