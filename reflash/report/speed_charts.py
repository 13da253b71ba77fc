"""Charts of a benchmark: throughput over width, how the run may go. As `data:` URIs, like the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reflash.benchmark.outcome import Outcome
from reflash.forecast.outlook import Outlook
from reflash.report.charts import BAR, FILL, INK, LINES, MARK, TEXT, _chart, _head, _nothing, _time_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTHS = "Output tokens per second by requests in flight"
_FAN = "Percent of the tokens made"
MOST_LINES = 6


def widths_chart(outcomes: Sequence[Outcome], ceiling: float | None = None) -> str:
    """The last rate of each point over its width, a line for each launch; `ceiling` is the rate that memory allows."""
    last = {outcome.point: outcome for outcome in outcomes if outcome.ok}
    lines: dict[str, list[Outcome]] = {}
    for outcome in last.values():
        name = ", ".join(f"{key} {value}" for key, value in outcome.point.launch) or "as configured"
        lines.setdefault(name, []).append(outcome)
    fastest = sorted(lines.items(), key=lambda line: -max(o.tokens_per_s for o in line[1]))[:MOST_LINES]

    def draw(axes: Axes) -> None:
        for number, (name, found) in enumerate(fastest):
            found.sort(key=lambda o: o.width)
            widths, rates = [o.width for o in found], [o.tokens_per_s for o in found]
            colour = BAR if number == 0 else LINES[number % len(LINES)]
            axes.plot(widths, rates, color=colour, linewidth=1.4, marker="o", markersize=4, label=name)
        top = max(o.tokens_per_s for _, found in fastest for o in found)
        if ceiling is not None and ceiling < 4 * top:
            axes.axhline(ceiling, color=MARK, linewidth=1, linestyle=(0, (4, 3)))
            top = max(top, ceiling)
        axes.set_ylim(0, top * 1.18)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _place: f"{value:,.0f}")
        said = f"memory allows {ceiling:,.0f}" if ceiling is not None else ""
        _head(axes, _WIDTHS, said)
        axes.set_xlabel("requests in flight, all engines together", color=INK, fontsize=TEXT)
        axes.legend(frameon=False, labelcolor=INK, fontsize=TEXT - 1, loc="lower right")

    return _chart(draw, height=2.9) if fastest else _nothing(_WIDTHS)


def fan_chart(outlook: Outlook) -> str:
    """Share of the tokens made over time: the slowest, the middle and the quickest course of the interval."""
    unit, size = _time_unit(outlook.seconds.high)
    seconds = outlook.seconds

    def course(end: float) -> tuple[list[float], list[float]]:
        """At the full rate up to the tail, whose rate falls evenly to nothing: its area is half."""
        tail = min(max(0.0, outlook.tail_s), 0.5 * end)
        steady = end - tail
        return [0.0, steady / size, end / size], [0.0, 100 * steady / (steady + tail / 2), 100.0]

    def draw(axes: Axes) -> None:
        slow, quick = course(seconds.high), course(seconds.low)
        axes.fill([*slow[0], *reversed(quick[0])], [*slow[1], *reversed(quick[1])], color=FILL, linewidth=0)
        axes.plot(*course(seconds.mid), color=BAR, linewidth=1.4)
        for edge in (seconds.low, seconds.high):
            axes.axvline(edge / size, color=MARK, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_xlim(0, seconds.high / size * 1.03)
        axes.set_ylim(0, 105)
        said = f"ends after {seconds.low / size:,.1f} to {seconds.high / size:,.1f} {unit}, nine times in ten"
        _head(axes, _FAN, said)
        axes.set_xlabel(f"{unit} since the start", color=INK, fontsize=TEXT)

    return _chart(draw, height=2.5)
