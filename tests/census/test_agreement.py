"""Census and inspection look at the same rows and say the same of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reflash.census.run import take_census
from reflash.config.source import SourceConfig
from reflash.errors import SourceError
from reflash.inspect.report import TokenizedReport
from reflash.inspect.run import inspect_source

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "files"
FILES = sorted(path.name for path in CORPUS.glob("tok*")) if CORPUS.is_dir() else []
NONE_FIT = ("tok-zero.parquet", "tokenized-10.jsonl", "tokenized-15.jsonl")  # no row that can be measured


@pytest.mark.skipif(not FILES, reason="the corpus of hard inputs does not lie beside the repository")
@pytest.mark.parametrize("name", FILES)
def test_hard_inputs_are_judged_alike(name: str) -> None:
    source = SourceConfig(path=str(CORPUS / name))
    if name in NONE_FIT:
        with pytest.raises(SourceError, match=r"none of its|no rows"):
            take_census(source)
        return
    census, inspected = take_census(source), inspect_source(source)
    assert isinstance(inspected, TokenizedReport)
    assert census.report.rows == inspected.rows
    assert census.report.at_or_under == len(inspected.flagged_rows)
    assert census.report.measured == inspected.rows - inspected.rejected
    unfit = (inspected.flagged_rows, inspected.suspicious_rows, inspected.short_span_rows, inspected.rejected_rows)
    assert census.report.to_make_again == len({row for rows in unfit for row in rows})
