"""Emitted text read back: where thinking ends, and which tools are called.

All text here is marked: `<think>` without a mark is the token, or text of a vocabulary that has no such token.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from reflash.render.control import Encoder, unmark
from reflash.types import ToolCall

THINKING = (("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("<seed:think>", "</seed:think>"))
TAIL = 16  # ids of the prompt's end that say whether it opens thinking

CALL, CALLED = "<tool_call>", "</tool_call>"


@dataclass(frozen=True, slots=True)
class Thought:
    """An output cut in two, both marked."""

    state: Literal["none", "closed", "open"]
    reasoning: str | None
    rest: str


@dataclass(frozen=True, slots=True)
class ThinkingMarks:
    """How a model marks its thinking."""

    opens: str
    closes: str

    def prompt_state(self, encoder: Encoder, prompt: Sequence[int]) -> Literal["opened", "closed", "neither"]:
        """What the end of a prompt did: opened thinking, wrote an empty thought, or left it to the model."""
        tail = encoder.decode_marked(prompt[-TAIL:]).rstrip()
        if tail.endswith(self.opens):
            return "opened"
        return "closed" if tail.endswith(self.closes) else "neither"

    def cut(self, text: str, *, opened: bool) -> Thought:
        """Cut marked output. Thinking is there if the prompt opened it, or the output opens it, or closes it."""
        start = text.lstrip()
        if start.startswith(self.opens):
            opened, text = True, start[len(self.opens) :]
        before, close, after = text.partition(self.closes)
        if close:
            return Thought("closed", before.strip(), after)
        return Thought("open", text.strip(), "") if opened else Thought("none", None, text)


def thinking_marks(control: Collection[str], template: str) -> ThinkingMarks | None:
    """The marks that a vocabulary or a template has, if any."""
    for opens, closes in THINKING:
        if (opens in control and closes in control) or closes in template:
            return ThinkingMarks(opens, closes)
    return None


def cut_calls(text: str) -> tuple[str, tuple[ToolCall, ...]]:
    """Content and calls of marked text, where calls are JSON objects in `<tool_call>` blocks.

    A block that holds anything else stays in the content, so that nothing is lost; the last may lack its end. Marks are
    searched for one by one: a pattern over a whole block takes minutes for some thousand spaces.
    """
    calls: list[ToolCall] = []
    kept: list[str] = []
    at = 0
    while (start := text.find(CALL, at)) != -1:
        kept.append(text[at:start])
        end = text.find(CALLED, start)
        inside = text[start + len(CALL) : end if end != -1 else None]
        at = end + len(CALLED) if end != -1 else len(text)
        call = _call(unmark(inside.strip()), len(calls))
        if call is None:
            kept.append(text[start:at])
        else:
            calls.append(call)
    rest = "".join([*kept, text[at:]])
    return (rest.rstrip() if calls else rest), tuple(calls)


def _call(text: str, number: int) -> ToolCall | None:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict) or not isinstance(parsed.get("name"), str) or not parsed["name"]:
        return None
    arguments = arguments_text(parsed.get("arguments", parsed.get("parameters", {})))
    return None if arguments is None else ToolCall(id=f"call_{number}", name=parsed["name"], arguments=arguments)


def arguments_text(arguments: Any) -> str | None:
    """Arguments as the JSON text of an object; text that is JSON already stays as it is.

    None for what are no arguments, and for what is nested deeper than JSON is written.
    """
    if isinstance(arguments, str):
        return arguments
    try:
        return json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else None
    except RecursionError:
        return None


def until_stop(output: Sequence[int], stop_ids: Collection[int]) -> list[int]:
    """Ids before the first one that ends the turn."""
    for place, number in enumerate(output):
        if number in stop_ids:
            return list(output[:place])
    return list(output)
