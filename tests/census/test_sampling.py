"""Some rows stand for all: evenly over files and positions, the same at every look."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reflash.census.collect import CUT
from reflash.census.run import take_census
from reflash.census.sampling import Spacing, alike
from reflash.config.audit import AuditRules, DataAudit
from tests.census.making import jsonl, parquet
from tests.inspect.auditing import GOOD, PLACEHOLDER, THOUGHT, row


def test_rows_are_taken_evenly_whatever_batches_they_come_in() -> None:
    spacing = Spacing(1000, 100)
    whole = spacing.of(0, 1000)
    assert (whole // 10).tolist() == list(range(100))  # one of every ten
    assert np.ptp(np.bincount(whole % 10)) < 20  # and not always the same one
    pieces = [first + spacing.of(first, 7) for first in range(0, 1000, 7)]
    assert np.concatenate(pieces).tolist() == spacing.of(0, 1001).tolist()
    assert Spacing(10, 20).of(3, 4).tolist() == [0, 1, 2, 3]


def test_a_sample_has_sizes_like_the_whole() -> None:
    sizes = np.random.default_rng(1).lognormal(5, 1, 10_000).astype(np.int64)
    picked = alike(sizes, 200)
    assert len(np.unique(picked)) == 200
    for share in (10, 50, 90):
        assert np.percentile(sizes[picked], share) == pytest.approx(np.percentile(sizes, share), rel=0.05)


def test_a_look_at_some_rows_of_several_files_names_true_positions(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    rows = [{**(PLACEHOLDER if n % 4 else GOOD), "id": f"r{n}"} for n in range(600)]
    parquet(folder / "a.parquet", rows[:400])
    jsonl(folder / "b.jsonl", rows[400:])
    found = take_census(DataAudit(path=str(folder), look=60))
    assert (found.report.rows, found.report.set_rows) == (60, 600)
    assert found.names.to_pylist() == [f"r{at - 1}" for at in found.again.tolist()]
    assert sum(at <= 400 for at in found.again.tolist()) == pytest.approx(30, abs=6)  # three of four of 40
    assert len(found.again) == pytest.approx(45, abs=8)
    assert found.again.tolist() == take_census(DataAudit(path=str(folder), look=60)).again.tolist()


def test_a_sequence_limit_that_is_told_finds_a_single_cut_row_and_prompts_that_fill_it(tmp_path: Path) -> None:
    cut = row([THOUGHT, *range(1000, 1200)])
    only_asked = {"input_ids": [*GOOD["input_ids"][:9], *range(500, 500 + len(cut["input_ids"]) - 9)]}
    only_asked["loss_mask"] = [0] * len(only_asked["input_ids"])
    path = str(jsonl(tmp_path / "rows.jsonl", [cut, GOOD, only_asked, GOOD]))
    limit = len(cut["input_ids"])
    told = take_census(DataAudit(path=path, rules=AuditRules(sequence_limit=limit)))
    kind = f"{CUT} of {limit} tokens"
    assert {one.kind: one.rows for one in told.report.findings}[kind] == 2
    assert told.reasons.to_pylist() == [kind, kind]
    longer = take_census(DataAudit(path=path, rules=AuditRules(sequence_limit=limit + 1)))
    assert not any(CUT in one.kind for one in longer.report.findings)
