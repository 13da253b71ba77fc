"""A run takes only the rows that a selection names, and refuses one that is of another set."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer

from reflash.census.run import take_census
from reflash.config.audit import DataAudit
from reflash.config.run import RunConfig
from reflash.errors import ConfigError, ManifestChanged, SourceError
from reflash.ledger.ledger import open_ledger
from reflash.plan.plan import plan_run
from reflash.pool import WorkerPool
from reflash.sources.selection import read_selection, write_selection
from tests.census.making import parquet, user_like_rows
from tests.flows.made import MODEL, made_run
from tests.making import config, conversations_file
from tests.qwen_files import qwen3_tokenizer_folder


def settings(folder: Path, select: Path, count: int = 6, **source: Any) -> RunConfig:
    path = conversations_file(folder / "rows.jsonl", count)
    chosen = {"path": str(path), "select": str(select), **source}
    return config(folder / "run", source=chosen, model=MODEL, plan={"shard_rows": 2, "workers": 1})


def planned(run: RunConfig) -> list[str]:
    ledger = open_ledger(run.run, create=True)
    with closing(WorkerPool(1)) as pool:
        shards = plan_run(run, ledger, pool)
    return [one.conversation.id for shard in shards for one in ledger.planned(shard.name)]


def selection(path: Path, rows: list[int], ids: list[str | None], set_rows: int) -> Path:
    reasons = pa.array(["empty"] * len(rows)).dictionary_encode()
    write_selection(path, np.array(rows, np.int64), pa.array(ids, pa.string()), reasons, set_rows)
    return path


def test_what_a_census_of_the_users_set_writes_regenerate_takes(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = qwen3_tokenizer_folder(tmp_path_factory.getbasetemp())
    rows = user_like_rows(Tokenizer.from_file(str(folder / "tokenizer.json")), 8, 7)
    audit = DataAudit(path=str(parquet(tmp_path / "set.parquet", rows)), tokenizer=str(folder))
    take_census(audit).write(tmp_path / "again.parquet")
    ledger = made_run(settings(tmp_path, tmp_path / "again.parquet", count=8))
    fit = next(n for n, row in enumerate(rows) if sum(row["loss_mask"]) > 6)
    ids = [p.conversation.id for shard in ledger.shards() or [] for p in ledger.planned(shard.name)]
    assert ids == [f"row-{n:04}" for n in range(8) if n != fit]
    judged = [one for shard in ledger.shards() or [] for one in ledger.verdicts(shard.name) or []]
    assert [one.conversation for one in judged] == ids
    assert {one.verdict for one in judged} == {"good"}


def test_rows_are_taken_by_their_ids_wherever_they_stand(tmp_path: Path) -> None:
    chosen = selection(tmp_path / "s.parquet", [1, 2], ["row-0004", "row-0001"], 99)
    assert planned(settings(tmp_path, chosen)) == ["row-0001", "row-0004"]


def test_rows_without_ids_are_taken_by_position(tmp_path: Path) -> None:
    chosen = selection(tmp_path / "s.parquet", [2, 3, 6], ["row-0001", None, None], 6)
    assert planned(settings(tmp_path, chosen)) == ["row-0001", "row-0002", "row-0005"]


def test_a_limit_counts_selected_rows(tmp_path: Path) -> None:
    chosen = selection(tmp_path / "s.parquet", [2, 3, 6], [None] * 3, 6)
    assert planned(settings(tmp_path, chosen, limit=2)) == ["row-0001", "row-0002"]


def test_positions_in_a_set_of_another_size_are_refused(tmp_path: Path) -> None:
    chosen = selection(tmp_path / "s.parquet", [2, 3], [None] * 2, 7)
    with pytest.raises(SourceError, match=r"set of 7 rows, but .*rows\.jsonl has 6"):
        planned(settings(tmp_path, chosen))


def test_ids_that_the_source_lacks_are_refused(tmp_path: Path) -> None:
    chosen = selection(tmp_path / "s.parquet", [1, 2], ["row-0001", "gone"], 6)
    with pytest.raises(SourceError, match=r"lacks 1 of the 2 ids .* the first of them gone"):
        planned(settings(tmp_path, chosen))


def test_a_run_begun_with_another_selection_is_another_run(tmp_path: Path) -> None:
    planned(settings(tmp_path, selection(tmp_path / "a.parquet", [1], [None], 6)))
    assert planned(settings(tmp_path, selection(tmp_path / "same.parquet", [1], [None], 6))) == ["row-0000"]
    with pytest.raises(ManifestChanged):
        planned(settings(tmp_path, selection(tmp_path / "b.parquet", [2], [None], 6)))


def test_a_selection_that_cannot_be_used_says_why(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    with pytest.raises(ConfigError, match="names no file"):
        read_selection(path)
    path.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(SourceError, match=r"s\.parquet: unreadable"):
        read_selection(path)
    pq.write_table(pa.table({"other": [1]}), path)
    with pytest.raises(SourceError, match="neither a column row nor id"):
        read_selection(path)
    with pytest.raises(SourceError, match="selects no row"):
        read_selection(selection(tmp_path / "none.parquet", [], [], 6))
    pq.write_table(pa.table({"row": ["first"]}), path)
    with pytest.raises(SourceError, match="column row is of type string"):
        read_selection(path)
