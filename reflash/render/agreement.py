"""Whether two renderers write the same ids, tried on a few conversations."""

from __future__ import annotations

import json
from collections.abc import Iterator

from reflash.errors import RenderError
from reflash.render.base import Renderer
from reflash.types import Message, ToolCall

_ASK = Message("user", "What is the capital of France?")
_TOOL = {
    "name": "weather",
    "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
_TOOLS = json.dumps([{"type": "function", "function": _TOOL}])
_THOUGHT = (
    _ASK,
    Message("assistant", "Paris.", reasoning="Easy.\nFrance, so Paris."),
    Message("user", "And of Italy?"),
)
_TRACE = (
    Message("user", "Weather in Paris and Rome?"),
    Message(
        "assistant",
        "",
        tool_calls=(
            ToolCall("call_0", "weather", '{"city": "Paris"}'),
            ToolCall("call_1", "weather", '{"city": "Rome"}'),
        ),
    ),
    Message("tool", "18 degrees", tool_call_id="call_0", name="weather"),
    Message("tool", "24 degrees", tool_call_id="call_1", name="weather"),
)


def difference(first: Renderer, second: Renderer) -> str:
    """What two renderers differ over, or "".

    An earlier answer with thinking off is not tried: there the hand-made ones keep an empty thought on purpose.
    """
    for what, messages, tools, thinking in _cases():
        if _prompt(first, messages, tools, thinking) != _prompt(second, messages, tools, thinking):
            return what
    return ""


def _cases() -> Iterator[tuple[str, tuple[Message, ...], str, bool]]:
    system = Message("system", "Be brief.")
    yield "a first question", (_ASK,), "", True
    yield "a first question with thinking off", (_ASK,), "", False
    yield "a system prompt", (system, _ASK), "", True
    yield "earlier turns", _THOUGHT, "", True
    yield "tools", (system, *_TRACE), _TOOLS, True


def _prompt(renderer: Renderer, messages: tuple[Message, ...], tools: str, thinking: bool) -> tuple[int, ...] | None:
    try:
        return renderer.prompt(messages, tools, thinking=thinking)
    except RenderError:
        return None
