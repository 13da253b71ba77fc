"""Messages in the OpenAI shape, as dicts and as JSON text: one place, so that no key is spelt twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from reflash.types import Message, ToolCall


def messages_json(messages: Sequence[Message]) -> str:
    """Messages as JSON text in the OpenAI shape, without null keys."""
    return orjson.dumps([message_dict(m) for m in messages]).decode()


def message_dict(message: Message) -> dict[str, Any]:
    """One message in the OpenAI shape, without null keys; the thinking under `reasoning_content`."""
    out: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.reasoning is not None:
        out["reasoning_content"] = message.reasoning
    if message.tool_calls:
        out["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in message.tool_calls
        ]
    if message.tool_call_id is not None:
        out["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        out["name"] = message.name
    return out


def messages_from(text: str) -> tuple[Message, ...]:
    """The inverse of `messages_json`."""
    return tuple(
        Message(
            role=m["role"],
            content=m["content"],
            reasoning=m.get("reasoning_content"),
            tool_calls=calls_from(m.get("tool_calls", [])),
            tool_call_id=m.get("tool_call_id"),
            name=m.get("name"),
        )
        for m in orjson.loads(text)
    )


def calls_from(raw: Iterable[dict[str, Any]]) -> tuple[ToolCall, ...]:
    """Tool calls in the OpenAI shape."""
    return tuple(ToolCall(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in raw)
