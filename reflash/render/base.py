"""What every renderer can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reflash.types import Answer, Message


class Renderer(Protocol):
    """One model's chat format. Pure and safe to use from several threads."""

    @property
    def name(self) -> str:
        """Which renderer it is: a model family, or `template`."""

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Ids that end a turn, the one the template writes first."""

    @property
    def vocabulary(self) -> int:
        """Number of ids: every valid id is below it."""

    @property
    def control_ids(self) -> frozenset[int]:
        """Ids of control tokens (role marks, end marks, thinking and tool marks)."""

    @property
    def digest(self) -> str:
        """A hash of everything that decides the ids: vocabulary, merges, template, family."""

    def prompt(self, messages: Sequence[Message], tools: str, *, thinking: bool) -> tuple[int, ...]:
        """Ids of the prompt that asks for the next assistant turn.

        Text that looks like a control token stays text. Raises RenderError where the template refuses the messages.
        """

    def answer(self, prompt: Sequence[int], output: Sequence[int], tools: str = "") -> Answer:
        """Read emitted ids (the end mark may be missing) back as a message. Never raises on odd output.

        `tools`, as in the prompt, give the types of arguments where the format does not write them.
        """

    def emitted(self, messages: Sequence[Message], tools: str, *, thinking: bool) -> tuple[int, ...]:
        """Ids that the model would have emitted for the last message (an assistant's): for engines that give text only.

        Raises RenderError where the prompt is not a prefix of the whole.
        """

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; what looks like a control token stays text."""

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, control tokens written out."""

    def canonical(self, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each run of ids is what its own text encodes to; for millions of ids at once.

        Run i ends before `ids[ends[i]]`; no run is empty, none holds a control id, and every id is in the vocabulary.
        """
