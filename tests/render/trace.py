"""A question, and a conversation that calls a tool twice."""

from __future__ import annotations

import json

from reflash.types import Message, ToolCall

ASK = Message("user", "2+2?")
TOOLS = json.dumps(
    [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "description": "Weather of a city",
                "parameters": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "zip": {"type": "string"}},
                },
            },
        }
    ]
)
CALLS = (
    ToolCall("call_0", "weather", '{"city": "Paris", "days": 2}'),
    ToolCall("call_1", "weather", '{"city": "Rome \\"é\\"", "days": 3}'),
)
TRACE = (
    Message("user", "Weather?"),
    Message("assistant", "Looking.", tool_calls=CALLS),
    Message("tool", "18", tool_call_id="call_0", name="weather"),
    Message("tool", "24", tool_call_id="call_1", name="weather"),
)
