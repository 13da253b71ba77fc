"""What one measurement of one point gave: a rate, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from reflash.benchmark.points import Point, point

Status = Literal["measured", "did not start", "broke", "not reached"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One point in one round."""

    point: Point
    round: int  # 0-based
    status: Status
    why: str = ""  # where it was not measured
    tokens_per_s: float = 0.0  # steady: all places taken, neither the first answers nor the last
    spread: float = 0.0  # relative standard error of that
    windows: int = 0
    seconds: float = 0.0  # that were looked at
    launch_s: float = 0.0  # from the start to the first token, shared with the points of the same launch
    engines: int = 0  # replicas
    gpus: int = 0  # used by all of them
    width: int = 0  # requests in flight asked for, all engines together
    running: float | None = None  # held by the engines, on average, by their own figures
    waiting: float | None = None  # in their queues
    cache: float | None = None  # share of the KV cache in use, at most
    preempted: int | None = None  # requests thrown out of the batch
    watts: float | None = None  # of the GPUs, on average
    memory: int | None = None  # bytes in use on the fullest GPU
    failed: int = 0  # requests that an engine lost or answered with garbage
    version: str = ""  # engine and version

    @property
    def ok(self) -> bool:
        """Whether there is a rate."""
        return self.status == "measured"

    @property
    def error(self) -> float:
        """Standard error of the rate, in tokens a second; half a percent at the least."""
        return self.tokens_per_s * max(self.spread, 0.005)

    @property
    def joules_per_token(self) -> float | None:
        """Energy of an output token, on its GPUs alone."""
        return self.watts / self.tokens_per_s if self.watts and self.tokens_per_s else None

    def to_json(self) -> dict[str, Any]:
        """As JSON-able data."""
        return asdict(self) | {"point": dict(self.point.settings), "joules_per_token": self.joules_per_token}


def read_outcome(data: Mapping[str, Any]) -> Outcome:
    """The inverse of `Outcome.to_json`; raises KeyError or TypeError where it is none."""
    known = {f.name for f in fields(Outcome)} - {"point"}
    return Outcome(point=point(data["point"]), **{key: value for key, value in data.items() if key in known})
