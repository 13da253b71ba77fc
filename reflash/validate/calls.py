"""Checks of the tool calls that an answer makes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import orjson

from reflash.types import ToolCall
from reflash.validate.blank import is_blank
from reflash.validate.check import check
from reflash.validate.row import Row


@check("tool-call-broken", "rejected", "A tool call that cannot be read: unclosed, or its arguments are no object.")
def tool_call_broken(row: Row) -> bool:
    return _marks_astray(row) or any(not _readable(call) for call in row.turn.tool_calls)


def _marks_astray(row: Row) -> bool:
    """Whether there are more tool marks than the calls that were read account for, or a closing one is missing."""
    for mark, times in row.marks.calls_marked(len(row.turn.tool_calls)).items():
        seen = row.answer.count(mark) if mark in row.found else 0  # marks within the thinking are drafts
        if seen > times or (seen < times and mark in row.marks.closers and row.in_range):
            return True
    return False


def _readable(call: ToolCall) -> bool:
    try:
        return bool(call.name.strip()) and isinstance(orjson.loads(call.arguments), dict)
    except orjson.JSONDecodeError:
        return False


@check("unknown-tool", "flagged", "A call of a tool that was never offered.")
def unknown_tool(row: Row) -> bool:
    return any(not _offered(call.name, row) for call in row.turn.tool_calls)


def _offered(name: str, row: Row) -> bool:
    """Whether the prompt knows the tool; without definitions, text that names it counts: some sets offer tools so."""
    if name in _names(row.tools) or any(call.name == name for m in row.history for call in m.tool_calls):
        return True
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return not row.tools and any(word.search(m.content) for m in row.history if m.role in ("system", "user"))


@lru_cache(maxsize=64)
def _names(tools: str) -> frozenset[str]:
    offered: list[dict[str, Any]] = orjson.loads(tools) if tools else []
    return frozenset(str(tool["function"]["name"]) for tool in offered)


@check("text-after-call", "flagged", "Text follows a tool call, where the chat format has none: a template drops it.")
def text_after_call(row: Row) -> bool:
    if not row.turn.tool_calls or not row.marks.calls_last:
        return False
    behind = row.answer
    for mark in row.marks.closers & row.found:
        while mark in behind:
            behind = behind[behind.index(mark) + 1 :]
    at_end = bool(behind) and behind != row.answer and behind[-1] not in row.marks.control
    return at_end and not is_blank(row.plain[-1])
