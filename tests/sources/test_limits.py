"""Files made to fill the memory or the stack: bounded pieces, bounded rows, a reason for what is set aside."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import zstandard

from reflash.errors import SourceError
from reflash.sources.columns import ArrowPart, ParquetPart
from reflash.sources.groups import groups
from reflash.sources.hermes import marked
from reflash.sources.parquet_pages import batch_size
from reflash.sources.parse import DEEPEST
from reflash.sources.raw import RawRow
from reflash.sources.rows import MOST
from reflash.sources.scan import MAX_ROW
from reflash.sources.sizes import slices, spread
from reflash.sources.streams import CHUNK, text_chunks
from reflash.types import Origin
from tests.sources.reading import accepted, good, read_bytes, read_messages, read_path, read_values

PACKERS = (gzip.compress, zstandard.compress, bz2.compress, lzma.compress)
MIB = "x" * (1 << 20)


@pytest.mark.parametrize("pack", PACKERS)
def test_a_bomb_is_unpacked_by_bounded_pieces(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "x.jsonl").write_bytes(pack(b"\0" * (70 << 20)))
    sizes = [len(chunk) for chunk in text_chunks(tmp_path / "x.jsonl", "x")]
    assert sum(sizes) == 70 << 20
    assert max(sizes) <= 2 * CHUNK


@pytest.mark.parametrize("pack", PACKERS[:2])
def test_a_row_beyond_the_limit_is_set_aside_and_reading_goes_on(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    lines = [json.dumps(good()).encode(), b'{"x": "' + b"y" * MAX_ROW + b'"}', json.dumps(good("b", "Two?")).encode()]
    for text in (b"\n".join(lines), b"[" + b",".join(lines) + b"]"):
        rows = read_bytes(tmp_path, pack(text))
        assert [row.verdict for row in rows] == ["accepted", "rejected", "accepted"]
        assert (rows[1].origin.row, rows[1].reason) == (2, "longer than 32 MiB")


def test_a_header_that_asks_for_much_memory_is_an_error(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 20}]
    packed = bytearray(lzma.compress(b"{}", filters=filters))
    at = packed.index(b"\x21\x01") + 2  # LZMA2's size of the dictionary
    packed[at] = 40  # 4 GiB
    packed[20:24] = zlib.crc32(bytes(packed[12:20])).to_bytes(4, "little")
    with pytest.raises(SourceError, match=r"rows\.jsonl: unreadable .*[Mm]emory"):
        read_bytes(tmp_path, bytes(packed))


def test_many_long_rows_are_not_held_together() -> None:
    raw = [RawRow(Origin("f", n), None, size=10 << 20) for n in range(5)]
    assert [len(group) for group, _ in groups(iter(raw), 256)] == [1] * 5
    short = [RawRow(Origin("f", n), None, size=10) for n in range(600)]
    assert [len(group) for group, _ in groups(iter(short), 256)] == [256, 256, 88]


def coded(rows: int) -> pa.Table:
    """Many rows that all mean the one long text of a dictionary."""
    return pa.table({"prompt": pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([MIB]))})


def test_a_dictionary_that_blows_up_is_read_by_a_few_rows(tmp_path: Path) -> None:
    table = coded(200)
    pq.write_table(table, tmp_path / "coded.parquet")
    pq.write_table(table.cast(pa.schema({"prompt": pa.string()})).slice(0, 20), tmp_path / "plain.parquet")
    with pa.ipc.new_file(str(tmp_path / "x.arrow"), table.schema) as writer:
        writer.write_table(table)
    for part, rows in (
        (ParquetPart("x", tmp_path / "coded.parquet"), 200),
        (ParquetPart("x", tmp_path / "plain.parquet"), 20),
        (ArrowPart("x", tmp_path / "x.arrow"), 200),
    ):
        counts = [batch.num_rows for batch in part.batches()]
        assert (sum(counts), max(counts) <= 8) == (rows, True)


def test_the_dictionary_page_of_a_text_column_bounds_what_is_decoded_at_once(tmp_path: Path) -> None:
    long = pa.table({"prompt": ["a"] * 20_000 + [MIB] * 100})
    pq.write_table(long, tmp_path / "x.parquet", row_group_size=50_000)
    opened = pq.ParquetFile(tmp_path / "x.parquet")
    with (tmp_path / "x.parquet").open("rb") as handle:
        assert batch_size(opened.metadata, handle, None, "x") <= 256
        assert batch_size(opened.metadata, handle, ("other",), "x") == 4096


@pytest.mark.parametrize("write", ["parquet", "arrow"])
def test_a_row_of_columns_beyond_the_limit_is_set_aside_alone(tmp_path: Path, write: str) -> None:
    table = pa.table({"prompt": ["One?", "Two?", "Three?"], "x": [["y"], [MIB] * 33, ["z"]]})
    path = tmp_path / f"x.{write}"
    if write == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    rows = read_path(path)
    assert [row.verdict for row in rows] == ["accepted", "rejected", "accepted"]
    assert (rows[1].origin.row, rows[1].reason) == (2, "longer than 32 MiB")


def test_rows_of_endless_lists_are_refused_before_they_are_decoded(tmp_path: Path) -> None:
    values = pa.array([None] * (5 << 20), pa.int8())
    lists = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    pq.write_table(pa.table({"input_ids": lists}), tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 5000
    with pytest.raises(SourceError, match=r"x\.parquet: the rows of its row group 0 take more than 32 MiB each"):
        read_path(tmp_path / "x.parquet")


TEXT = "x" * 1000


@pytest.mark.parametrize(
    ("values", "least"),
    [
        (pa.array([TEXT] * 5), 5000),
        (pa.array([TEXT] * 9).slice(4, 5), 5000),
        (pa.array([TEXT] * 5, pa.string_view()), 5000),
        (pa.array([TEXT] * 5).dictionary_encode(), 5000),
        (pa.array([[TEXT] * 5]), 5000),
        (pa.array([[TEXT] * 2] * 9).slice(2, 3), 6000),
        (pa.array([[(TEXT, 1)] * 5], pa.map_(pa.string(), pa.int32())), 5000),
        (pa.array([{"a": TEXT}] * 5), 5000),
        (pa.array([b"x" * 1000] * 5, pa.binary(1000)), 5000),
        (pa.array([[1, 2, 3]] * 5, pa.list_(pa.int8(), 3)), 15 * 8),
        (pa.RunEndEncodedArray.from_arrays([5], [TEXT]), 5000),
        (pa.ListArray.from_arrays([0, 2, 5], pa.array([TEXT] * 5).dictionary_encode()), 5000),
        (pa.ListViewArray.from_arrays([0, 0, 0], [5, 5, 5], pa.array([TEXT] * 5)), 15_000),
        (pa.array([[], None], pa.list_(pa.string())), 0),
        (pa.array([], pa.list_(pa.string())), 0),
        (pa.array([None] * 7), 7 * 8),
    ],
    ids=lambda value: str(getattr(value, "type", value))[:30],
)
def test_sizes_are_those_of_values_written_out(values: Any, least: int) -> None:
    assert least <= spread(values) <= least * 1.5 + 100
    batch = pa.RecordBatch.from_arrays([values], names=["a"])
    assert sum(piece.num_rows for piece, _ in slices(batch)) == len(values)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


ASK = {"role": "user", "content": "Q"}


def called(arguments: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}


def tool(parameters: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", "parameters": parameters}}]


@pytest.mark.parametrize("levels", [DEEPEST + 1, 240, 600, 900])
def test_what_is_nested_deep_costs_its_row_with_a_reason(tmp_path: Path, levels: int) -> None:
    deep = nested(levels)
    written = '{"a":' * (levels - 1) + "{}" + "}" * (levels - 1)
    result = {"role": "tool", "content": deep}
    hermes = {"role": "assistant", "content": f'<tool_call>{{"name": "f", "arguments": {written}}}</tool_call>'}
    deep_rows = (
        {"messages": [ASK, called(deep), result]},
        {"messages": [ASK, called(written), {"role": "tool", "content": "r"}]},
        {"messages": [ASK, called(json.dumps(written)), {"role": "tool", "content": "r"}]},
        {"messages": [ASK, called({}), result]},
        {"messages": [ASK, hermes, {"role": "tool", "content": "r"}]},
        {"messages": [ASK], "tools": tool(deep)},
        {"messages": [ASK], "tools": json.dumps(tool(deep))},
        {"messages": [ASK], "functions": [json.dumps(tool(deep)[0])]},
    )
    lines = [json.dumps(row) for row in deep_rows]
    rows = read_bytes(tmp_path, "\n".join([*lines, json.dumps(good())]).encode())
    assert [row.verdict for row in rows] == ["rejected"] * len(deep_rows) + ["accepted"]
    for number, row in enumerate(rows[:-1], 1):
        assert row.origin.row == number
        assert "nested too deep" in row.reason or "ecursion" in row.reason


@pytest.mark.parametrize("levels", [600, 5000])
def test_deep_content_of_every_kind_gets_a_verdict(tmp_path: Path, levels: int) -> None:
    brackets = "[" * levels + "]" * levels
    texts = [
        f'{{"messages": [{{"role": "user", "content": {brackets}}}]}}',
        f'{{"messages": [{{"role": {brackets}, "content": "x"}}]}}',
        f'{{"messages": [{{"role": "user", "content": [{{"type": {brackets}}}]}}]}}',
        f'{{"messages": [{{"role": "assistant", "content": [{{"type": "thinking", "thinking": {brackets}}}]}}]}}',
        f'{{"messages": {brackets}}}',
        f'{{"prompt": {brackets}, "response": {brackets}}}',
        brackets,
    ]
    rows = read_bytes(tmp_path, "\n".join([*texts, json.dumps(good())]).encode())
    assert [row.verdict for row in rows] == ["rejected"] * len(texts) + ["accepted"]


def test_a_row_of_endless_messages_or_calls_is_set_aside(tmp_path: Path) -> None:
    call = called({})["tool_calls"]
    rows = read_values(
        tmp_path,
        {"messages": [ASK] * (MOST + 1)},
        {"messages": [ASK, {"role": "assistant", "tool_calls": call * (MOST + 1)}]},
        {"messages": [ASK] * 50},
    )
    assert [row.verdict for row in rows] == ["rejected", "rejected", "repaired"]
    assert rows[0].reason == "10,001 messages: more than 10,000 fit no context"
    assert rows[1].reason == "10,001 tool calls: more than 10,000 fit no context"


def test_what_is_nested_a_hundred_deep_is_taken(tmp_path: Path) -> None:
    row = read_messages(tmp_path, ASK, called(nested(DEEPEST)), {"role": "tool", "content": "r"})
    assert json.loads(accepted(row).messages[1].tool_calls[0].arguments) == nested(DEEPEST)
    braces = {"text": "{[" * 500}  # within text they nest nothing
    assert read_messages(tmp_path, ASK, called(braces), {"role": "tool", "content": "r"}).verdict != "rejected"


def test_blanks_behind_a_mark_take_no_time(tmp_path: Path) -> None:
    blanks = " " * 200_000
    for text in ("<tool_call>" + blanks + "x", "<tool_call>" * 20_000, blanks + "<tool_call>" + blanks):
        row = read_messages(tmp_path, ASK, {"role": "assistant", "content": text}, {"role": "tool", "content": "r"})
        assert row.reason == "message 3: a tool result that no call asked for"
    result = {"role": "tool", "content": "<tool_response>" + blanks + "x"}
    row = read_messages(tmp_path, ASK, called({}), result, {"role": "assistant", "content": "A"})
    assert accepted(row).messages[2].content == result["content"]


def test_marks_are_read_from_first_to_next_and_left_where_they_never_end() -> None:
    marks = ("<a>", "</a>")
    assert marked("x <a>\n 1 \n</a> y <a>2</a><a>3", marks) == (["1", "2"], "x  y <a>3")
    assert marked("</a><a><a>1</a></a>", marks) == (["<a>1"], "</a></a>")
    assert marked("", marks) == ([], "")


def test_a_time_of_an_unknown_zone_costs_nothing(tmp_path: Path) -> None:
    when = pa.array([1, 2], pa.timestamp("us", tz="Mars/Phobos"))
    table = pa.table({"prompt": ["One?", "Two?"], "when": when})
    pq.write_table(table, tmp_path / "x.parquet")
    rows = read_path(tmp_path / "x.parquet")
    assert [row.verdict for row in rows] == ["accepted", "accepted"]
    assert "1970-01-01" in accepted(rows[0]).extra
    inside = pa.StructArray.from_arrays([when], ["t"])
    pq.write_table(pa.table({"prompt": ["One?", "Two?"], "when": inside}), tmp_path / "x.parquet")
    rows = read_path(tmp_path / "x.parquet")
    assert [row.reason[:22] for row in rows] == ["a value cannot be read"] * 2


ODD = "\x1b[31mred\x1b]0;title\x07 \u202e\nline"


def test_foreign_words_are_printable_wherever_a_row_is_set_aside(tmp_path: Path) -> None:
    values = [
        {ODD: 1},
        {"messages": [{"role": "user", "content": [{"type": ODD, "x": 1}]}]},
        {"messages": [{"role": ODD, "content": "x"}]},
        {"messages": [ASK, called({}) | {"tool_calls": [{"function": {"name": ODD, "arguments": "x"}}]}]},
        {"messages": [ASK, called({}) | {"tool_calls": [{"function": {"name": ODD, "arguments": ""}}]}]},
        {"id": ODD, "messages": [ASK]},
        {"id": ODD, "messages": [{"role": "user", "content": "R"}]},
        {"messages": [{"role": " User" + " " * 500, "content": "S"}]},
    ]
    rows = read_values(tmp_path, *values)
    assert all(row.reason.isprintable() and len(row.reason) < 600 for row in rows)
    assert sum(bool(row.reason) for row in rows) == len(values) - 1
