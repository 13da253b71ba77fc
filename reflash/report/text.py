"""The report as markdown: the verdict first, then what stands behind it."""

from __future__ import annotations

from collections.abc import Mapping

from reflash.publish.summary import BIN_S, ShardSummary, bin_edge
from reflash.report.charts import bars_chart, binned_lengths_chart, engines_chart, throughput_chart
from reflash.report.held import held_text
from reflash.report.lines import drift_line, verdict_line
from reflash.report.report import Report
from reflash.report.tables import counted_twice, verdict_lines
from reflash.report.words import block, code, duration, foreign, last_part, moment, ranked, share, table
from reflash.validate.checks import REASONS

HOW = {
    "stop": "ended by itself",
    "length": "cut at its budget",
    "abort": "broken off by the engine",
    "error": "refused",
    "given-up": "given up",
    "skipped": "not asked, for what came before it",
}
LONGEST_GAP = 6  # intervals without a token that are drawn as they were


def report_markdown(report: Report) -> str:
    """The whole report, charts included as data URIs; under 1 MB."""
    parts = [
        f"# {foreign(last_part(report.source))} answered by {foreign(last_part(report.model))}",
        f"**{verdict_line(report)}**",
        _stopped(report),
        _warnings(report),
        "## Verdicts",
        _verdicts(report),
        _output(report),
        _attempts(report),
        held_text(report.held),
        _examples(report),
        _set_aside(report),
        "## Rows",
        _rows(report),
        "## Where it lies",
        _where(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _warnings(report: Report) -> str:
    lines = [
        f"- `{reason}` on {share(report.total.reasons[reason], report.total.turns)} of the turns: {REASONS[reason]}"
        for reason in report.alarms
    ]
    if not report.exact:
        lines.append("- The engine gives no token ids: ids are its text encoded again, not exactly what it emitted.")
    return "**Look at this first**\n\n" + "\n".join(lines) if lines else ""


def _stopped(report: Report) -> str:
    """What ended a run too early: the sentence, then an engine's last lines as they stand in its log."""
    if not report.stopped or report.complete:
        return ""
    sentence, _, log = report.stopped.partition("\n")
    told = f"**What stopped it**\n\n{foreign(sentence, 2000)}"
    return f"{told}\n\n{block(log)}" if log else told


def _rows(report: Report) -> str:
    counts = [
        (f"source rows: {k}" if k != "rows" else "source rows", f"{v:,}") for k, v in report.source_counts.items()
    ]
    planned = [("conversations planned", f"{report.conversations:,}"), ("turns planned", f"{report.planned_turns:,}")]
    return table(("what", "count"), [*counts, *planned])


def _verdicts(report: Report) -> str:
    if not report.total.turns:
        return "No turn has its verdict yet." if report.planned_turns else "No turn was planned."
    return verdicts_text(report.total)


def verdicts_text(total: ShardSummary) -> str:
    """Turns by verdict, as a picture and as a table with the reasons under the verdicts they lead to."""
    turns = total.turns
    written = {"verdict": "**{}**", "reason": "`{}`", "note": "`{}` (note)"}
    rows: list[tuple[object, ...]] = [
        (written[kind].format(name), f"{n:,}", share(n, turns), meaning)
        for kind, name, n, meaning in verdict_lines(total)
    ]
    told = table(("verdict or reason", "turns", "share", "meaning"), rows)
    return "\n\n".join(part for part in (_bars(total), told, counted_twice(total), drift_line(total)) if part)


def _bars(total: ShardSummary) -> str:
    """The picture: each verdict, and under it the reasons that stand behind it."""
    counts = {
        name if kind == "verdict" else f"… {name}": n for kind, name, n, _ in verdict_lines(total) if kind != "note"
    }
    return f"![Turns by verdict and reason]({bars_chart(counts, 'Turns by verdict and reason')})"


def _output(report: Report) -> str:
    total = report.total
    if not total.turns:
        return ""
    rows: list[tuple[object, ...]] = [
        ("output tokens", f"{total.output_tokens:,}"),
        ("of them in the dataset", f"{total.good_tokens:,}"),
        ("prompt tokens", f"{total.prompt_tokens:,}"),
        ("turns asked more than once", f"{total.retried:,}"),
    ]
    parts = ("## Output", _charts(report), _by_engine(report), ended_text(total.finish_reasons))
    return "\n\n".join(part for part in (*parts, table(("what", "figure"), rows)) if part)


def _by_engine(report: Report) -> str:
    """The last attempt by engine, where there were several."""
    attempt = report.attempt
    if len(attempt.course) < 2:
        return ""
    title = f"By engine{', in the last attempt' if len(report.attempts) > 1 or report.untold_turns else ''}"
    return f"![Output tokens a second by engine]({engines_chart(attempt.bin_s, attempt.course, title)})"


def ended_text(finish_reasons: Mapping[str, int]) -> str:
    """Turns by how they ended, as bars."""
    told = {f"{HOW.get(reason, reason)} ({reason})": count for reason, count in ranked(finish_reasons).items()}
    return f"![Turns by how they ended]({bars_chart(told, 'Turns by how they ended')})" if told else ""


def _attempts(report: Report) -> str:
    rows: list[tuple[object, ...]] = []
    if report.attempts and report.untold_turns:
        rows.append(("ended without a report", f"{report.untold_turns:,}", "", "", "", ""))
    rows += [
        (
            moment(a.ended),
            f"{a.turns:,}",
            f"{a.output_tokens:,}",
            duration(a.seconds),
            "" if a.tokens_per_s is None else f"{a.tokens_per_s:,.0f}",
            ", ".join(foreign(name) for name in a.engines),
        )
        for a in report.attempts
    ]
    header = ("attempt ended", "turns", "output tokens", "time", "tok/s", "engines")
    return "## Attempts\n\n" + table(header, rows) if rows else ""


def _charts(report: Report) -> str:
    total = report.total
    if not total.tokens_by_time:
        return ""
    # The first and the last interval were only begun, and would show too low a rate.
    rates = without_pauses(total.tokens_by_time)[1:-1]
    seconds = [float(BIN_S * number) for number in range(1, len(rates) + 1)]
    lengths = {bin_edge(number): count for number, count in total.lengths.items()}
    return "\n\n".join(
        [
            f"![Output tokens a second over time]({throughput_chart(seconds, rates)})",
            f"![Turns by output length in tokens]({binned_lengths_chart(lengths)})",
        ]
    )


def without_pauses(tokens_by_time: Mapping[int, int]) -> list[float]:
    """Tokens a second in each interval, in order; a pause of over a minute (the run was stopped) is cut to one."""
    rates: list[float] = []
    before: int | None = None
    for when in sorted(tokens_by_time):
        gap = 0 if before is None else when - before - 1
        rates += [0.0] * (gap if gap <= LONGEST_GAP else 1)
        rates.append(tokens_by_time[when] / BIN_S)
        before = when
    return rates


def _examples(report: Report) -> str:
    if not report.examples:
        return "## Examples\n\nNo row is fit to train on." if report.total.turns else ""
    rows: list[tuple[object, ...]] = [
        (foreign(e["id"], 40), foreign(e["question"], 160), foreign(e["answer"])) for e in report.examples
    ]
    return "## Examples\n\n" + table(("row", "asked", "answered"), rows)


def _set_aside(report: Report) -> str:
    if not report.set_aside:
        return ""
    rows: list[tuple[object, ...]] = [
        (foreign(e["id"], 40), foreign(e["why"], 160), foreign(e["question"], 160), foreign(e["answer"]))
        for e in report.set_aside
    ]
    return "## Set aside, some of it\n\n" + table(("row", "why", "asked", "answered"), rows)


def _where(report: Report) -> str:
    rows: list[tuple[object, ...]] = [
        ("source", foreign(report.source, 1000)),
        ("model", foreign(report.model)),
        ("dataset", code(f"{report.run}/dataset")),
        ("set aside, with reasons", code(f"{report.run}/rejects") if report.sets_aside else "nothing"),
        ("every turn as generated", code(f"{report.run}/parts")),
    ]
    return table(("what", "where"), rows)
