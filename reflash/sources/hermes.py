"""Calls and results written into the text, as Hermes and Qwen prompts do: `<tool_call>`, `<tool_response>`."""

from __future__ import annotations

from dataclasses import replace

from reflash.sources.tools import parse_calls
from reflash.types import Message

_CALL = ("<tool_call>", "</tool_call>")
_RESULT = ("<tool_response>", "</tool_response>")


def marked(text: str, marks: tuple[str, str]) -> tuple[list[str], str]:
    """What stands between the two marks, each time, and the text without it; marks that never end are text.

    By plain searches, each from where the last one ended: an expression with two open ends takes cubic time here.
    """
    opening, closing = marks
    inside: list[str] = []
    around: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start + len(opening))) >= 0:
        inside.append(text[start + len(opening) : end].strip())
        around.append(text[at:start])
        at = end + len(closing)
    return inside, "".join(around) + text[at:]


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
        elif message.role == "assistant" and answered and not message.tool_calls:
            found.append(_calls(message, repairs))
        else:
            found.append(message)
    return found


def _calls(message: Message, repairs: list[str]) -> Message:
    written, text = marked(message.content, _CALL)
    if not written:
        return message
    calls = parse_calls(written, repairs)
    repairs.append("calls read from the text of an answer")
    return replace(message, content=text.strip(), tool_calls=tuple(calls))


def _results(message: Message, repairs: list[str]) -> list[Message]:
    results, text = marked(message.content, _RESULT)
    if not results or text.strip():
        return [message]
    repairs.append("marks around tool results removed")
    return [replace(message, content=result) for result in results]
