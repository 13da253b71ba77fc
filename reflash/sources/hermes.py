"""Calls and results written into the text, as Hermes and Qwen prompts do: `<tool_call>`, `<tool_response>`."""

from __future__ import annotations

import re
from dataclasses import replace

from reflash.sources.tools import parse_calls
from reflash.types import Message

_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_RESULT = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)


def unfold(messages: list[Message], repairs: list[str]) -> list[Message]:
    """Messages with such calls and results as what they are; text that only talks of the marks stays text.

    A call counts where a tool's result follows. Raises Unfit where it cannot be read.
    """
    if not any(message.role == "tool" for message in messages):
        return messages
    found: list[Message] = []
    for message, after in zip(messages, [*messages[1:], None], strict=True):
        answered = after is not None and after.role == "tool"
        if message.role == "tool":
            found += _results(message, repairs)
        elif message.role == "assistant" and answered and not message.tool_calls and _CALL.search(message.content):
            calls = parse_calls(_CALL.findall(message.content), repairs)
            repairs.append("calls read from the text of an answer")
            text = _CALL.sub("", message.content).strip()
            found.append(replace(message, content=text, tool_calls=tuple(calls)))
        else:
            found.append(message)
    return found


def _results(message: Message, repairs: list[str]) -> list[Message]:
    results = _RESULT.findall(message.content)
    if not results or _RESULT.sub("", message.content).strip():
        return [message]
    repairs.append("marks around tool results removed")
    return [replace(message, content=result) for result in results]
