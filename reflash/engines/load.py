"""What a server says of itself while it works: its `/metrics` page, read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reflash.engines.dialects.base import Metrics

_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{[^}]*\})? (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Load:
    """One look at a server; None where it does not say."""

    running: int | None = None  # requests being decoded
    waiting: int | None = None  # requests in its own queue
    generated: int | None = None  # tokens since its start
    cache: float | None = None  # share of the KV cache in use, 0 to 1
    preempted: int | None = None  # requests thrown out of the batch since its start


def read_load(page: str, names: Metrics) -> Load:
    """The figures of a page in Prometheus' text format: of several workers the sum, of cache use the most."""
    found: dict[str, list[float]] = {}
    for name, value in _SAMPLE.findall(page):
        try:
            found.setdefault(name, []).append(float(value))
        except ValueError:
            continue
    cache = found.get(names.cache)
    return Load(
        running=_sum(found.get(names.running)),
        waiting=_sum(found.get(names.waiting)),
        generated=_sum(found.get(names.generated)),
        cache=max(cache) if cache else None,
        preempted=_sum(found.get(names.preempted)),
    )


def _sum(values: list[float] | None) -> int | None:
    total = sum(values) if values else None
    return None if total is None or total != total or abs(total) == float("inf") else int(total)
