"""Messages as the dictionaries that templates read, every string from outside marked."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from reflash.errors import RenderError
from reflash.messages import message_dict
from reflash.types import Message

TOO_DEEP = "arguments of a call, or tools, are nested too deep"


class Marked:
    """Turns messages and tools into dictionaries, with `mark` over every string in them."""

    def __init__(self, mark: Callable[[Any], Any]) -> None:
        self._mark = mark
        # Rows of a set share their tools: one parse for many.
        self._tools = lru_cache(maxsize=256)(lambda tools: mark(parse_tools(tools)))

    def messages(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """One dictionary a message, without null keys; arguments of calls as objects where they are ones."""
        return [self._message(message) for message in messages]

    def tools(self, tools: str) -> list[Any] | None:
        """Tool definitions, marked, or None where there are none. Not to be changed. Raises RenderError on bad JSON."""
        return self._tools(tools) if tools else None

    def _message(self, message: Message) -> dict[str, Any]:
        out = message_dict(message)
        for call in out.get("tool_calls", ()):
            call["function"]["arguments"] = _object(call["function"]["arguments"])
        marked: dict[str, Any] = self._mark(out)
        return marked


@lru_cache(maxsize=256)
def parse_tools(tools: str) -> list[Any] | None:
    """Tool definitions of a row, or None where there are none. Not to be changed. Raises RenderError on bad JSON."""
    try:
        parsed = json.loads(tools) if tools else None
    except RecursionError:
        raise RenderError(TOO_DEEP) from None
    except ValueError as error:
        raise RenderError(f"tools are not JSON ({error}): {tools[:80]}") from error
    if parsed is not None and not isinstance(parsed, list):
        raise RenderError(f"tools are not a list of definitions: {tools[:80]}")
    return parsed or None


def _object(arguments: str) -> Any:
    """Arguments as an object; text that is none stays text, which templates write as it is."""
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return parsed if isinstance(parsed, dict) else arguments
