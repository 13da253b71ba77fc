"""A census writes over nothing but its own files, and never into the set that it looks at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reflash.census.audit import run_audit
from reflash.config.audit import DataAudit
from reflash.errors import ConfigError
from tests.census.making import jsonl, parquet

EMPTY: list[dict[str, Any]] = [{"input_ids": [1, 2, 3], "loss_mask": [0, 0, 1]}] * 8


@pytest.mark.parametrize("target", ["selection", "items_out"])
@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("name", ["set.parquet", "set.jsonl"])
def test_no_other_file_is_written_over(tmp_path: Path, target: str, other: bool, name: str) -> None:
    write = parquet if name.endswith("parquet") else jsonl
    path = write(tmp_path / name, EMPTY)
    there = write(tmp_path / f"other-{name}", EMPTY) if other else path
    before = there.read_bytes()
    with pytest.raises(ConfigError, match="that is no selection"):
        run_audit(DataAudit(path=str(path), history=False, **{target: str(there)}))
    assert there.read_bytes() == before


@pytest.mark.parametrize("target", ["selection", "items_out"])
def test_nothing_is_written_into_the_folder_of_the_set(tmp_path: Path, target: str) -> None:
    parquet(tmp_path / "set.parquet", EMPTY)
    with pytest.raises(ConfigError, match="would count as rows"):
        run_audit(DataAudit(path=str(tmp_path), history=False, **{target: str(tmp_path / "again" / "x.parquet")}))
    assert [file.name for file in tmp_path.iterdir()] == ["set.parquet"]


def test_a_selection_is_written_over_by_the_next(tmp_path: Path) -> None:
    path, out = parquet(tmp_path / "set.parquet", EMPTY), tmp_path / "out" / "again.parquet"
    for _ in range(2):
        run_audit(DataAudit(path=str(path), history=False, selection=str(out)))
    assert out.exists()
