"""What each trainer reads: one JSON line a row.

Masks cover the ids that the model emitted and nothing else. SpecForge's own parser of conversations supervises the line
feed that its template writes behind the end mark too; no model emits it, so a pre-tokenized row has one supervised
token less than the same row given as a conversation. DFlash and EAGLE-3 take both.
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
        # All ASCII: a U+2028 that stands raw in a string breaks the row for a reader that splits lines at it.
        return json.dumps({"id": row["id"], **more, key: messages, "tools": row["tools"]}).encode()

    return line


def _lean(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message without the keys that only its column needs."""
    return {key: value for key, value in message.items() if value is not None and value != []}


_TOKENS = ("input_ids", "loss_mask")
_TALK = ("id", "messages", "tools")
_LAST = "rows of several turns repeat the turns before theirs as context: train on the last turn of a row only"

FORMATS: dict[str, Format] = {
    "specforge": Format(_TOKENS, _tokens, "its loader holds every row in memory, as Python lists"),
    "specforge-conversations": Format(
        _TALK, _talk("conversations", {"status": "success"}), f"data.train_only_last_turn: true, since {_LAST}"
    ),
    "speculators": Format(_TOKENS, _tokens, "rows longer than the sequence length, 8,192 tokens by default, are cut"),
    "automodel": Format(_TALK, _talk("messages", {}), f"mask_history: true, since {_LAST}"),
    "messages": Format(_TALK, _talk("messages", {}), _LAST),
}
