"""What a message says: text from strings, lists of text parts and numbers; everything else is refused by name."""

from __future__ import annotations

import re
from typing import Any

from reflash.printable import printable
from reflash.sources.parse import compact
from reflash.sources.raw import Unfit

_TEXT_PARTS = (None, "text", "input_text", "output_text")
_THOUGHT_PARTS = ("thinking", "reasoning")
_REASONING = ("reasoning_content", "reasoning", "thinking")
_OPEN, _CLOSE = "<think>", "</think>"
_TALKED_BEFORE = " \t`'\"“‘(«"
_TALKED_AFTER = " \t`'\"”’)».,;:!?"
_PLACEHOLDER = re.compile("<(image|video|audio)>")
MEDIA = ("images", "image", "videos", "video", "audios", "audio")


def text_of(value: Any, repairs: list[str]) -> str:
    """Text of a message's content. Raises Unfit naming what is not text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list):
        return _joined(value, repairs)
    if isinstance(value, bool):
        raise Unfit("content is a boolean, not text")
    if isinstance(value, int) or (isinstance(value, float) and value - value == 0):
        repairs.append("number read as text")
        return str(value)
    if isinstance(value, dict) and _is_text_part(value):
        return _joined([value], repairs)
    raise Unfit(f"content is {_named(value)}, not text")


def tool_text(value: Any, repairs: list[str]) -> str:
    """Text of a tool's result, which may be any JSON value. Raises Unfit on images and the like."""
    parts = isinstance(value, list) and all(isinstance(part, str | dict) for part in value)
    if isinstance(value, str | None) or (parts and any(isinstance(p, dict) and "type" in p for p in value)):
        return text_of(value, repairs)
    repairs.append("tool result written as JSON text")
    return compact(value)


def _joined(parts: list[Any], repairs: list[str]) -> str:
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and _is_text_part(part):
            texts.append(part["text"])
        else:
            kind = part.get("type") if isinstance(part, dict) else None
            raise Unfit(f"non-text part: {printable(str(kind), 40) if kind else _named(part)}")
    if texts:
        repairs.append("text parts joined")
    return "".join(texts)


def _is_text_part(part: dict[str, Any]) -> bool:
    return part.get("type") in _TEXT_PARTS and isinstance(part.get("text"), str)


def _named(value: Any) -> str:
    names = {dict: "an object", list: "a list", bool: "a boolean", type(None): "null", bytes: "bytes"}
    return names.get(type(value), f"a {type(value).__name__}")


def no_media(text: str, holder: dict[str, Any], where: str) -> None:
    """Refuse text that stands beside images, sound or video: without them it would ask about nothing."""
    for key in MEDIA:
        if holder.get(key) and (where == "message" or _PLACEHOLDER.search(text)):
            raise Unfit(f"non-text part: column {key}")


def thoughts_apart(content: Any) -> tuple[Any, str | None]:
    """Content without its thinking parts, and the text of those."""
    if not isinstance(content, list):
        return content, None
    kinds = [part.get("type") if isinstance(part, dict) else None for part in content]
    if not any(kind in _THOUGHT_PARTS for kind in kinds):
        return content, None
    thoughts = [p for p, kind in zip(content, kinds, strict=True) if kind in _THOUGHT_PARTS]
    said = [str(p.get("thinking") or p.get("reasoning") or p.get("text") or "") for p in thoughts]
    return [p for p, kind in zip(content, kinds, strict=True) if kind not in _THOUGHT_PARTS], "".join(said)


def reasoning_key(message: dict[str, Any], repairs: list[str]) -> str | None:
    """Reasoning that stands under a key of its own."""
    for key in _REASONING:
        value = message.get(key)
        if value is None or value == "":
            continue
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return _joined(value, repairs) or None
        repairs.append(f"{key} is {_named(value)}, not text: left out")
    return None


def split_reasoning(text: str) -> tuple[str | None, str]:
    """Reasoning and answer of an assistant's text.

    A block counts only at the start; unclosed, all is reasoning; with a closing tag alone, what stands before it.
    A tag that the text talks about stays text.
    """
    start = text.lstrip()
    if start.startswith(_OPEN):
        thought, _, answer = start.removeprefix(_OPEN).partition(_CLOSE)
        return thought.strip() or None, answer.lstrip("\n")
    at = text.find(_CLOSE)
    if at < 0 or _OPEN in text[:at] or _talked_of(text, at):
        return None, text
    return text[:at].strip() or None, text[at + len(_CLOSE) :].lstrip("\n")


def _talked_of(text: str, at: int) -> bool:
    before, after = text[at - 1 : at], text[at + len(_CLOSE) :][:1]
    return before != "" and before in _TALKED_BEFORE and after != "" and after in _TALKED_AFTER
