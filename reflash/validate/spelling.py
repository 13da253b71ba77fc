"""Whether ids made of an engine's text say what the engine said: a template may drop a thought, or add one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from reflash.types import Answer, ToolCall, Turn


def differs(said: Turn, spelled: Answer) -> bool:
    """Compare an engine's own words with those that its ids read back as; spaces at the ends are the template's."""
    invented = spelled.thinking != "none" and not said.reasoning
    return (
        invented
        or (said.reasoning or "").strip() != (spelled.reasoning or "").strip()
        or said.content.strip() != spelled.content.strip()
        or _plain(said.tool_calls) != _plain(spelled.tool_calls)
    )


def _plain(calls: Sequence[ToolCall]) -> list[tuple[str, bytes]]:
    return [(call.name, _arguments(call.arguments)) for call in calls]


def _arguments(text: str) -> bytes:
    """Arguments in one spelling. Some formats write values bare, so that `"1"` and `1` are the same ids."""
    try:
        parsed = orjson.loads(text)
        if isinstance(parsed, dict):
            parsed = {name: _bare(value) for name, value in parsed.items()}
        return orjson.dumps(parsed, option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONDecodeError, TypeError):  # TypeError: over 254 levels
        return text.encode(errors="surrogatepass")


def _bare(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
