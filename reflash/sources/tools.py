"""Tool definitions, calls and which result answers which call."""

from __future__ import annotations

from typing import Any

import orjson

from reflash.printable import printable
from reflash.sources.parse import TOO_DEEP, compact, is_deep
from reflash.sources.raw import Unfit
from reflash.types import ToolCall


def definitions(value: Any, repairs: list[str]) -> str:
    """JSON text of a list of tools, "" where there are none. Raises Unfit where it is something else."""
    if isinstance(value, str):
        if not value.strip():
            return ""
        value = _parsed(value, "tools")
    if isinstance(value, dict):
        repairs.append("tools: one definition wrapped in a list")
        value = [value]
    if not value:
        return ""
    if not isinstance(value, list):
        raise Unfit(f"tools is a {type(value).__name__}, not a list of definitions")
    try:
        return compact([_definition(tool, repairs) for tool in value])
    except Unfit as unfit:
        raise Unfit(f"tools: {unfit}") from unfit


def _definition(tool: Any, repairs: list[str]) -> dict[str, Any]:
    """One definition in OpenAI's form."""
    if isinstance(tool, str):
        tool = _parsed(tool, "a tool definition")
    if not isinstance(tool, dict):
        raise Unfit(f"a tool definition is a {type(tool).__name__}, not an object")
    if isinstance(tool.get("function"), dict):
        if "type" not in tool:
            repairs.append("tools: type function added")
        return {"type": "function", **tool}
    if isinstance(tool.get("name"), str):
        repairs.append("tools: definition wrapped as a function")
        inner = {key: item for key, item in tool.items() if key != "type"}
        return {"type": "function", "function": inner}
    raise Unfit("a tool definition names no function")


def calls_of(message: dict[str, Any], repairs: list[str]) -> list[ToolCall]:
    """Calls that a message makes, under either key that OpenAI has had; ids may still be empty. Raises Unfit."""
    listed = message.get("tool_calls")
    if listed:
        return parse_calls(listed, repairs)
    single = message.get("function_call")
    return parse_calls(single, repairs) if single else []


def parse_calls(value: Any, repairs: list[str]) -> list[ToolCall]:
    """Calls from a list, one object, or the JSON text of either. Raises Unfit."""
    if isinstance(value, str):
        value = _parsed(value, "tool_calls")
        repairs.append("tool_calls read from JSON text")
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        raise Unfit(f"tool_calls is a {type(value).__name__}, not a list")
    return [_call(item, repairs) for item in value]


def _call(item: Any, repairs: list[str]) -> ToolCall:
    if isinstance(item, str):
        item = _parsed(item, "a tool call")
    if not isinstance(item, dict):
        raise Unfit(f"a tool call is a {type(item).__name__}, not an object")
    function = item["function"] if isinstance(item.get("function"), dict) else item
    name = function.get("name")
    if not isinstance(name, str) or not name.strip():
        raise Unfit("a tool call names no function")
    given = next((function[key] for key in ("arguments", "parameters", "args") if function.get(key) is not None), None)
    identity = item.get("id")
    return ToolCall("" if identity is None else str(identity), name, _arguments(given, name, repairs))


def _arguments(value: Any, name: str, repairs: list[str]) -> str:
    """JSON text of an object; the recorded text itself where it is one."""
    what = f"arguments of {printable(name, 80)}"
    if value is None or (isinstance(value, str) and not value.strip()):
        repairs.append(f"empty {what} written as {{}}")
        return "{}"
    if isinstance(value, str):
        return _arguments_text(value, what, repairs)
    if not isinstance(value, dict):
        raise Unfit(f"{what} are a {type(value).__name__}, not an object")
    try:
        return compact(value)
    except Unfit as unfit:
        raise Unfit(f"{what}: {unfit}") from unfit


def _arguments_text(text: str, what: str, repairs: list[str]) -> str:
    if is_deep(text):
        raise Unfit(f"{what}: {TOO_DEEP}")
    parsed = _parsed(text, what)
    if isinstance(parsed, str):
        if is_deep(parsed):
            raise Unfit(f"{what}: {TOO_DEEP}")
        parsed = _parsed(parsed, what)
        repairs.append(f"{what} were JSON text twice over")
        text = compact(parsed)
    if not isinstance(parsed, dict):
        raise Unfit(f"{what} are a {type(parsed).__name__}, not an object")
    return text


def _parsed(text: str, what: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Unfit(f"{what}: not JSON ({error.msg} at character {error.pos + 1})") from error


class Pending:
    """The calls of the turn before, waiting for their results."""

    def __init__(self) -> None:
        self.waiting: list[ToolCall] = []
        self.made = 0  # ids filled so far

    def open(self, calls: list[ToolCall], repairs: list[str]) -> list[ToolCall]:
        """Give each call an id of its own and wait for its result."""
        taken: set[str] = {call.id for call in self.waiting}
        named = []
        for call in calls:
            own = call
            if not call.id or call.id in taken:
                own = ToolCall(self._fresh(taken), call.name, call.arguments)
                repairs.append("ids of tool calls filled")
            taken.add(own.id)
            named.append(own)
        self.waiting += named
        return named

    def _fresh(self, taken: set[str]) -> str:
        while (name := f"call_{self.made}") in taken:
            self.made += 1
        self.made += 1
        return name

    def answer(self, identity: Any, name: Any, repairs: list[str]) -> ToolCall:
        """The call that a result answers: by id, else by name, else in order. Raises Unfit where none waits."""
        if not self.waiting:
            raise Unfit("a tool result that no call asked for")
        chosen = next((call for call in self.waiting if identity is not None and call.id == str(identity)), None)
        if chosen is None:
            repairs.append("tool results matched to their calls in order")
            chosen = next((call for call in self.waiting if call.name == name), self.waiting[0])
        self.waiting.remove(chosen)
        return chosen
