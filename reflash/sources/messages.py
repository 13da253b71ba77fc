"""The messages of a row, one by one: role, text, reasoning, calls. Their order is judged elsewhere."""

from __future__ import annotations

from typing import Any

from reflash.sources.content import no_media, reasoning_key, split_reasoning, text_of, thoughts_apart, tool_text
from reflash.sources.raw import Unfit
from reflash.sources.roles import ROLES, role_of
from reflash.sources.tools import calls_of, parse_calls
from reflash.types import Message

_ROLE_KEYS = ("role", "from", "speaker", "sender", "author")
_TEXT_KEYS = ("content", "value", "text", "message")
PREFIX_REMOVED = "the beginning of an answer removed: the turn is made from scratch"


def read_messages(listed: list[Any], repairs: list[str]) -> list[Message]:
    """Normalise each message. Raises Unfit naming the message."""
    messages = []
    for number, raw in enumerate(_spread(listed, repairs), 1):
        message = _plain(raw)
        if message is None:
            try:
                message = _message(raw, repairs)
            except Unfit as unfit:
                raise Unfit(f"message {number}: {unfit}") from unfit
        messages.append(message)
    return messages


def _spread(listed: list[Any], repairs: list[str]) -> list[Any]:
    """`{"human": Q, "assistant": A}` holds a message under the name of each role; other lists stay as they are."""
    first = listed[0] if listed else None
    if not isinstance(first, dict) or not first or not all(key in ROLES for key in first):
        return listed
    if not all(isinstance(raw, dict) and all(key in ROLES for key in raw) for raw in listed):
        return listed
    repairs.append("messages were stored under the names of their roles")
    return [{"role": role, "content": text} for raw in listed for role, text in raw.items()]


def _plain(raw: Any) -> Message | None:
    """The common case, made fast: two keys, a known role, plain text."""
    if type(raw) is not dict or len(raw) != 2:
        return None
    name, text = raw.get("role"), raw.get("content")
    if name is None:
        name, text = raw.get("from"), raw.get("value")
    if type(name) is not str or type(text) is not str:
        return None
    role = ROLES.get(name)
    if role == "assistant":
        return None if "think>" in text or text.isspace() else Message("assistant", text)
    if role in ("user", "system") and text and not text.isspace():
        return Message(role, text)
    return None


def _message(raw: Any, repairs: list[str]) -> Message:
    if not isinstance(raw, dict):
        raise Unfit(f"it is {'null' if raw is None else 'a ' + type(raw).__name__}, not an object")
    role = role_of(next((raw[key] for key in _ROLE_KEYS if raw.get(key) is not None), None), repairs)
    content = next((raw[key] for key in _TEXT_KEYS if raw.get(key) is not None), None)
    if role == "calls":
        return Message("assistant", "", tool_calls=tuple(parse_calls(content, repairs)))
    if role == "assistant":
        return _assistant(raw, content, repairs)
    if role == "tool":
        identity, name = raw.get("tool_call_id"), raw.get("name")
        text = tool_text(content, repairs)
        return Message("tool", text, tool_call_id=str(identity) if identity is not None else None, name=_name(name))
    text = text_of(content, repairs)
    no_media(text, raw, "message")
    if role == "user" and not text.strip():
        raise Unfit("empty user turn: its content is null or missing" if content is None else "empty user turn")
    return Message(role, text)


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _assistant(raw: dict[str, Any], content: Any, repairs: list[str]) -> Message:
    content, thought = thoughts_apart(content)
    text = text_of(content, repairs)
    keyed = reasoning_key(raw, repairs)
    inline, text = split_reasoning(text)
    calls = tuple(calls_of(raw, repairs))
    if raw.get("prefix") is True and not calls:
        repairs.append(PREFIX_REMOVED)
        return Message("assistant", "")
    return Message("assistant", text if text.strip() else "", keyed or thought or inline, calls)
