"""Charts as PNG `data:` URIs, for markdown on a light or a dark page. Pure: the same figures, the same bytes."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Mid tones on a transparent ground: at least 3.4 to 1 against the greys of Prefect's pages, light (#eaeaeb) and dark
# (#26272b), more against white and black.
INK = "#747a84"
FAINT = "#747a8440"
BAR = "#4a86e8"
FILL = "#4a86e833"
MARK = "#c46210"
LINES = ("#c46210", "#2e9e5b", "#b0579f", "#8f7d1d", "#2f93a6", "#d0554f", "#7a70d8", "#7d8b38")

WIDTH = 7.2  # inches
DPI = 144
TEXT, TITLE = 10, 11  # points; a page shows the picture at two thirds of its size
POINTS = 360  # of a curve; more are averaged, so that a run of days costs no more bytes than one of minutes
BINS = 36
BAR_HEIGHT = 0.27  # inches
MAX_BARS = 30

_LENGTHS = "Answers by length"
_RATE = "Output tokens per second"


def throughput_chart(seconds: Sequence[float], tokens: Sequence[float]) -> str:
    """Output tokens a second (`tokens`) at so many seconds after the start, with their mean."""
    if len(seconds) != len(tokens):
        raise ValueError(f"{len(seconds)} times for {len(tokens)} rates")
    times, rates = _averaged(seconds), _averaged(tokens)
    unit, size = _time_unit(max(seconds, default=0.0))

    def draw(axes: Axes) -> None:
        x = [t / size for t in times]
        axes.fill_between(x, rates, color=FILL, linewidth=0)
        axes.plot(x, rates, color=BAR, linewidth=1.4, marker="o" if len(x) == 1 else "", clip_on=False)
        mean = sum(tokens) / len(tokens)
        axes.axhline(mean, color=MARK, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_ylim(0, max(rates) * 1.18 or 1)
        axes.set_xlim(min(x), max(x) if max(x) > min(x) else min(x) + 1)
        _head(axes, _RATE, f"mean {mean:,.0f}")
        axes.set_xlabel(f"{unit} since the start", color=INK, fontsize=TEXT)

    if not len(tokens):
        return _nothing(_RATE)
    return _chart(draw, height=2.5)


def engines_chart(bin_s: float, course: Mapping[str, Sequence[float]], title: str = _RATE) -> str:
    """Output tokens a second in all, and a line an engine where there are several; bins of so many seconds."""
    total = [sum(rates) for rates in zip(*course.values(), strict=True)]
    if not total:
        return _nothing(title)
    unit, size = _time_unit(bin_s * len(total))
    x = [bin_s * (number + 0.5) / size for number in range(len(total))]

    def draw(axes: Axes) -> None:
        axes.fill_between(x, total, color=FILL, linewidth=0)
        axes.plot(x, total, color=BAR, linewidth=1.6, marker="o" if len(x) == 1 else "", clip_on=False, label="all")
        for place, (name, rates) in enumerate(course.items() if len(course) > 1 else ()):
            axes.plot(x, rates, color=LINES[place % len(LINES)], linewidth=1, label=_short(name))
        axes.set_ylim(0, max(total) * 1.18 or 1)
        axes.set_xlim(0, bin_s * len(total) / size)
        _head(axes, title, f"mean {sum(total) / len(total):,.0f}")
        axes.set_xlabel(f"{unit} since the engines were ready", color=INK, fontsize=TEXT)
        if 1 < len(course) <= len(LINES):
            legend = axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=TEXT - 1)
            for text in legend.get_texts():
                text.set_color(INK)
                text.set_parse_math(False)

    return _chart(draw, height=2.5)


def _short(name: str, limit: int = 24) -> str:
    """The end of a name, where those of engines differ; one that begins with `_` would not be in the legend."""
    return f"…{name[-limit:]}" if len(name) > limit else name.replace("_", " ", 1) if name.startswith("_") else name


def lengths_chart(lengths: Sequence[int]) -> str:
    """Answers by their length in tokens, on a logarithmic axis, with the median and the 99th percentile."""
    if not lengths:
        return _nothing(_LENGTHS)
    import numpy as np

    known = np.maximum(1, np.asarray(lengths))
    low, high = known.min() * 0.98, known.max() * 1.02
    if high < low * 4:  # answers of one length get a bar in the middle
        low, high = low / 2, high * 2
    counts, edges = np.histogram(known, bins=np.geomspace(low, high, BINS + 1))
    median, tail = np.percentile(known, [50, 99])
    said = f"median {median:,.0f}, 99th percentile {tail:,.0f}"
    return _histogram(edges.tolist(), counts.tolist(), (float(median), float(tail)), said)


def binned_lengths_chart(counts: Mapping[float, int]) -> str:
    """The same from counts by a bin's largest length in tokens; bins are of one width on a logarithmic axis."""
    ends = sorted(end for end, count in counts.items() if count > 0)
    if not ends:
        return _nothing(_LENGTHS)
    width = min((high / low for low, high in pairwise(sorted(counts))), default=2.0)
    edges, found = [ends[0] / width], []
    for end in ends:
        if end / edges[-1] > width * 1.01:  # empty bins between
            edges.append(end / width)
            found.append(0)
        edges.append(end)
        found.append(counts[end])
    median, tail = _quantile(ends, counts, 0.5), _quantile(ends, counts, 0.99)
    return _histogram(edges, found, (median, tail), f"median ≤ {median:,.0f}, 99th percentile ≤ {tail:,.0f}")


def bars_chart(counts: Mapping[str, int], title: str = "") -> str:
    """One bar a name, in the mapping's order from the top; beyond 30 names the rest is one bar."""
    items = list(counts.items())
    if len(items) > MAX_BARS:
        rest = items[MAX_BARS - 1 :]
        items = [*items[: MAX_BARS - 1], (f"{len(rest)} more", sum(count for _, count in rest))]

    def draw(axes: Axes) -> None:
        places = range(len(items))
        values = [count for _, count in items]
        axes.barh(places, values, color=BAR, height=0.68)
        axes.set_yticks(places, [name for name, _ in items], parse_math=False)
        axes.set_ylim(len(items) - 0.4, -0.6)
        top = max(values) or 1
        axes.set_xlim(0, top * 1.12)
        for place, value in zip(places, values, strict=True):
            axes.text(value + top * 0.008, place, f"{value:,}", color=INK, fontsize=TEXT, va="center")
        axes.xaxis.set_visible(False)
        axes.yaxis.grid(visible=False)
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        if title:
            _head(axes, title, "")

    height = 0.25 + BAR_HEIGHT * max(3, len(items)) + (0.3 if title else 0.0)
    return _chart(draw, height) if items else _nothing(title)


def _histogram(edges: Sequence[float], counts: Sequence[int], lines: Sequence[float], said: str) -> str:
    """Bars between ascending edges, in tokens, with dashed lines and what they mean."""
    from matplotlib.ticker import LogLocator, NullLocator

    def draw(axes: Axes) -> None:
        widths = [(high - low) * 0.92 for low, high in pairwise(edges)]
        axes.bar(edges[:-1], counts, widths, align="edge", color=BAR)
        axes.set_xscale("log")
        for value in lines:
            axes.axvline(value, color=MARK, linewidth=1, linestyle=(0, (4, 3)))
        _head(axes, _LENGTHS, said)
        axes.set_xlabel("tokens", color=INK, fontsize=TEXT)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))  # where lengths span less than a decade too
        axes.xaxis.set_major_formatter(_thousands)
        axes.xaxis.set_minor_locator(NullLocator())

    return _chart(draw, height=2.5)


def _quantile(ends: Sequence[float], counts: Mapping[float, int], share: float) -> float:
    """The end of the bin in which that share of all is reached."""
    wanted = share * sum(counts[end] for end in ends)
    seen = 0
    for end in ends:
        seen += counts[end]
        if seen >= wanted:
            return end
    return ends[-1]


def _chart(draw: Callable[[Axes], None], height: float) -> str:
    """Draw on a bare figure; `height` in inches."""
    # Imported here, since it takes half a second; Figure and not pyplot, which keeps state and may look for a display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    figure.patch.set_alpha(0)
    axes = figure.add_subplot()
    axes.patch.set_alpha(0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    axes.set_axisbelow(True)
    axes.yaxis.grid(visible=True, color=FAINT, linewidth=0.8)
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_formatter(_thousands)
    axes.tick_params(which="both", colors=INK, labelsize=TEXT)
    axes.tick_params(axis="y", length=0)
    draw(axes)
    out = io.BytesIO()
    FigureCanvasAgg(figure).print_png(out, metadata={"Software": None}, pil_kwargs={"optimize": True})
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()


def _head(axes: Axes, left: str, right: str) -> None:
    axes.set_title(left, loc="left", color=INK, fontsize=TITLE, fontweight="bold")
    axes.set_title(right, loc="right", color=MARK, fontsize=TEXT)


def _nothing(title: str) -> str:
    """A low chart that says that there is none."""

    def draw(axes: Axes) -> None:
        _head(axes, title, "")
        axes.set_axis_off()
        axes.text(0.5, 0.5, "too little to draw", color=INK, fontsize=TITLE, ha="center", va="center")

    return _chart(draw, height=0.8)


def _thousands(value: float, _place: Any) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"


def _time_unit(last: float) -> tuple[str, float]:
    """The unit in which the last time, in seconds, reads well, and its seconds."""
    if last < 180:
        return "seconds", 1.0
    return ("minutes", 60.0) if last < 3 * 3600 else ("hours", 3600.0)


def _averaged(values: Sequence[float]) -> list[float]:
    """At most `POINTS` values, each the mean of neighbours."""
    step = -(-len(values) // POINTS) or 1
    groups = [values[i : i + step] for i in range(0, len(values), step)]
    return [sum(group) / len(group) for group in groups]
