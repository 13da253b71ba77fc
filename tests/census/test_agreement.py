"""Census and inspection look at the same rows and say the same of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reflash.census.run import take_census
from reflash.config.audit import DataAudit
from reflash.config.source import SourceConfig
from reflash.errors import SourceError
from reflash.inspect.report import ConversationReport, TokenizedReport
from reflash.inspect.run import inspect_source

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "files"
FILES = sorted(path.name for path in CORPUS.glob("tok*")) if CORPUS.is_dir() else []
TALKS = sorted(path.name for path in CORPUS.iterdir() if path.name not in FILES) if CORPUS.is_dir() else []
NONE_FIT = ("tok-zero.parquet", "tokenized-10.jsonl", "tokenized-15.jsonl")  # no row that can be measured


@pytest.mark.skipif(not FILES, reason="the corpus of hard inputs does not lie beside the repository")
@pytest.mark.parametrize("name", FILES)
def test_hard_inputs_are_judged_alike(name: str) -> None:
    source, audit = SourceConfig(path=str(CORPUS / name)), DataAudit(path=str(CORPUS / name))
    if name in NONE_FIT:
        with pytest.raises(SourceError, match=r"none of its|no rows"):
            take_census(audit)
        return
    census, inspected = take_census(audit), inspect_source(source)
    assert isinstance(inspected, TokenizedReport)
    assert census.report.rows == inspected.rows
    assert census.report.empty_rows == len(inspected.flagged_rows)
    assert census.report.measured == inspected.rows - inspected.rejected
    unfit = (inspected.flagged_rows, inspected.suspicious_rows, inspected.short_span_rows, inspected.rejected_rows)
    assert census.report.to_make_again == len({row for rows in unfit for row in rows})


@pytest.mark.skipif(not TALKS, reason="the corpus of hard inputs does not lie beside the repository")
@pytest.mark.parametrize("name", TALKS)
def test_hard_conversations_are_counted_alike(name: str) -> None:
    try:
        inspected = inspect_source(SourceConfig(path=str(CORPUS / name)))
    except SourceError:
        inspected = None
    assert inspected is None or isinstance(inspected, ConversationReport)
    if inspected is None:
        with pytest.raises(SourceError):
            take_census(DataAudit(path=str(CORPUS / name)))
        return
    if not inspected.accepted + inspected.repaired:
        with pytest.raises(SourceError, match="none of its"):
            take_census(DataAudit(path=str(CORPUS / name)))
        return
    report = take_census(DataAudit(path=str(CORPUS / name))).report
    assert (report.rows, report.rejected, report.turns) == (inspected.rows, inspected.rejected, inspected.turns)
    assert report.duplicate_prompts == inspected.duplicate_prompts
