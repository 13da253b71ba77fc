"""Tokenized sets: which rows are flagged, suspicious or rejected, in every type that the lists are stored in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from reflash.config.source import SourceConfig
from reflash.errors import SourceError
from reflash.inspect.report import TokenizedReport
from reflash.inspect.run import inspect_source

OPEN, END, FEED, PAD, THOUGHT = 151644, 151645, 198, 151643, 151668  # of Qwen3
PROMPT = [OPEN, 872, FEED, 852, END, FEED, OPEN, 77091, FEED]
ANSWER = [THOUGHT, 271, *range(1000, 1020), END, FEED]
EMPTY = [THOUGHT, 271, 3925, 13, END, FEED]

Row = dict[str, list[Any]]


def row(answer: list[int], prompt: list[int] = PROMPT) -> Row:
    return {"input_ids": prompt + answer, "loss_mask": [0] * len(prompt) + [1] * len(answer)}


GOOD, PLACEHOLDER = row(ANSWER), row(EMPTY)


def audit_path(path: Path, **options: Any) -> TokenizedReport:
    report = inspect_source(SourceConfig(path=str(path)), **options)
    assert isinstance(report, TokenizedReport)
    json.dumps(report.to_json(), allow_nan=False)
    assert report.to_text()
    return report


def audit(folder: Path, *rows: Any, **options: Any) -> TokenizedReport:
    """The report on rows written as JSON Lines."""
    path = folder / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return audit_path(path, **options)


def reasons(report: TokenizedReport) -> dict[int, str]:
    return {reason.row: reason.reason for reason in report.reasons}


def test_an_empty_answer_is_flagged_by_its_sum(tmp_path: Path) -> None:
    report = audit(tmp_path, GOOD, PLACEHOLDER, GOOD)
    assert report.sums == (24, 6, 24)
    assert (report.flagged_rows, report.suspicious_rows, report.rejected_rows) == ((2,), (), ())
    assert (report.rows, report.accepted, report.family) == (3, 3, "Qwen2.5 and Qwen3")


def test_the_threshold_is_included(tmp_path: Path) -> None:
    rows = [row([*range(n - 2), END, FEED]) for n in (5, 6, 7)]
    assert audit(tmp_path, *rows).flagged_rows == (1, 2)
    assert audit(tmp_path, *rows, threshold=5).flagged_rows == (1,)
    nothing = {"input_ids": PROMPT, "loss_mask": [0] * len(PROMPT)}
    assert audit(tmp_path, GOOD, nothing).flagged_rows == (2,)


def test_an_empty_turn_inside_a_long_row_shows_in_its_spans(tmp_path: Path) -> None:
    both = {key: GOOD[key] + PLACEHOLDER[key] for key in GOOD}
    report = audit(tmp_path, both, GOOD)
    assert (report.sums, report.spans, report.shortest_spans) == ((30, 24), (2, 1), (6, 24))
    assert (report.flagged_rows, report.short_span_rows) == ((), (1,))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"loss_mask": [1] * 5}, "length mismatch"),
        ({"loss_mask": None}, "loss_mask is null"),
        ({"input_ids": None}, "input_ids is null"),
        ({"loss_mask": [None, *GOOD["loss_mask"][1:]]}, "loss_mask has null inside"),
        ({"input_ids": [], "loss_mask": []}, "empty"),
        ({"loss_mask": [0.5, *GOOD["loss_mask"][1:]]}, "loss_mask has fractions"),
        ({"loss_mask": [float("nan"), *GOOD["loss_mask"][1:]]}, "loss_mask has fractions"),
        ({"loss_mask": [2, *GOOD["loss_mask"][1:]]}, "mask not binary: it holds 2"),
        ({"loss_mask": [-100, *GOOD["loss_mask"][1:]]}, "mask not binary: it holds -100"),
        ({"input_ids": [-1, *GOOD["input_ids"][1:]]}, "token id -1 is negative"),
        ({"input_ids": [151936, *GOOD["input_ids"][1:]]}, "beyond the vocabulary of 151936"),
        ({"input_ids": [2**70, *GOOD["input_ids"][1:]]}, "beyond 64 bits"),
        ({"input_ids": ["5", *GOOD["input_ids"][1:]]}, "input_ids holds text"),
        ({"input_ids": "1 2 3"}, "input_ids is of type str"),
        ({"input_ids": {"a": 1}}, "input_ids is of type dict"),
        ({"loss_mask": [[0, 1], [0, 1]]}, "nested"),
        ({"loss_mask": [{}, *GOOD["loss_mask"][1:]]}, "loss_mask holds dict"),
    ],
)
def test_a_row_that_cannot_be_trained_on_is_rejected_alone(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    report = audit(tmp_path, GOOD, {**GOOD, **change}, PLACEHOLDER)
    assert (report.rejected_rows, report.sums, report.flagged_rows) == ((2,), (24, None, 6), (3,))
    assert said in reasons(report)[2]


def test_the_vocabulary_can_be_given(tmp_path: Path) -> None:
    assert audit(tmp_path, GOOD, vocabulary=1000).rejected_rows == (1,)
    large = {"input_ids": [151936, *GOOD["input_ids"][1:]], "loss_mask": GOOD["loss_mask"]}
    assert audit(tmp_path, large, vocabulary=200_000).rejected_rows == ()


def test_each_family_brings_its_own_vocabulary_and_ends(tmp_path: Path) -> None:
    prompt, answer = [248045, 846, 198, 5, 248046, 198, 248045, 74455, 198, 248068, 198], [9, 151645, 7, 248046]
    report = audit(tmp_path, row(answer, prompt), row(answer[:-1], prompt))
    assert (report.family, report.vocabulary) == ("Qwen3.5 and 3.6", 248320)
    assert report.suspicious_rows == (2,)


@pytest.mark.parametrize("wrap", [lambda values: [values], lambda values: [float(v) for v in values]])
def test_nested_lists_and_whole_floats_are_read_and_said(tmp_path: Path, wrap: Any) -> None:
    report = audit(tmp_path, GOOD, {**GOOD, "loss_mask": wrap(GOOD["loss_mask"])})
    assert (report.sums, report.repaired_rows, report.repaired) == ((24, 24), (2,), 1)
    assert sum(report.repairs.values()) == 1


def test_booleans_are_read_as_zero_and_one(tmp_path: Path) -> None:
    report = audit(tmp_path, GOOD, {**GOOD, "loss_mask": [bool(v) for v in GOOD["loss_mask"]]})
    assert (report.sums, report.repaired_rows) == ((24, 24), (2,))


@pytest.mark.parametrize(
    ("suspect", "said"),
    [
        ({**GOOD, "loss_mask": [1] * len(GOOD["loss_mask"])}, "prompt tokens supervised"),
        ({**GOOD, "loss_mask": [0] * 6 + [1] * (len(GOOD["loss_mask"]) - 6)}, "prompt tokens supervised"),
        ({**GOOD, "loss_mask": [0] * 9 + [0, 1] * 12}, "no two adjacent supervised tokens"),
        (row(ANSWER[:-2]), "does not end with the end of turn"),
        (row([*ANSWER, *[PAD] * 5]), "pad tokens supervised"),
        (row([*ANSWER, *[7] * 5]), "pad tokens supervised"),
    ],
)
def test_a_mask_that_looks_wrong_is_suspicious(tmp_path: Path, suspect: Row, said: str) -> None:
    report = audit(tmp_path, GOOD, suspect, GOOD)
    assert (report.suspicious_rows, report.rejected_rows) == ((2,), ())
    assert said in reasons(report)[2]


@pytest.mark.parametrize("tail", [[], [FEED]])
def test_a_turn_that_ends_with_its_mark_is_not_suspicious(tmp_path: Path, tail: list[int]) -> None:
    padded = row([*ANSWER[:-1], *tail])
    padded = {"input_ids": padded["input_ids"] + [PAD] * 9, "loss_mask": padded["loss_mask"] + [0] * 9}
    assert audit(tmp_path, padded).suspicious_rows == ()


def test_an_unknown_vocabulary_is_judged_by_what_ends_most_turns(tmp_path: Path) -> None:
    rows = [row([50 + n, 60 + n, 2], [7, 8]) for n in range(6)]
    report = audit(tmp_path, *rows, row([70, 71], [7, 8]))
    assert (report.family, report.suspicious_rows) == (None, (7,))
    scattered = [row([50 + n, 60 + n], [7, 8]) for n in range(6)]
    assert audit(tmp_path, *scattered).suspicious_rows == ()


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    report = audit(tmp_path, {"input_ids": [1, 2], "labels": [-100, 2]})
    assert report.rejected_rows == (1,)
    assert "column loss_mask is missing (columns: input_ids, labels)" in reasons(report)[1]
    assert "input_ids and loss_mask is missing" in reasons(audit(tmp_path, {"tokens": [1, 2], "mask": [0, 1]}))[1]
    pq.write_table(pa.table({"loss_mask": [[0, 1], [1, 1]]}), tmp_path / "x.parquet")
    assert audit_path(tmp_path / "x.parquet").rejected_rows == (1, 2)


def test_other_columns_are_reported(tmp_path: Path) -> None:
    report = audit(tmp_path, {**GOOD, "id": "x", "seq_len": 3}, {**GOOD, "attention_mask": [1]})
    assert report.columns == ("attention_mask", "id", "seq_len")


def test_conversations_among_tokenized_rows_are_named(tmp_path: Path) -> None:
    report = audit(tmp_path, GOOD, {"prompt": "Q", "response": "A"}, GOOD)
    assert (report.rows, report.rejected_rows, report.sums) == (3, (2,), (24, None, 24))
    assert "conversation" in reasons(report)[2]
    talk = inspect_source(SourceConfig(path=str(written(tmp_path, {"prompt": "Q"}, GOOD))))
    assert [v["verdict"] for v in talk.to_json()["verdicts"]] == ["accepted", "rejected"]


def written(folder: Path, *rows: Any) -> Path:
    path = folder / "mixed.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_lines_that_are_no_rows_are_rejected_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n" + json.dumps(GOOD) + "\n\n{bad\n[1]\n" + json.dumps(PLACEHOLDER))
    report = audit_path(path)
    assert (report.rejected_rows, report.flagged_rows, report.rows) == ((4, 5), (6,), 4)


ROWS = [GOOD, PLACEHOLDER, GOOD, PLACEHOLDER]
IDS, MASKS = [r["input_ids"] for r in ROWS], [r["loss_mask"] for r in ROWS]


def columns(kind: Any, values: Any = MASKS) -> pa.Table:
    return pa.table({"input_ids": pa.array(IDS, pa.list_(pa.int32())), "loss_mask": pa.array(values, kind)})


@pytest.mark.parametrize("value", [pa.int8(), pa.uint8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()])
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
