"""What every engine can do."""

from __future__ import annotations

from typing import Protocol

from reflash.engines.load import Load
from reflash.types import Completion, Prompt


class Engine(Protocol):
    """Something that answers prompts, many at once. One attempt a call: retries are the caller's."""

    @property
    def name(self) -> str:
        """URL, or a name, as it stands in the rows it made."""

    @property
    def version(self) -> str:
        """Engine and version, such as `vllm 0.26.0`; "" where unknown."""

    @property
    def exact(self) -> bool:
        """Whether it takes and gives token ids."""

    @property
    def width(self) -> int:
        """Requests it should have in flight."""

    async def generate(self, prompt: Prompt) -> Completion:
        """Answer one prompt. Raises EngineError of the kind that fits."""

    async def load(self) -> Load | None:
        """What it says of itself now; None where it says nothing, or cannot be asked."""

    def restart(self, why: str) -> bool:
        """Launch it again, since it no longer does its work; False where it was not launched here."""

    async def aclose(self) -> None:
        """Let go of connections, and end what was launched."""
