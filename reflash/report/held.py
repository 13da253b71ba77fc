"""The forecast that a benchmark made, held against what the run then took."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import orjson

from reflash.config.paths import local_path
from reflash.config.run import RunConfig
from reflash.errors import ReflashError
from reflash.forecast.held import held_json, hold
from reflash.forecast.outlook import read_outlook
from reflash.ledger.ledger import Ledger
from reflash.printable import printable
from reflash.publish.summary import ShardSummary
from reflash.report.attempt import Attempt
from reflash.report.words import duration, table

log = logging.getLogger(__name__)

FORECAST = "benchmark/forecast.json"  # in the run's folder, where `reflash benchmark` puts it


def held(
    config: RunConfig, ledger: Ledger, total: ShardSummary, rows: int, attempts: Sequence[Attempt]
) -> dict[str, Any] | None:
    """Forecast and actual, for a run of so many rows that is complete; None where there is no forecast.

    A forecast that cannot be read is told in the log: it must not spoil the report of a run that went well. So is a
    run whose attempts left no report: its time is not known.
    """
    try:
        data = _forecast(config, ledger)
        if data is None or not attempts:
            return None
        found = orjson.loads(data)
        outlook = read_outlook(found["outlook"])
        made, point = float(found["made"]), str(found["point"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, OSError, ReflashError) as error:
        log.warning("the forecast cannot be read (%s): the run is not held against it", printable(repr(error)))
        return None
    told = sum(attempt.turns for attempt in attempts)
    if told < sum(total.engines.values()):
        log.warning(
            "an attempt ended without a report: the run's time is not known, and is not held against a forecast"
        )
        return None
    seconds = sum(attempt.seconds for attempt in attempts)
    return held_json(hold(outlook, seconds, total.output_tokens, rows), made, point)


def held_text(found: dict[str, Any] | None) -> str:
    """As markdown; "" where there is nothing."""
    if found is None:
        return ""
    rows: list[tuple[object, ...]] = []
    for what in ("seconds", "output tokens", "tokens per row"):
        one = found[what]
        show = duration if what == "seconds" else "{:,.0f}".format
        between = f"{show(one['mid'])} ({show(one['low'])} to {show(one['high'])})"
        within = "yes" if one["within"] else "no"
        rows.append(
            (("time" if what == "seconds" else what), between, show(one["actual"]), f"{one['off']:+.1%}", within)
        )
    return "## Against its forecast\n\n" + table(
        ("what", "forecast, nine times in ten", "actual", "off", "within"), rows
    )


def _forecast(config: RunConfig, ledger: Ledger) -> bytes | None:
    """The bytes of the forecast that the config names, or of the one in the run's folder; None where there is none."""
    named = config.benchmark.forecast
    return ledger.store.get(FORECAST) if named is None else local_path(named).read_bytes()
