"""Tokenized rows: which are flagged, suspicious or rejected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reflash.config.source import SourceConfig
from reflash.inspect.run import inspect_source
from tests.inspect.auditing import (
    ANSWER,
    END,
    FEED,
    GOOD,
    PAD,
    PLACEHOLDER,
    PROMPT,
    Row,
    audit,
    audit_path,
    reasons,
    row,
)


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


def test_padding_in_front_is_no_fault_unless_it_is_supervised(tmp_path: Path) -> None:
    ids, mask = [PAD] * 5 + GOOD["input_ids"], GOOD["loss_mask"]
    rows = [{"input_ids": ids, "loss_mask": [value] * 5 + mask} for value in (0, 1)]
    report = audit(tmp_path, *rows)
    assert report.suspicious_rows == (2,)
    assert "pad tokens" in reasons(report)[2]


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
        (row([*ANSWER, PAD, PAD, 0, 0]) | {"loss_mask": [0] * 9 + [1] * 26 + [0] * 2}, "pad tokens supervised"),
        ({**GOOD, "loss_mask": [0] * 3 + [1] * 3 + [0] * 3 + [1] * 24}, "prompt tokens supervised: a span is a user's"),
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


def test_an_unknown_vocabulary_is_judged_by_what_ends_nearly_all_turns(tmp_path: Path) -> None:
    rows = [row([50 + n, 60 + n, 2], [7, 8]) for n in range(100)]
    report = audit(tmp_path, *rows, row([70, 71], [7, 8]))
    assert (report.family, report.end_is_guess, report.suspicious_rows) == (None, False, (101,))
    scattered = [row([50 + n, 60 + n], [7, 8]) for n in range(6)]
    assert audit(tmp_path, *scattered).suspicious_rows == ()


@pytest.mark.parametrize(("closed", "unclosed"), [(98, 1), (110, 10)], ids=["few rows", "not nearly all"])
def test_a_guessed_end_of_turn_makes_no_row_suspicious(tmp_path: Path, closed: int, unclosed: int) -> None:
    rows = [row([50 + n, 60 + n, 2], [7, 8]) for n in range(closed)]
    report = audit(tmp_path, *rows, *[row([70 + n, 71 + n], [7, 8]) for n in range(unclosed)])
    assert (report.end_ids, report.end_is_guess, report.suspicious_rows) == ((2,), True, ())
    assert "end of turn: perhaps 2: a guess" in report.to_text()


def test_an_id_beyond_every_vocabulary_is_rejected_though_the_vocabulary_is_not_known(tmp_path: Path) -> None:
    rows = [row([50, last, 2], [7, 8]) for last in (60, 2**20 - 1, 2**20, 2**31 - 1)]
    report = audit(tmp_path, *rows)
    assert (report.vocabulary, report.rejected_rows) == (None, (3, 4))
    assert "beyond any known vocabulary (1048576 ids; --vocabulary)" in reasons(report)[3]
    assert audit(tmp_path, *rows, vocabulary=2**31).rejected_rows == ()


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
