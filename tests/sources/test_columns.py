"""Parquet, Arrow and what `save_to_disk` writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from reflash.errors import SourceError
from reflash.sources.columns import ArrowPart, ParquetPart
from tests.sources.reading import ANSWER, accepted, dialogue, good, read_path

ROWS = [good("a", "One?"), good("b", "Two?"), good("c", "Three?")]


def parquet(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path, row_group_size=2)


def arrow_file(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def arrow_stream(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


WRITERS = [(parquet, "x.parquet"), (arrow_file, "x.arrow"), (arrow_stream, "y.arrow"), (arrow_file, "x.feather")]
Writer = Callable[[Path, pa.Table], None]


@pytest.mark.parametrize(("write", "name"), WRITERS)
def test_rows_stored_by_columns_are_read(tmp_path: Path, write: Writer, name: str) -> None:
    write(tmp_path / name, pa.Table.from_pylist(ROWS))
    rows = read_path(tmp_path / name)
    assert [(row.origin.row, row.id, row.verdict) for row in rows] == [
        (1, "a", "accepted"),
        (2, "b", "accepted"),
        (3, "c", "accepted"),
    ]
    assert dialogue(rows[1]) == [("user", "Two?"), ("assistant", "The Elbe.")]


@pytest.mark.parametrize(("write", "name"), WRITERS)
def test_a_cut_file_is_an_error_that_names_it(tmp_path: Path, write: Writer, name: str) -> None:
    path = tmp_path / name
    write(path, pa.Table.from_pylist(ROWS))
    whole = path.read_bytes()
    for size in (0, 3, len(whole) // 2, len(whole) - 9, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(SourceError, match=f"{name}: .*(unreadable|cut)"):
            read_path(path)


@pytest.mark.parametrize(("write", "name"), WRITERS)
def test_no_rows_is_an_error(tmp_path: Path, write: Writer, name: str) -> None:
    write(tmp_path / name, pa.Table.from_pylist(ROWS).slice(0, 0))
    with pytest.raises(SourceError, match="no rows"):
        read_path(tmp_path / name)


def test_keys_that_arrow_filled_with_null_are_absent(tmp_path: Path) -> None:
    calls = [{"id": "c", "function": {"name": "look", "arguments": {"q": "x"}}}]
    other = [{"id": "d", "function": {"name": "add", "arguments": {"n": 1}}}]
    ask = {"role": "user", "content": "Q"}
    table = pa.Table.from_pylist(
        [
            {"messages": [ask, ANSWER], "tools": None},
            {
                "messages": [
                    ask,
                    {"role": "assistant", "content": None, "tool_calls": calls},
                    {"role": "tool", "content": "r", "tool_call_id": "c"},
                    {"role": "assistant", "content": "A", "tool_calls": None, "reasoning_content": "w"},
                ],
                "tools": [{"type": "function", "function": {"name": "look", "description": "d"}}],
            },
            {
                "messages": [ask, {"role": "assistant", "tool_calls": other}],
                "tools": [{"type": "function", "function": {"name": "add", "strict": True}}],
            },
        ]
    )
    parquet(tmp_path / "x.parquet", table)
    plain, traced, _ = read_path(tmp_path / "x.parquet")
    assert (plain.verdict, accepted(plain).tools) == ("accepted", "")
    assert accepted(plain).messages[1].reasoning is None
    assert accepted(traced).messages[1].tool_calls[0].arguments == '{"q":"x"}'
    assert json.loads(accepted(traced).tools) == [
        {"type": "function", "function": {"name": "look", "description": "d"}}
    ]


def test_columns_that_json_does_not_know_survive_as_text(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(ROWS[:1]).append_column("blob", pa.array([b"\xff\x00"]))
    table = table.append_column("when", pa.array([0], pa.timestamp("ms"))).append_column(
        "nan", pa.array([float("nan")])
    )
    parquet(tmp_path / "x.parquet", table)
    (row,) = read_path(tmp_path / "x.parquet")
    assert json.loads(accepted(row).extra).keys() == {"blob", "when", "nan"}


def test_text_that_is_not_utf8_costs_its_row_only(tmp_path: Path) -> None:
    broken = pa.array([b"caf\xe9", b"fine"]).view(pa.string())
    arrow_file(tmp_path / "x.arrow", pa.table({"prompt": broken}))
    assert [row.verdict for row in read_path(tmp_path / "x.arrow")] == ["rejected", "accepted"]


def test_large_batches_are_read_in_slices(tmp_path: Path) -> None:
    table = pa.table({"prompt": [f"{n} " + "x" * 4000 for n in range(6000)]})
    with pa.ipc.new_file(str(tmp_path / "x.arrow"), table.schema) as writer:
        writer.write_table(table)
    pq.write_table(table, tmp_path / "x.parquet")
    for part in (
        ArrowPart("x", tmp_path / "x.arrow"),
        ParquetPart("x", tmp_path / "x.parquet"),
    ):
        batches = list(part.batches())
        assert sum(batch.num_rows for batch in batches) == 6000
        assert max(batch.num_rows for batch in batches) < 4000


def saved(folder: Path, rows: list[dict[str, Any]], shards: int = 1) -> Path:
    from datasets import Dataset

    Dataset.from_list(rows).save_to_disk(str(folder), num_shards=shards)
    return folder


def test_a_saved_set_is_read_in_the_order_of_its_shards(tmp_path: Path) -> None:
    folder = saved(tmp_path / "set", ROWS, shards=3)
    assert [row.id for row in read_path(folder)] == ["a", "b", "c"]


def test_a_shard_that_state_json_names_must_be_there(tmp_path: Path) -> None:
    folder = saved(tmp_path / "set", ROWS, shards=3)
    (folder / "data-00001-of-00003.arrow").unlink()
    with pytest.raises(SourceError, match=r"data-00001-of-00003\.arrow"):
        read_path(folder)
    (folder / "state.json").unlink()
    with pytest.raises(SourceError, match=r"data-00001-of-00003\.arrow"):
        read_path(folder)


def test_a_broken_state_json_is_named(tmp_path: Path) -> None:
    folder = saved(tmp_path / "set", ROWS)
    for broken in ("", "[]", "{}", '{"_data_files": []}'):
        (folder / "state.json").write_text(broken)
        with pytest.raises(SourceError, match=r"state\.json"):
            read_path(folder)


def test_splits_of_a_saved_dict_are_never_mixed(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    splits = {"train": Dataset.from_list(ROWS), "test": Dataset.from_list(ROWS[:1])}
    DatasetDict(splits).save_to_disk(str(tmp_path / "both"))
    assert len(read_path(tmp_path / "both")) == 3
    assert len(read_path(tmp_path / "both", split="test")) == 1
    with pytest.raises(SourceError, match="dev; its splits: train, test"):
        read_path(tmp_path / "both", split="dev")
    (tmp_path / "both" / "dataset_dict.json").unlink()
    with pytest.raises(SourceError, match="test, train"):
        read_path(tmp_path / "both")


def test_a_saved_dict_without_train_asks_for_the_split(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    DatasetDict({"a": Dataset.from_list(ROWS), "b": Dataset.from_list(ROWS)}).save_to_disk(str(tmp_path / "set"))
    with pytest.raises(SourceError, match="its splits: a, b"):
        read_path(tmp_path / "set")
