"""A census names what is wrong with a set without being told, and writes down what to make again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer

from reflash.census.figures import histogram
from reflash.census.hashes import RunHasher
from reflash.census.run import Census, take_census
from reflash.census.text import census_text
from reflash.config.audit import AuditRules, DataAudit
from tests.census.making import jsonl, parquet, user_like_rows
from tests.inspect.auditing import ANSWER, EMPTY, END, FEED, GOOD, OPEN, PAD, PLACEHOLDER, PROMPT, THOUGHT, row
from tests.qwen_files import qwen3_tokenizer_folder

THINK = 151667
ROWS = 400


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return qwen3_tokenizer_folder(tmp_path_factory.getbasetemp())


def census(folder: Path, *rows: Any, **rules: Any) -> Census:
    path = jsonl(folder / "rows.jsonl", list(rows))
    found = take_census(DataAudit(path=str(path), rules=AuditRules(**rules)))
    json.dumps(found.report.to_json(), allow_nan=False)
    assert census_text(found.report)
    return found


def kinds(found: Census) -> dict[str, int]:
    return {finding.kind: finding.rows for finding in found.report.findings}


def numbered(answer: list[int], number: int) -> dict[str, list[int]]:
    """A row whose prompt no other has."""
    return row(answer, [*PROMPT[:3], 5000 + number, *PROMPT[4:]])


def test_the_users_set_is_named_by_its_share_and_its_placeholder(tmp_path: Path, qwen3: Path) -> None:
    rows = user_like_rows(Tokenizer.from_file(str(qwen3 / "tokenizer.json")), ROWS, round(0.87 * ROWS))
    found = take_census(DataAudit(path=str(parquet(tmp_path / "set.parquet", rows)), tokenizer=str(qwen3)))
    report = found.report
    assert (report.rows, report.empty_rows, report.to_make_again, report.verdict) == (ROWS, 348, 348, "unfit")
    assert report.size == sum(len(one["input_ids"]) for one in rows)
    assert report.supervised == sum(sum(one["loss_mask"]) for one in rows)
    assert report.answers_most_often[0] == (6, 348)
    first = report.frequent_answers[0]
    assert (first.says, first.count, first.length, round(first.share, 2)) == ("OK.", 348, 6, 0.87)
    assert first.text.startswith("</think>")
    assert "87.0%" in census_text(report).splitlines()[0]
    assert '"OK."' in census_text(report).splitlines()[0]
    assert (report.duplicate_prompts, report.duplicate_answers) == (0, 347)
    assert found.again.tolist() == [at for at, one in enumerate(rows, 1) if sum(one["loss_mask"]) == 6]


def test_the_selection_lists_each_row_with_its_id_and_its_reason(tmp_path: Path) -> None:
    rows = [{**GOOD, "id": "a"}, {**PLACEHOLDER, "id": "b"}, {**GOOD, "loss_mask": [1], "id": 3}]
    census(tmp_path, *rows).write(tmp_path / "again.parquet")
    assert pq.read_table(tmp_path / "again.parquet").to_pylist() == [
        {"row": 2, "id": "b", "reason": "answer at or under the threshold"},
        {"row": 3, "id": "3", "reason": "length mismatch"},
    ]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({**GOOD, "loss_mask": [2, *GOOD["loss_mask"][1:]]}, "mask not binary"),
        ({**GOOD, "loss_mask": [1] * 3}, "length mismatch"),
        ({**GOOD, "input_ids": [151936, *GOOD["input_ids"][1:]]}, "ids out of range"),
        (row([*ANSWER, PAD, PAD, PAD]), "pad tokens supervised"),
        ({**GOOD, "loss_mask": [1] * len(GOOD["loss_mask"])}, "prompt tokens supervised"),
        (row([*ANSWER[:10], OPEN, *ANSWER[10:]]), "prompt tokens supervised"),
        (row([THOUGHT, 271, *range(1000, 1020)]), "supervised span does not end with the end of turn"),
        (row([THINK, *range(1000, 1020), END, FEED]), "thinking left open"),
        (
            row(ANSWER, [*PROMPT, THINK, FEED])["input_ids"] and row([*range(9), END], [*PROMPT, THINK]),
            "thinking left open",
        ),
        (row([END]), "no two adjacent supervised tokens"),
        (row(EMPTY), "answer at or under the threshold"),
        ({key: GOOD[key] + PLACEHOLDER[key] for key in GOOD}, "a turn at or under the threshold among longer ones"),
        ({key: GOOD[key] + row([END])[key] for key in GOOD}, "a turn of a single token among longer ones"),
    ],
)
def test_each_fault_is_counted_and_its_row_made_again(tmp_path: Path, fault: dict[str, Any], kind: str) -> None:
    found = census(tmp_path, GOOD, fault, GOOD, GOOD)
    assert kinds(found)[kind] == 1
    assert found.again.tolist() == [2]
    (finding,) = (one for one in found.report.findings if one.kind == kind)
    assert finding.examples[0].row == 2


def test_a_thought_that_the_prompt_opens_and_the_answer_closes_is_no_fault(tmp_path: Path) -> None:
    found = census(tmp_path, *(numbered([*range(900, 910), THOUGHT, *range(10), END, FEED], n) for n in range(4)))
    assert (kinds(found), found.report.verdict) == ({}, "fit")
    prompt = [*PROMPT, THINK, FEED]
    found = census(tmp_path, row(ANSWER, prompt), row(ANSWER, [*prompt[:3], 7, *prompt[4:]]))
    assert (kinds(found), found.report.verdict) == ({}, "fit")


def test_rows_cut_at_the_length_of_the_longest_are_told_from_other_open_ends(tmp_path: Path) -> None:
    long = row([THOUGHT, *range(1000, 1200)])
    found = census(tmp_path, long, GOOD, long, row([THOUGHT, *range(1000, 1050)]))
    assert kinds(found)[f"cut at the sequence limit of {len(long['input_ids'])} tokens"] == 2
    assert "limit" in found.reasons.to_pylist()[0]
    assert "does not end" in found.reasons.to_pylist()[2]
    assert not any("limit" in kind for kind in kinds(census(tmp_path, long, GOOD)))


def test_duplicates_are_found_wherever_they_stand(tmp_path: Path) -> None:
    rows = [numbered([*ANSWER[:5], 2000 + n % 3, *ANSWER[5:]], n % 5) for n in range(15)]
    report = census(tmp_path, *rows).report
    assert (report.duplicate_prompts, report.duplicate_answers) == (10, 12)
    assert [one.count for one in report.frequent_answers] == [5, 5, 5]


def test_a_placeholder_above_the_threshold_is_named_with_the_threshold_that_counts_it(tmp_path: Path) -> None:
    rows = [numbered(ANSWER if n % 2 else [*ANSWER[:9], 3000 + n, *ANSWER[9:]], n) for n in range(40)]
    found = census(tmp_path, *rows)
    assert found.report.verdict == "fit"
    assert "50.0% of all answers are the same 24 tokens" in found.report.why
    assert "--threshold 24" in found.report.why
    assert census(tmp_path, *rows, threshold=24).report.to_make_again == 20


def test_equal_runs_have_equal_hashes_and_others_do_not() -> None:
    chance = np.random.default_rng(3)
    ids = chance.integers(0, 40, 3000)
    begin = chance.integers(0, 2900, 2000)
    end = begin + chance.integers(0, 4, 2000)
    hashes = RunHasher().hashes(ids, begin, end)
    runs = [tuple(ids[a:b].tolist()) for a, b in zip(begin, end, strict=True)]
    assert len(set(runs)) > 500
    assert len(set(zip(runs, hashes.tolist(), strict=True))) == len(set(runs)) == len(set(hashes.tolist()))


def test_the_histogram_holds_every_row_once() -> None:
    sums = np.array([0, 1, 6, 6, 7, 8, 100, 127, 128])
    bins = {(one.least, one.most): one.rows for one in histogram(sums, 6)}
    assert bins == {(0, 0): 1, (1, 6): 3, (7, 7): 1, (8, 15): 1, (16, 31): 0, (32, 63): 0, (64, 127): 2, (128, 255): 1}
    assert sum(one.rows for one in histogram(sums, 0)) == 9


def test_a_set_without_a_family_says_what_it_did_not_look_for(tmp_path: Path) -> None:
    plain = {"input_ids": [*range(30)], "loss_mask": [0] * 10 + [1] * 20}
    found = census(tmp_path, plain)
    assert found.report.family is None
    assert "--tokenizer" in found.report.notes[-1]
