"""What every dialect can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from reflash.types import Completion, Prompt


@dataclass(frozen=True, slots=True)
class Metrics:
    """Names in a server's `/metrics` page, "" where it has none; `name{label="value"}` takes only those samples."""

    running: str = ""  # gauge: requests being decoded
    waiting: str = ""  # gauge: requests queued
    generated: str = ""  # counter: tokens emitted since the start, with every step
    generated_late: str = ""  # the same, but of a request when it ends: only where there is no other
    cache: str = ""  # gauge: share of the KV cache in use, 0 to 1
    preempted: str = ""  # counter: requests thrown out of the batch and computed again


class Dialect(Protocol):
    """How one kind of server is asked and read. Pure: no connection, no clock."""

    @property
    def name(self) -> str:
        """As in the config."""

    @property
    def exact(self) -> bool:
        """Whether it takes and gives token ids."""

    @property
    def path(self) -> str:
        """Where requests are posted, from the base URL."""

    @property
    def metrics(self) -> Metrics:
        """Names of the figures the server exports."""

    def body(self, prompt: Prompt, model: str) -> bytes:
        """The JSON of a request."""

    def completion(self, raw: bytes, prompt: Prompt, engine: str, seconds: float) -> Completion:
        """Read the body of a 200 that `engine` gave after `seconds`.

        Raises EngineGarbage where it cannot be read or contradicts itself, EngineLost where the server cut the answer
        off, and whatever fits where the body is an error in disguise. Facts are passed on as they are: whether they
        make a good row is judged elsewhere.
        """
