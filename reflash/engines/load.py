"""What a server says of itself while it works: its `/metrics` page, read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from reflash.engines.dialects.base import Metrics

_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(\{[^}]*\})? (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Load:
    """One look at a server; None where it does not say."""

    running: int | None = None  # requests being decoded
    waiting: int | None = None  # requests in its own queue
    generated: int | None = None  # tokens since its start
    cache: float | None = None  # share of the KV cache in use, 0 to 1
    preempted: int | None = None  # requests thrown out of the batch since its start
    late: bool = False  # tokens count when their request ends, not with every step


def read_load(page: str, names: Metrics) -> Load:
    """The figures of a page in Prometheus' text format: of several workers the sum, of cache use the most."""
    samples = list(_samples(page))

    def values(name: str) -> list[float]:
        bare, _, label = name.partition("{")
        return [value for found, labels, value in samples if found == bare and label.rstrip("}") in labels]

    cache = values(names.cache)
    steps, ends = _sum(values(names.generated)), _sum(values(names.generated_late))
    return Load(
        running=_sum(values(names.running)),
        waiting=_sum(values(names.waiting)),
        generated=ends if steps is None else steps,
        late=steps is None and ends is not None,
        cache=max(cache) if cache else None,
        preempted=_sum(values(names.preempted)),
    )


def _samples(page: str) -> Iterator[tuple[str, str, float]]:
    for name, labels, value in _SAMPLE.findall(page):
        try:
            yield name, labels, float(value)
        except ValueError:
            continue


def _sum(values: list[float] | None) -> int | None:
    total = sum(values) if values else None
    return None if total is None or total != total or abs(total) == float("inf") else int(total)
