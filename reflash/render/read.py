"""A turn's ids read back as text and message, where the engine gave ids."""

from __future__ import annotations

from dataclasses import replace

from reflash.render.base import Renderer
from reflash.types import Turn


def read_turn(turn: Turn, renderer: Renderer, tools: str) -> Turn:
    """Fill in text, content, reasoning, tool calls and thinking from the ids; text that an engine gave stays.

    `tools` are the conversation's.
    """
    if not turn.exact or not turn.output_ids:
        return turn
    answer = renderer.answer(turn.prompt_ids, turn.output_ids, tools)
    return replace(
        turn,
        text=renderer.decode(turn.output_ids),
        content=answer.content,
        reasoning=answer.reasoning,
        tool_calls=answer.tool_calls,
        thinking=answer.thinking,
    )
