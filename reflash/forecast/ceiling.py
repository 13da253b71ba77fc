"""The rate that no engine can pass: every step reads the weights once, and the cache of each sequence in it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that a step reads."""

    weights: float  # once a step; of a mixture of experts all of them, since a full batch calls on nearly every one
    cache_per_token: float  # of the context of each sequence
    state_per_sequence: float = 0.0  # of layers that keep a state: read and written


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Tokens a second that the memory allows."""

    tokens_per_s: float
    bytes_per_token: float
    bandwidth: float  # bytes a second, of all GPUs together
    width: int
    context: float  # mean tokens that a sequence holds while it is answered

    def share(self, tokens_per_s: float) -> float:
        """How near to it an engine comes, 0 to 1."""
        return tokens_per_s / self.tokens_per_s


def ceiling(traffic: Traffic, bandwidth: float, width: int, context: float, replicas: int = 1) -> Ceiling | None:
    """For `width` sequences in all, shared out to so many replicas, each of which reads the weights itself.

    None where the bandwidth or the size of the weights is unknown.
    """
    if bandwidth <= 0 or traffic.weights <= 0 or width < 1:
        return None
    sequence = traffic.cache_per_token * context + 2 * traffic.state_per_sequence
    each = replicas * traffic.weights / width + sequence
    return Ceiling(bandwidth / each, each, bandwidth, width, context)
