"""How nouns lie in Parquet: one schema for planned conversations, one for turns, one for judgements."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reflash.errors import RunIncomplete, StoreError
from reflash.messages import calls_from, message_dict, messages_from, messages_json
from reflash.types import Conversation, Judgement, Message, Origin, Planned, Turn

IDS = pa.list_(pa.int32())

PLANNED = pa.schema(
    {
        "id": pa.string(),
        "file": pa.string(),
        "row": pa.int64(),
        "messages": pa.string(),
        "tools": pa.string(),
        "extra": pa.string(),
        "thinking": pa.bool_(),
        "prompt_ids": IDS,
    }
)

TURN = pa.schema(
    {
        "conversation": pa.string(),
        "turn": pa.int32(),
        "position": pa.int32(),
        "prompt_ids": IDS,
        "output_ids": IDS,
        "finish_reason": pa.string(),
        "text": pa.string(),
        "engine_text": pa.string(),
        "content": pa.string(),
        "reasoning": pa.string(),
        "tool_calls": pa.string(),
        "thinking": pa.string(),
        "thinking_on": pa.bool_(),
        "seed": pa.int64(),
        "temperature": pa.float64(),
        "max_new_tokens": pa.int32(),
        "samples": pa.int32(),
        "prompt_tokens": pa.int32(),
        "completion_tokens": pa.int32(),
        "engine": pa.string(),
        "seconds": pa.float64(),
        "finished_at": pa.float64(),
        "attempts": pa.int32(),
        "exact": pa.bool_(),
        "error": pa.string(),
    }
)

JUDGEMENT = pa.schema(
    {
        "conversation": pa.string(),
        "turn": pa.int32(),
        "verdict": pa.string(),
        "reasons": pa.list_(pa.string()),
        "notes": pa.list_(pa.string()),
    }
)

_MAY_BE_NULL = ("engine_text", "reasoning")


def to_parquet(table: pa.Table, **facts: str) -> bytes:
    """A table as the bytes of a Parquet file; `facts` go into its metadata, see `fact`, empty ones do not."""
    buffer = io.BytesIO()
    told = {key: text for key, text in facts.items() if text}
    pq.write_table(table.replace_schema_metadata(told), buffer, compression="zstd")
    return buffer.getvalue()


def fact(table: pa.Table, key: str) -> str:
    """What the file's metadata says, "" where it says nothing."""
    return str((table.schema.metadata or {}).get(key.encode(), b"").decode("utf-8", "replace"))


def from_parquet(data: bytes | Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The table in a Parquet file or its bytes; raises StoreError naming the object where it is torn.

    Of `columns`, those that are not there are left out.
    """
    try:
        with pq.ParquetFile(data if isinstance(data, Path) else io.BytesIO(data)) as file:
            return file.read(columns)
    except (pa.ArrowInvalid, OSError) as error:
        raise StoreError(f"{name} is torn or not Parquet: {error}") from error


def conforming(table: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    """The table's columns of a schema; raises StoreError naming the object where one is missing, or of other values."""
    for field in schema:
        if field.name not in table.column_names:
            raise StoreError(f"{name} lacks the column {field.name}: it is damaged, or of another version")
        column = table[field.name]
        if column.type != field.type or (column.null_count and field.name not in _MAY_BE_NULL):
            raise StoreError(f"{name}: the column {field.name} holds other values than {field.type}: it is damaged")
    return table.select(schema.names)


def planned_table(rows: Sequence[Planned]) -> pa.Table:
    """Planned conversations, in order."""
    return pa.table(
        {
            "id": [r.conversation.id for r in rows],
            "file": [r.origin.file for r in rows],
            "row": [r.origin.row for r in rows],
            "messages": [messages_json(r.conversation.messages) for r in rows],
            "tools": [r.conversation.tools for r in rows],
            "extra": [r.conversation.extra for r in rows],
            "thinking": [r.thinking for r in rows],
            "prompt_ids": [r.prompt_ids for r in rows],
        },
        schema=PLANNED,
    )


def planned_rows(table: pa.Table) -> list[Planned]:
    """The inverse of `planned_table`."""
    columns = _columns(table)
    facts = zip(columns["id"], columns["messages"], columns["tools"], columns["extra"], strict=True)
    conversations = [Conversation(name, messages_from(text), tools, extra) for name, text, tools, extra in facts]
    origins = map(Origin, columns["file"], columns["row"])
    return list(map(Planned, conversations, origins, columns["thinking"], columns["prompt_ids"]))


def _columns(table: pa.Table) -> dict[str, list[Any]]:
    """Columns as Python lists, id lists as tuples (`to_pylist` would take a microsecond an id)."""
    return {
        name: _id_tuples(table[name]) if table.schema.field(name).type == IDS else table[name].to_pylist()
        for name in table.column_names
    }


_INTS: dict[int, int] = {}  # one object an id, not one an occurrence: a shard of long prompts takes a quarter


def _id_tuples(column: pa.ChunkedArray) -> list[tuple[int, ...]]:
    out: list[tuple[int, ...]] = []
    for chunk in column.chunks:
        ids = chunk.flatten().to_numpy()
        at = 0
        for length in pc.list_value_length(chunk).to_pylist():
            out.append(tuple([_INTS.setdefault(i, i) for i in ids[at : at + length].tolist()]))
            at += length
    return out


_TURN_FIELDS = [f.name for f in fields(Turn)]


def turn_table(turns: Sequence[Turn]) -> pa.Table:
    """Turns, in order."""
    columns: dict[str, list[Any]] = {name: [getattr(t, name) for t in turns] for name in _TURN_FIELDS}
    columns["tool_calls"] = [
        orjson.dumps(message_dict(Message("assistant", "", tool_calls=calls))["tool_calls"]).decode() if calls else ""
        for calls in columns["tool_calls"]
    ]
    return pa.table(columns, schema=TURN)


def turn_rows(table: pa.Table) -> list[Turn]:
    """The inverse of `turn_table`."""
    columns = _columns(table)
    columns["tool_calls"] = [calls_from(orjson.loads(text)) if text else () for text in columns["tool_calls"]]
    return list(map(Turn, *(columns[name] for name in _TURN_FIELDS)))


def whole_and_ordered(turns: pa.Table, expected: Mapping[str, int], shard: str) -> pa.Array:
    """Positions in `turns` that hold each expected conversation once, whole, in the order of `expected`.

    `expected` gives turns by conversation. Raises RunIncomplete naming a conversation that is missing or not whole.
    """
    where: dict[tuple[str, int], int] = {}
    keys = zip(turns["conversation"].to_pylist(), turns["turn"].to_pylist(), strict=True)
    for position, key in enumerate(keys):
        where.setdefault(key, position)
    missing = [c for c, count in expected.items() if any((c, n) not in where for n in range(count))]
    if missing:
        raise RunIncomplete(
            f"shard {shard}: {len(missing)} of {len(expected)} conversations have no answer yet,"
            f" the first is {missing[0]}; the same command goes on with them"
        )
    return pa.array([where[c, n] for c, count in expected.items() for n in range(count)], pa.int64())


def judgement_table(judgements: Sequence[Judgement]) -> pa.Table:
    """Judgements, in order."""
    columns = {name: [getattr(j, name) for j in judgements] for name in JUDGEMENT.names}
    return pa.table(columns, schema=JUDGEMENT)


def judgement_rows(table: pa.Table) -> list[Judgement]:
    """The inverse of `judgement_table`."""
    return [
        Judgement(r["conversation"], r["turn"], r["verdict"], tuple(r["reasons"]), tuple(r["notes"]))
        for r in table.to_pylist()
    ]


def rows_told(table: pa.Table) -> str:
    """`rows_judged` of any table, "" of one whose rows are no turns."""
    return rows_judged(table) if {"conversation", "turn"} <= set(table.column_names) else ""


def rows_judged(table: pa.Table) -> str:
    """A digest of which turns a table of judgements is on: one that lost rows has another."""
    keys = orjson.dumps([table["conversation"].to_pylist(), table["turn"].to_pylist()])
    return hashlib.blake2b(keys, digest_size=16).hexdigest()


def is_object(text: str) -> bool:
    """Whether text is the JSON of an object."""
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False
