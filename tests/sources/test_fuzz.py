"""Whatever stands in a file: a verdict for each row or an error that names the file, and what comes out is sound."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from reflash.errors import SourceError
from reflash.sources.raw import RawRow
from reflash.sources.rows import read
from reflash.sources.scan import values
from reflash.types import Message, Origin
from tests.sources.reading import read_bytes

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
KEYS = st.sampled_from(
    [
        *("id", "messages", "conversations", "role", "from", "content", "value", "tool_calls", "function", "name"),
        *("arguments", "tools", "prompt", "response", "chosen", "text", "type", "reasoning", "tool_call_id", "prefix"),
        *("input_ids", "history", "images", "system"),
    ]
)
WORDS = st.sampled_from(
    [
        *("user", "assistant", "system", "tool", "human", "gpt", "function_call", "observation", "developer", "hi"),
        *(
            "",
            "text",
            "[]",
            "{}",
            "<think>x",
            "</think>",
            '{"name": "f", "arguments": {}}',
            "<tool_call>{}</tool_call>",
        ),
    ]
)
VALUES = st.recursive(
    SCALARS | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=5),
    max_leaves=25,
)
ROLES = st.sampled_from(["user", "assistant", "system", "tool", "function_call", "human", "gpt", "Developer"])
FUNCTION = st.fixed_dictionaries({"name": st.just("f"), "arguments": st.sampled_from(["{}", '{"a": 1}', "", "x"])})
CALL = st.fixed_dictionaries({"function": FUNCTION}, optional={"id": st.sampled_from(["a", "b", None])})
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": ROLES, "content": WORDS | st.none()},
        optional={"tool_calls": st.lists(CALL, max_size=2), "tool_call_id": st.sampled_from(["a", "b", "z"])},
    ),
    max_size=7,
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def sound(messages: tuple[Message, ...]) -> None:
    """What every later stage takes for granted."""
    spoken = [m.role for m in messages if m.role != "system"]
    assert spoken[0] == "user"
    assert messages[-1].role == "assistant"
    never = {("user", "user"), ("assistant", "assistant"), ("tool", "user"), ("user", "tool")}
    assert never.isdisjoint(pairwise(spoken))
    called: set[str] = set()
    for message in messages:
        assert message.role != "user" or message.content.strip()
        assert message.role != "tool" or message.tool_call_id in called
        called |= {call.id for call in message.tool_calls}
        for call in message.tool_calls:
            assert isinstance(json.loads(call.arguments), dict)
        message.content.encode()


def names_the_file(error: SourceError, name: str) -> None:
    assert name in str(error)


def verdict_on(value: Any) -> None:
    result = read(RawRow(Origin("f", 1), value))
    if result.messages:
        sound(result.messages)
        assert result.tools == "" or isinstance(json.loads(result.tools), list)
        assert result.extra == "" or isinstance(json.loads(result.extra), dict)
    else:
        assert result.reason


@settings(max_examples=150, deadline=None)
@given(VALUES | st.dictionaries(KEYS, VALUES, max_size=6))
def test_any_value_gets_a_verdict(value: Any) -> None:
    verdict_on(value)


@settings(max_examples=200, deadline=None)
@given(MESSAGES)
def test_any_order_of_messages_gets_a_verdict(messages: list[dict[str, Any]]) -> None:
    verdict_on({"messages": messages})


@settings(max_examples=120, deadline=None)
@given(st.binary(max_size=300) | st.text(alphabet='[]{}",:\n\\ 1au', max_size=200).map(str.encode), st.integers(0, 3))
def test_any_bytes_give_rows_or_an_error_that_names_the_file(folder: Path, content: bytes, packing: int) -> None:
    packed = (content, gzip.compress(content), zstandard.compress(content), b"\x1f\x8b" + content)[packing]
    try:
        rows = read_bytes(folder, packed, "rows.jsonl")
    except SourceError as error:
        names_the_file(error, "rows.jsonl")
        return
    assert rows
    assert all(row.reason for row in rows if row.verdict == "rejected")


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=6), st.sampled_from([None, 1]), st.booleans())
def test_an_array_holds_as_many_rows_as_json_says(
    folder: Path, elements: list[Any], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(elements, indent=indent, ensure_ascii=ascii_only)
    bare = all(isinstance(e, dict) and ("role" in e or "from" in e) for e in elements) and indent is None
    rows = read_bytes(folder, text.encode("utf-8", "surrogatepass"), "rows.json")
    assert len(rows) == (1 if bare else len(elements))


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='[]{}",\\\n 1a', max_size=60), st.integers(1, 7), st.booleans(), st.sampled_from([7, 1000]))
def test_what_is_scanned_does_not_depend_on_how_it_is_read(text: str, size: int, array: bool, limit: int) -> None:
    data = text.encode()
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    limits = limit if limit > len(data) else limit + sum(char.isspace() for char in text)  # blanks around may count
    outcomes = []
    for chunks in ([data], pieces):
        try:
            outcomes.append(list(values(iter(chunks), array=array, file="f", limit=limits)))
        except SourceError as error:
            outcomes.append(str(error))  # type: ignore[arg-type]
    assert outcomes[0] == outcomes[1]
    if not isinstance(outcomes[0], str):
        assert all(value or fault for _, value, fault in outcomes[0])


@settings(max_examples=60, deadline=None, derandomize=True)  # some damage ends the process inside pyarrow's Parquet
@given(st.integers(0, 400), st.binary(min_size=1, max_size=3), st.sampled_from(["x.parquet", "x.arrow"]))
def test_a_damaged_columnar_file_never_crashes(folder: Path, at: int, damage: bytes, name: str) -> None:
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet as pq

    table = pa.table({"prompt": ["a", "b"]})
    path = folder / f"whole-{name}"
    if name == "x.parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    whole = path.read_bytes()
    try:
        read_bytes(folder, whole[:at] + damage + whole[at + len(damage) :], name)
    except SourceError as error:
        names_the_file(error, name)
