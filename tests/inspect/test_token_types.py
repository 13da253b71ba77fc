"""Tokenized sets in every type and container that the lists are stored in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from reflash.errors import SourceError
from tests.inspect.auditing import ANSWER, GOOD, PLACEHOLDER, audit, audit_path, reasons, row

ROWS = [GOOD, PLACEHOLDER, GOOD, PLACEHOLDER]
IDS, MASKS = [r["input_ids"] for r in ROWS], [r["loss_mask"] for r in ROWS]


def columns(kind: Any, values: Any = MASKS) -> pa.Table:
    return pa.table({"input_ids": pa.array(IDS, pa.list_(pa.int32())), "loss_mask": pa.array(values, kind)})


@pytest.mark.parametrize("value", [pa.int8(), pa.uint8(), pa.int64(), pa.uint64(), pa.float16(), pa.float64()])
@pytest.mark.parametrize("holder", [pa.list_, pa.large_list, pa.list_view, pa.large_list_view])
def test_every_arrow_type_gives_the_same_sums(tmp_path: Path, value: Any, holder: Any) -> None:
    with pa.ipc.new_stream(str(tmp_path / "x.arrow"), columns(holder(value)).schema) as writer:
        writer.write_table(columns(holder(value)), max_chunksize=3)
    report = audit_path(tmp_path / "x.arrow")
    assert (report.sums, report.flagged_rows, report.rejected) == ((24, 6, 24, 6), (2, 4), 0)


def test_booleans_fixed_lists_and_dictionaries_give_the_same_sums(tmp_path: Path) -> None:
    boolean = columns(pa.list_(pa.bool_()), [[bool(v) for v in mask] for mask in MASKS])
    size = len(GOOD["loss_mask"])
    fixed = pa.table(
        {
            "input_ids": pa.array([GOOD["input_ids"], None, GOOD["input_ids"]], pa.list_(pa.int64(), size)),
            "loss_mask": pa.array([GOOD["loss_mask"], GOOD["loss_mask"], None], pa.list_(pa.int8(), size)),
        }
    )
    pq.write_table(boolean, tmp_path / "bool.parquet")
    with pa.ipc.new_file(str(tmp_path / "fixed.arrow"), fixed.schema) as writer:
        writer.write_table(fixed)
    assert audit_path(tmp_path / "bool.parquet").sums == (24, 6, 24, 6)
    assert audit_path(tmp_path / "fixed.arrow").sums == (24, None, None)


def test_dictionary_values_are_decoded_never_their_indices_summed(tmp_path: Path) -> None:
    flat = pa.array([v for mask in MASKS for v in mask], pa.int8())
    coded = pa.DictionaryArray.from_arrays(pa.compute.subtract(1, flat).cast(pa.int8()), pa.array([1, 0], pa.int8()))
    offsets = pa.array(np.cumsum([0, *map(len, MASKS)]), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, coded)
    table = pa.table({"input_ids": pa.array(IDS), "loss_mask": lists})
    with pa.ipc.new_stream(str(tmp_path / "x.arrow"), table.schema) as writer:
        writer.write_table(table)
    assert audit_path(tmp_path / "x.arrow").sums == (24, 6, 24, 6)


def test_eight_bit_masks_do_not_wrap(tmp_path: Path) -> None:
    length = 700
    table = pa.table(
        {
            "input_ids": pa.array([list(range(length))], pa.list_(pa.int32())),
            "loss_mask": pa.array([[0] * 40 + [1] * (length - 40)], pa.list_(pa.int8())),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    report = audit_path(tmp_path / "x.parquet")
    assert (report.sums, report.flagged_rows, report.suspicious_rows) == ((660,), (), ())


def test_columns_of_the_wrong_type_are_rejected_by_name(tmp_path: Path) -> None:
    for values in (["0 1"] * 4, [[["a"]]] * 4, [5] * 4, [["a"]] * 4, [[[[1]]]] * 4):
        table = pa.table({"input_ids": pa.array(IDS), "loss_mask": pa.array(values)})
        with pa.ipc.new_file(str(tmp_path / "x.arrow"), table.schema) as writer:
            writer.write_table(table)
        report = audit_path(tmp_path / "x.arrow")
        assert report.rejected_rows == (1, 2, 3, 4)
        assert "loss_mask" in reasons(report)[1]


def test_nulls_and_nested_lists_in_parquet(tmp_path: Path) -> None:
    table = pa.table(
        {
            "input_ids": pa.array([IDS[0], None, IDS[0], IDS[1]], pa.list_(pa.int64())),
            "loss_mask": pa.array(
                [[MASKS[0]], [MASKS[0]], [None], [MASKS[1], MASKS[1]]], pa.list_(pa.list_(pa.int64()))
            ),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    report = audit_path(tmp_path / "x.parquet")
    assert (report.sums, report.rejected_rows, report.repaired_rows) == ((24, None, None, None), (2, 3, 4), (1,))


def test_rows_of_several_files_are_numbered_through(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(json.dumps(GOOD) + "\n\n" + json.dumps(PLACEHOLDER) + "\n")
    pq.write_table(columns(pa.list_(pa.int8())), tmp_path / "c.parquet")
    report = audit_path(tmp_path)
    assert (report.rows, report.flagged_rows) == (8, (2, 4, 6, 8))


def test_batches_do_not_change_the_verdicts(tmp_path: Path) -> None:
    rows = ([GOOD] * 7 + [PLACEHOLDER, row(ANSWER[:-2])]) * 150
    report = audit(tmp_path, *rows)
    assert report.flagged_rows == tuple(n for n in range(1, len(rows) + 1) if n % 9 == 8)
    assert report.suspicious_rows == tuple(n for n in range(1, len(rows) + 1) if n % 9 == 0)
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=100)
    assert audit_path(tmp_path / "x.parquet").flagged_rows == report.flagged_rows


def test_a_tokenized_set_without_rows_is_an_error(tmp_path: Path) -> None:
    pq.write_table(columns(pa.list_(pa.int8())).slice(0, 0), tmp_path / "x.parquet")
    with pytest.raises(SourceError, match="no rows"):
        audit_path(tmp_path / "x.parquet")
