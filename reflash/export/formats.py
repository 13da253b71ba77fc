"""What each trainer reads: one JSON line a row.

Masks cover the ids that the model emitted and nothing else. SpecForge's and DeepSpec's own parsers of conversations
supervise the line feed that templates write behind the end mark too; no model emits it, so a pre-tokenized row has one
supervised token less than the same row given as a conversation. That is so on purpose: a drafter never gets to propose
what comes after the end. DFlash and EAGLE-3 take both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Format:
    """One way to write a dataset row."""

    columns: tuple[str, ...]  # of the dataset that it needs
    line: Callable[[Row], bytes]  # one row as JSON, without a line end
    note: str  # what its reader has to be told


def _tokens(row: Row) -> bytes:
    return orjson.dumps({"input_ids": row["input_ids"], "loss_mask": row["loss_mask"]})


def _talk(key: str, more: Mapping[str, str]) -> Callable[[Row], bytes]:
    def line(row: Row) -> bytes:
        messages = [_lean(message) for message in row["messages"]]
        return _ascii({"id": row["id"], **more, key: messages, "tools": row["tools"]})

    return line


def _deepspec(row: Row) -> bytes:
    """Thinking under its own key and under the one that chat templates read; it has no key for tool definitions."""
    messages = [_lean(message) for message in row["messages"]]
    for message in messages:
        if "reasoning_content" in message:
            message["thinking"] = message["reasoning_content"]
    return _ascii({"id": row["id"], "conversations": messages, "status": "success"})


def _ascii(row: Row) -> bytes:
    """JSON in ASCII: a U+2028 that stands raw in a string breaks the row for a reader that splits lines at it."""
    return json.dumps(row).encode()


def _lean(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message without the keys that only its column needs."""
    return {key: value for key, value in message.items() if value is not None and value != []}


_TOKENS = ("input_ids", "loss_mask")
_TALK = ("id", "messages", "tools")
_LAST = "rows of several turns repeat the turns before theirs as context: train on the last turn of a row only"

FORMATS: dict[str, Format] = {
    "specforge": Format(
        _TOKENS,
        _tokens,
        "its loader holds every row in memory, as Python lists, and cuts rows at its max_length; one whose answer lies"
        " behind that is dropped",
    ),
    "specforge-conversations": Format(
        _TALK,
        _talk("conversations", {"status": "success"}),
        f"data.train_only_last_turn: true, since {_LAST}; rows with tool calls its trainer takes, but not its script"
        " validate_regenerated_data.py",
    ),
    "speculators": Format(_TOKENS, _tokens, "rows longer than the sequence length, 8,192 tokens by default, are cut"),
    "deepspec": Format(
        _TALK,
        _deepspec,
        "it trains on every answer of a row, writes a system prompt of its own where there is none, and shows the model"
        " no tool definitions; rows of fewer than 14 supervised tokens it drops, unless --min-loss-tokens says less",
    ),
    "automodel": Format(_TALK, _talk("messages", {}), f"mask_history: true, since {_LAST}"),
    "messages": Format(_TALK, _talk("messages", {}), _LAST),
}
