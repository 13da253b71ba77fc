"""Ids for answers of engines that give text only: what the model would have emitted, as near as text can tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from reflash.errors import RenderError
from reflash.render.base import Renderer
from reflash.types import Message, Prompt, Turn


def spell_out(turn: Turn, prompt: Prompt, renderer: Renderer) -> Turn:
    """Encode a text-only answer as the template would write it; the row says that its ids are not exact.

    End marks that the engine left in the text are taken off first, so that the turn ends once. Content, thought and
    calls stay as the engine gave them: validation holds the ids against them, since a template may drop or add some.
    """
    content = _without_end(turn.content, renderer)
    thinking: Literal["none", "closed", "open"] = "none"
    if turn.reasoning:
        thinking = "closed" if content or turn.tool_calls else "open"
    answer = Message("assistant", content, turn.reasoning, turn.tool_calls)
    try:
        ids = renderer.emitted((*prompt.messages, answer), prompt.tools, thinking=prompt.thinking)
    except RenderError as error:
        return replace(turn, finish_reason="error", error=f"the chat template refuses the answer: {error}")
    if turn.finish_reason == "length" and ids and ids[-1] in renderer.stop_ids:
        ids = ids[:-1]
    return replace(turn, output_ids=ids, text=renderer.decode(ids), content=content, thinking=thinking)


def _without_end(text: str, renderer: Renderer) -> str:
    ends = [renderer.decode([stop]) for stop in renderer.stop_ids]
    stripped = text.rstrip()
    for end in ends:
        while end and stripped.endswith(end):
            stripped = stripped.removesuffix(end).rstrip()
            text = stripped
    return text
