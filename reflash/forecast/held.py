"""A forecast held against what then happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reflash.forecast.outlook import Outlook, Span


@dataclass(frozen=True, slots=True)
class Held:
    """One figure of a forecast and of the run."""

    what: str
    forecast: Span
    actual: float

    @property
    def off(self) -> float:
        """Actual over forecast, less one."""
        return self.actual / self.forecast.mid - 1 if self.forecast.mid else 0.0

    def to_json(self) -> dict[str, Any]:
        """As JSON-able data."""
        span = {"low": self.forecast.low, "mid": self.forecast.mid, "high": self.forecast.high}
        return {**span, "actual": self.actual, "off": self.off, "within": self.forecast.holds(self.actual)}


def hold(outlook: Outlook, seconds: float, output_tokens: int, rows: int) -> tuple[Held, ...]:
    """Time and tokens against a run of so many rows; a run of other rows than were forecast is put to scale.

    The scale is by rows: right while the end of the run is a small part of it.
    """
    scale = rows / outlook.rows if outlook.rows else 1.0
    return (
        Held("seconds", outlook.seconds.times(scale), seconds),
        Held("output tokens", outlook.output_tokens.times(scale), output_tokens),
        Held("tokens per row", outlook.tokens_per_row, output_tokens / max(1, rows)),
    )


def held_json(held: tuple[Held, ...], made: float, point: str) -> dict[str, Any]:
    """For a report: every figure by name, when the forecast was made (Unix time) and by which point."""
    return {"made": made, "point": point, **{h.what: h.to_json() for h in held}}
