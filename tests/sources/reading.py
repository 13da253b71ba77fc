"""Short ways to put rows into a file and read them back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reflash.config.source import SourceConfig
from reflash.sources.ids import Census
from reflash.sources.open import open_source, rows
from reflash.types import Conversation, SourceRow

ASK = {"role": "user", "content": "Name a river."}
ANSWER = {"role": "assistant", "content": "The Elbe."}


def good(name: str = "a", ask: str = "Name a river.") -> dict[str, Any]:
    """A row that nothing is wrong with."""
    return {"id": name, "messages": [{"role": "user", "content": ask}, ANSWER]}


def read_path(path: Path | str, census: Census | None = None, **config: Any) -> list[SourceRow]:
    """All rows of a source."""
    return list(rows(open_source(SourceConfig(path=str(path), **config)), census=census))


def read_bytes(folder: Path, content: bytes, name: str = "rows.jsonl") -> list[SourceRow]:
    """Rows of a file with this content."""
    path = folder / name
    path.write_bytes(content)
    return read_path(path)


def read_values(folder: Path, *values: Any, census: Census | None = None) -> list[SourceRow]:
    """Rows of a JSON Lines file, one value a line."""
    path = folder / "rows.jsonl"
    path.write_text("\n".join(json.dumps(value) for value in values))
    return read_path(path, census)


def read_one(folder: Path, value: Any) -> SourceRow:
    """The only row of a file."""
    (row,) = read_values(folder, value)
    return row


def read_messages(folder: Path, *messages: dict[str, Any], **columns: Any) -> SourceRow:
    """The row that holds these messages."""
    return read_one(folder, {"messages": list(messages), **columns})


def accepted(row: SourceRow) -> Conversation:
    """The conversation of a row that was not rejected."""
    assert row.conversation is not None, row.reason
    return row.conversation


def dialogue(row: SourceRow) -> list[tuple[str, str]]:
    """Role and text of each message of a row that was not rejected."""
    return [(m.role, m.content) for m in accepted(row).messages]
