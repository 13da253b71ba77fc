"""What stands before each generated turn: recorded messages, with the new answers in place of the old."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson

from reflash.types import Conversation, Message, ToolCall, Turn


def new_message(old: Message, turn: Turn) -> Message | None:
    """The message that a turn (read back) leaves in the history; None where what was recorded after it cannot follow.

    New calls take the recorded ids, so that the recorded results answer them; where they differ from the recorded
    calls, or the answer is not usable, nothing can follow.
    """
    if turn.finish_reason != "stop" or turn.thinking == "open" or not (turn.content or turn.tool_calls):
        return None
    calls = fitting_calls(old.tool_calls, turn.tool_calls)
    return None if calls is None else Message("assistant", turn.content, turn.reasoning, calls)


def histories(conversation: Conversation, turns: Sequence[Turn]) -> list[tuple[Message, ...]]:
    """The messages before each turn, given the turns read back in order; an old answer stays where none can follow."""
    messages = list(conversation.messages)
    before = []
    for turn in turns:
        before.append(tuple(messages[: turn.position]))
        messages[turn.position] = new_message(messages[turn.position], turn) or messages[turn.position]
    return before


def fitting_calls(recorded: tuple[ToolCall, ...], made: tuple[ToolCall, ...]) -> tuple[ToolCall, ...] | None:
    """The new calls under the recorded ids, None where they differ in number, name or arguments."""
    if [(c.name, _canonical(c.arguments)) for c in recorded] != [(c.name, _canonical(c.arguments)) for c in made]:
        return None
    return tuple(replace(new, id=old.id) for old, new in zip(recorded, made, strict=True))


def _canonical(arguments: str) -> bytes:
    try:
        return orjson.dumps(orjson.loads(arguments), option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONDecodeError, TypeError):  # TypeError: over 254 levels
        return arguments.encode(errors="surrogatepass")
