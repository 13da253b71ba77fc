"""What a benchmark found, as markdown: a paragraph for who decides, then the figures behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reflash.benchmark.outcome import Outcome
from reflash.benchmark.result import Result
from reflash.forecast.costs import Cost
from reflash.forecast.outlook import Span
from reflash.report.charts import lengths_chart
from reflash.report.speed_charts import fan_chart, widths_chart
from reflash.report.words import code, counted, duration, foreign, share, table

UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def benchmark_markdown(result: Result) -> str:
    """The whole of it, charts included as data URIs; under 1 MB."""
    parts = [
        f"# How fast {foreign(result.model)} will answer {foreign(result.source)}",
        *summary(result),
        "## The config to use",
        _advice(result),
        "## How long it takes",
        _forecast(result),
        f"![Share of the tokens made over time, as forecast]({fan_chart(result.outlook)})",
        "## How long answers are",
        _lengths(result),
        "## Points that were compared",
        _points(result),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def summary(result: Result, quote: Callable[[str, int], str] = foreign) -> list[str]:
    """A paragraph that a manager can read, in parts; `quote` makes the words of others fit for where it goes."""
    parts = (_time_said(result, quote), _measured_said(result, quote), _answers_said(result))
    return [part for part in (*parts, _expected(result)) if part]


def _time_said(result: Result, quote: Callable[[str, int], str]) -> str:
    out, here = result.outlook, result.costs[0]
    said = (
        f"{counted(result.rows, 'row')} take {duration(out.seconds.mid)} {_on(result)}, nine times in ten between "
        f"{duration(out.seconds.low)} and {duration(out.seconds.high)}: {_tokens(out.output_tokens.mid)} output tokens "
        f"at {out.tokens_per_s.mid:,.0f} tok/s."
    )
    if not result.pilot.gpus:
        return said
    cost = f", {here.money.mid:,.0f} {quote(result.currency, 20)}" if here.machine.price else ""
    return f"{said} That is {here.gpu_hours.mid:,.1f} GPU-hours{cost}."


def _on(result: Result) -> str:
    """By what it was measured."""
    if result.pilot.gpus:
        return f"on {counted(result.gpus, 'GPU')}"
    return f"by {counted(result.pilot.engines, 'engine')} ({result.kind})"


def _measured_said(result: Result, quote: Callable[[str, int], str]) -> str:
    pilot = result.pilot
    short = "" if pilot.whole else ", and the time ended before they did"
    said = [
        f"It was measured, not estimated: {counted(len(pilot.sample.rows), 'real row')} were answered in "
        f"{duration(pilot.seconds)} by {quote(pilot.version, 80)}{short}."
    ]
    ways = len({outcome.point for outcome in result.outcomes})
    if result.choice and ways > 1:
        said.append(f"Of {ways} ways to run it, {quote(result.choice.why, 600)}.")
    if result.ceiling:
        reached = result.ceiling.share(pilot.rate.tokens_per_s)
        most = result.ceiling.tokens_per_s
        said.append(f"The memory would allow {most:,.0f} tok/s at most; {reached:.1%} of it is reached.")
    return " ".join(said)


def _answers_said(result: Result) -> str:
    said = []
    if result.curve.unknown > 0:
        cut = f"{result.curve.unknown:.1%} of the answers reach the budget of {result.budget:,} tokens and are cut off."
        said.append(cut)
    if verdicts := result.pilot.verdicts:
        said.append(
            f"{share(verdicts.get('good', 0), sum(verdicts.values()))} of the pilot's turns are fit to train on."
        )
    return " ".join(said)


def points_table(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """One row a point and round, plain cells, for the UI."""
    return [
        {
            "point": o.point.name,
            "round": o.round + 1,
            "tok/s": f"{o.tokens_per_s:,.0f}" if o.ok else "",
            "±": f"{o.spread:.1%}" if o.ok else "",
            "GPUs": o.gpus,
            "in flight": f"{o.width:,}" if o.width else "",
            "held": "" if o.running is None else f"{o.running:,.0f}",
            "cache": "" if o.cache is None else f"{o.cache:.0%}",
            "thrown out": "" if o.preempted is None else f"{o.preempted:,}",
            "J/token": "" if o.joules_per_token is None else f"{o.joules_per_token:.2f}",
            "memory": "" if o.memory is None else _size(o.memory),
            "start": duration(o.launch_s) if o.launch_s else "",
            "status": o.status,
            "why": foreign(o.why) if o.why else "",
        }
        for o in sorted(outcomes, key=lambda o: (-o.round, not o.ok, -o.tokens_per_s))
    ]


def _expected(result: Result) -> str:
    if result.expected is None:
        return ""
    return f"{result.expected.answer.capitalize()}: {result.expected.why}."


def _advice(result: Result) -> str:
    patch = result.to_json()["advice"]["config"]
    lines = []
    if result.choice:
        lines.append(f"{code(result.choice.outcome.point.name)}: {foreign(result.choice.why)}.")
    lines += [f"- {foreign(remark, 1000)}" for remark in result.remarks]
    lines.append(f"```yaml\n{patch}```" if patch else "The config stays as it is.")
    if result.rejected:
        rows: list[tuple[object, ...]] = [(code(r.outcome.point.name), foreign(r.why, 400)) for r in result.rejected]
        lines.append(table(("not used", "why"), rows))
    return "\n\n".join(lines)


def _forecast(result: Result) -> str:
    rows: list[tuple[object, ...]] = [
        (
            foreign(c.machine.name)
            + ("" if n == 0 and not result.pilot.gpus else f", {counted(c.machine.gpus, 'GPU')}"),
            _times(c.seconds),
            f"{c.gpu_hours.low:,.1f} to {c.gpu_hours.high:,.1f}",
            _money_span(c, result.currency),
        )
        for n, c in enumerate(result.costs)
    ]
    tail = f"The end of the run, when places fall empty, costs {duration(result.outlook.tail_s)} of it."
    kept = result.kept
    sizes: list[tuple[object, ...]] = [
        ("output tokens", _span(result.outlook.output_tokens)),
        ("of a row", _span(result.outlook.tokens_per_row)),
        ("output tokens a second, all places taken", _span(result.outlook.tokens_per_s)),
    ]
    if kept.dataset:
        sizes.append(("the dataset on disk", _size(kept.dataset)))
    if kept.hidden_layer and kept.hidden_kept:
        sizes.append(
            (f"hidden states of {kept.layers_kept} layers, were they extracted offline", _size(kept.hidden_kept))
        )
        sizes.append(("the same of one layer", _size(kept.hidden_layer)))
    if result.ceiling:
        c = result.ceiling
        said = f"{c.tokens_per_s:,.0f} tok/s: {_size(c.bytes_per_token)} a token at {_size(c.bandwidth)} a second"
        sizes.append((f"what memory allows, {c.width:,} in flight with {c.context:,.0f} tokens each", said))
    hours = "GPU-hours" if result.pilot.gpus else "hours"
    header = ("machine", "time, nine times in ten", hours, "cost")
    return "\n\n".join([table(header, rows), tail, table(("what", "figure"), sizes)])


def _lengths(result: Result) -> str:
    lengths = [n for row in result.pilot.sample.rows for n in row.turns]
    lines = [f"![Answers of the pilot by length]({lengths_chart(lengths)})"]
    curve = result.curve
    rows: list[tuple[object, ...]] = [("mean, as they are cut now", f"{curve.mean_up_to(curve.longest):,.0f}")]
    for quantile in (0.5, 0.9, 0.99):
        length = curve.quantile(quantile)
        rows.append((f"{quantile:.0%} have at most", "cut off before" if length is None else f"{length:,.0f}"))
    for one in result.larger:
        guess = "too few ended near the budget to say more" if one.guess is None else f"about {one.guess:,.0f}"
        rows.append((f"mean with a budget of {one.budget:,}", f"{one.low:,.0f} to {one.high:,.0f}, {guess}"))
    return "\n\n".join([*lines, table(("tokens of a turn", "figure"), rows)])


def _points(result: Result) -> str:
    if not result.outcomes:
        return "None: the config as it stands was measured alone."
    keys = ("point", "round", "tok/s", "±", "in flight", "held", "J/token", "start", "status", "why")
    rows = [tuple(row[key] for key in keys) for row in points_table(result.outcomes)]
    chart = widths_chart(result.outcomes, result.ceiling.tokens_per_s if result.ceiling else None)
    return f"![Throughput by width]({chart})\n\n" + table(keys, [tuple(map(str, row)) for row in rows])


def _times(span: Span) -> str:
    return f"{duration(span.mid)} ({duration(span.low)} to {duration(span.high)})"


def _span(span: Span) -> str:
    return f"{_tokens(span.mid)} ({_tokens(span.low)} to {_tokens(span.high)})"


def _tokens(number: float) -> str:
    return f"{number / 1e9:,.2f} billion" if number >= 1e9 else f"{number:,.0f}"


def _money_span(cost: Cost, currency: str) -> str:
    return f"{cost.money.low:,.0f} to {cost.money.high:,.0f} {foreign(currency)}" if cost.machine.price else ""


def _size(size: float) -> str:
    """Bytes as a person reads them, by thousands."""
    for unit in UNITS:
        if size < 1000 or unit == UNITS[-1]:
            break
        size /= 1000
    return f"{size:,.3g} {unit}"
